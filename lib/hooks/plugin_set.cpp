#include "lib/hooks/plugin_set.hpp"

#include "lib/base/error.hpp"
#include "lib/base/log.hpp"
#include "lib/base/text/text.hpp"
#include "lib/hooks/plugin_file.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <system_error>
#include <utility>

namespace holdfast::hooks {

namespace fs = std::filesystem;
using base::Error;
using base::ErrorClass;

namespace {

bool before(const Hook& left, const Hook& right) {
  // Hooks without a number run last: in the old generation they were step 9, and all but a few hooks carry one.
  const auto order = [](const Hook& hook) { return hook.name.order < 0 ? 1'000'001 : hook.name.order; };
  if (order(left) != order(right)) return order(left) < order(right);
  if (left.name.name != right.name.name) return left.name.name < right.name.name;
  return left.plugin != nullptr && right.plugin != nullptr && left.plugin->name < right.plugin->name;
}

std::vector<Hook> find_hooks(const fs::path& directory) {
  std::vector<Hook> hooks;
  for (const auto& entry : fs::directory_iterator(directory)) {
    auto name = parse_hook_name(entry.path().filename().string());
    if (!name) continue;
    std::error_code error;
    const fs::file_status status = fs::status(entry.path(), error); // follows links
    if (error || !fs::is_regular_file(status)) continue;
    using fs::perms;
    const perms any_execute = perms::owner_exec | perms::group_exec | perms::others_exec;
    const bool executable = (status.permissions() & any_execute) != perms::none;
    if (!executable && name->extension.empty()) continue;
    hooks.push_back({std::move(*name), entry.path(), executable, nullptr});
  }
  // The name is without an extension, and is that of the result. Of "x.py" and a copy "x.py~" of an editor, the first
  // is the hook.
  std::sort(hooks.begin(), hooks.end(), [](const Hook& left, const Hook& right) {
    const auto rank = [](const Hook& hook) { return std::pair(hook.name.extension.empty(), hook.path.native()); };
    return rank(left) < rank(right);
  });
  std::stable_sort(hooks.begin(), hooks.end(), before);
  const auto same = [](const Hook& left, const Hook& right) { return left.name.name == right.name.name; };
  for (auto one = hooks.begin(); (one = std::adjacent_find(one, hooks.end(), same)) != hooks.end();) {
    spdlog::warn("{} is left out: {} is the hook of this name", std::next(one)->path.string(), one->path.string());
    hooks.erase(std::next(one));
  }
  return hooks;
}

bool printable(std::string_view text) {
  return base::is_utf8(text) &&
         std::none_of(text.begin(), text.end(), [](char letter) { return base::is_control(letter) || letter == '/'; });
}

// Returns true if one of ArchiveBox's plugins captures the page, which its config.json does not declare. Others work on
// the output of plugins, or save something about the page.
bool captures_by_name(std::string_view name) {
  constexpr std::array<std::string_view, 11> kNames{"accessibility", "consolelog", "dns",        "favicon",
                                                    "hashes",        "headers",    "htmltotext", "redirects",
                                                    "seo",           "ssl",        "title"};
  return !name.starts_with("parse_") && !name.starts_with("search_") &&
         std::find(kNames.begin(), kNames.end(), name) == kNames.end();
}

// The closure over required_plugins, depth first, so that dependencies come before their dependants.
class Selection {
public:
  Selection(const PluginSet& plugin_set, const std::vector<std::string>& disabled)
      : plugin_set_(plugin_set), disabled_(disabled.begin(), disabled.end()) {}

  bool disabled(const std::string& name) const { return disabled_.contains(name); }

  // Adds a plugin and what it requires; returns why that is impossible, or "".
  std::string add(const std::string& name) {
    if (done_.contains(name)) return {};
    if (const auto known = impossible_.find(name); known != impossible_.end()) return known->second;
    if (std::find(path_.begin(), path_.end(), name) != path_.end()) {
      auto cycle = path_;
      cycle.erase(cycle.begin(), std::find(cycle.begin(), cycle.end(), name));
      cycle.push_back(name);
      throw Error(ErrorClass::configuration, "plugins require each other in a circle: " + base::join(cycle, " -> "),
                  "remove one of these names from required_plugins in its config.json");
    }
    path_.push_back(name);
    std::string reason;
    for (const std::string& needed : plugin_set_.find(name)->required_plugins) {
      if (plugin_set_.find(needed) == nullptr) {
        reason = "plugin " + name + " requires plugin " + needed + ", which is not installed";
      } else if (disabled(needed)) {
        reason = "plugin " + name + " requires plugin " + needed + ", which is disabled";
      } else {
        reason = add(needed);
      }
      if (!reason.empty()) break;
    }
    path_.pop_back();
    if (reason.empty()) {
      done_.insert(name);
      order_.push_back(name);
    } else {
      impossible_[name] = reason;
    }
    return reason;
  }

  std::vector<std::string> take() { return std::move(order_); }

private:
  const PluginSet& plugin_set_;
  std::set<std::string> disabled_, done_;
  std::map<std::string, std::string> impossible_;
  std::vector<std::string> path_, order_;
};

} // namespace

std::shared_ptr<const PluginSet> PluginSet::load(const std::vector<fs::path>& directories, std::string_view runtime) {
  auto plugin_set = std::make_shared<PluginSet>();
  for (const fs::path& directory : directories) {
    std::error_code error;
    fs::directory_iterator entries(directory, error);
    if (error) {
      throw Error(ErrorClass::unavailable,
                  "cannot read the plugin directory " + directory.string() + ": " + error.message(),
                  "set plugins.path to directories that exist");
    }
    for (const auto& entry : entries) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with('.') || name.starts_with('_') || !fs::is_directory(entry.path(), error)) continue;
      if (!printable(name) || name.find(',') != std::string::npos) {
        spdlog::warn("{}: a directory whose name cannot be that of a plugin is left out", directory.string());
        continue;
      }
      auto hooks = find_hooks(entry.path());
      const fs::path file = entry.path() / "config.json";
      const bool configured = fs::exists(file, error);
      if (hooks.empty() && !configured) continue;
      Plugin plugin;
      plugin.name = name;
      plugin.directory = entry.path();
      plugin.captures_page = captures_by_name(name);
      if (configured && !read_plugin_file(file, runtime, plugin)) {
        plugin_set->plugins_.erase(name); // the later directory counts, also for "not here"
        continue;
      }
      plugin.hooks = std::move(hooks);
      plugin_set->plugins_.insert_or_assign(name, std::move(plugin));
    }
  }
  for (auto& [name, plugin] : plugin_set->plugins_) {
    for (const auto& property : plugin.properties)
      plugin_set->options_.insert(property.key);
    for (Hook& hook : plugin.hooks)
      hook.plugin = &plugin;
    for (const std::string& needed : plugin.required_plugins) {
      if (!plugin_set->plugins_.contains(needed)) {
        const base::LogAbout about({"", "", 0, name, ""});
        spdlog::warn("plugin {} requires plugin {}, which is not installed: it will not run", name, needed);
      }
    }
  }
  return plugin_set;
}

const Plugin* PluginSet::find(const std::string& name) const {
  const auto found = plugins_.find(name);
  return found == plugins_.end() ? nullptr : &found->second;
}

std::vector<std::string> PluginSet::with_required(const std::string& name) const {
  std::vector<std::string> names{name};
  for (std::size_t index = 0; index < names.size(); ++index)
    if (const Plugin* plugin = find(names[index]))
      for (const std::string& needed : plugin->required_plugins)
        if (std::find(names.begin(), names.end(), needed) == names.end()) names.push_back(needed);
  return names;
}

std::string PluginSet::lacking(const std::string& name) const {
  for (const auto& one : with_required(name))
    if (find(one) == nullptr) return one;
  return {};
}

std::vector<std::string> PluginSet::select(const std::vector<std::string>& roots,
                                           const std::vector<std::string>& disabled) const {
  Selection selection(*this, disabled);
  const auto names = base::split(base::join(roots, ","), ",");
  for (const std::string& name : names) {
    if (find(name) == nullptr) {
      std::vector<std::string> known;
      for (const auto& [plugin, ignored] : plugins_)
        known.push_back(plugin);
      throw Error(ErrorClass::usage, "there is no plugin named \"" + name + "\"",
                  known.empty() ? "no plugins are installed: set plugins.path"
                                : "known plugins: " + base::join(known, ", "));
    }
    if (selection.disabled(name)) continue;
    if (const std::string reason = selection.add(name); !reason.empty()) {
      throw Error(ErrorClass::configuration, reason, "enable or install it, or leave out what requires it");
    }
  }
  if (names.empty()) {
    for (const auto& [name, plugin] : plugins_) {
      if (plugin.enabled_by_default && !selection.disabled(name)) selection.add(name);
    }
  }
  return selection.take();
}

std::vector<const Hook*> PluginSet::hooks_for(Event event, const std::vector<std::string>& selected) const {
  std::vector<const Hook*> hooks;
  for (const std::string& name : std::set<std::string>(selected.begin(), selected.end())) {
    const Plugin* plugin = find(name);
    if (plugin == nullptr) continue;
    for (const Hook& hook : plugin->hooks) {
      if (hook.name.event == event) hooks.push_back(&hook);
    }
  }
  std::sort(hooks.begin(), hooks.end(), [](const Hook* left, const Hook* right) { return before(*left, *right); });
  return hooks;
}

namespace {

// Runner files append ".<32hex>.stdout.log" to the name, and a file name has 255 bytes at most.
constexpr std::size_t kLongestHookName = 200;

constexpr std::array<std::pair<std::string_view, Event>, 5> kEvents{{{"CrawlSetup", Event::crawl_setup},
                                                                     {"Crawl", Event::crawl_setup},
                                                                     {"Snapshot", Event::snapshot},
                                                                     {"Binary", Event::binary},
                                                                     {"CrawlEnd", Event::crawl_end}}};

std::optional<Event> parse_event(std::string_view word) {
  constexpr std::string_view kSuffix = "Event";
  if (word.size() > kSuffix.size() && word.ends_with(kSuffix)) word.remove_suffix(kSuffix.size());
  for (const auto& [name, event] : kEvents) {
    if (word == name) return event;
  }
  return std::nullopt;
}

} // namespace

std::optional<HookName> parse_hook_name(std::string_view file_name) {
  constexpr std::string_view kPrefix = "on_";
  if (!file_name.starts_with(kPrefix) || file_name.size() > kLongestHookName || !printable(file_name))
    return std::nullopt;
  const auto separator = file_name.find("__", kPrefix.size());
  if (separator == std::string_view::npos) return std::nullopt;
  const auto event = parse_event(file_name.substr(kPrefix.size(), separator - kPrefix.size()));
  if (!event) return std::nullopt;

  std::string_view rest = file_name.substr(separator + 2);
  int order = -1;
  std::size_t digits = 0;
  while (digits < rest.size() && base::is_digit(rest[digits]))
    ++digits;
  if (digits > 0 && digits < rest.size() && rest[digits] == '_') {
    order = 0;
    constexpr int kLargestOrder = 1'000'000; // saturates: an absurd number still sorts after the sane ones
    for (std::size_t index = 0; index < digits; ++index) {
      order = std::min(order * 10 + (rest[index] - '0'), kLargestOrder);
    }
    rest.remove_prefix(digits + 1);
  }

  // The last extension goes, unless it is the background marker of a program without an extension.
  std::string_view stem = file_name;
  std::string_view extension;
  const auto dot = rest.rfind('.');
  if (dot != std::string_view::npos && dot + 1 < rest.size() && rest.substr(dot + 1) != "bg") {
    extension = rest.substr(dot + 1);
    stem.remove_suffix(extension.size() + 1);
    rest = rest.substr(0, dot);
  }
  if (rest.empty()) return std::nullopt;

  HookName result;
  result.event = *event;
  result.order = order;
  result.name = std::string(stem);
  if (extension == "sh" || extension == "py" || extension == "js") result.extension = std::string(extension);
  result.background = rest.ends_with(".bg") || rest.find(".bg.") != std::string_view::npos ||
                      rest.find("__background") != std::string_view::npos; // the old marker
  result.daemon = result.background && rest.find(".daemon.") != std::string_view::npos;
  return result;
}

} // namespace holdfast::hooks
