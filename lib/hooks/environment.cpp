#include "lib/hooks/environment.hpp"

#include "lib/base/error.hpp"
#include "lib/base/text/json.hpp"
#include "lib/hooks/binary.hpp"
#include "lib/hooks/plugin_options.hpp"
#include "lib/hooks/text.hpp"

#include <nlohmann/json.hpp>

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <regex>
#include <unordered_set>

namespace holdfast::hooks {

namespace {

using Environment = std::map<std::string, std::string>;

// Program of the built-in hooks. It is started directly: starting it through /usr/bin/env takes twice the time.
constexpr const char* kOwnInterpreter = "holdfast-capture";
constexpr std::string_view kDefaultPath = "/usr/local/bin:/usr/bin:/bin";
constexpr std::size_t kLongestEntry = 120u << 10; // the kernel takes 128 KiB a string, with name and end
constexpr std::size_t kLongestSeeds = 64u << 10;

bool never_inherited(std::string_view name) { return name.starts_with("HOLDFAST_") || name.starts_with("PG"); }

// Names that hooks know whatever plugins there are, and who may set them.
enum Setter : unsigned {
  kInherited = 1, // our own environment
  kDecided = 2,   // the caller, for this run alone: an option would point into another machine or another page
  kContract = 4,  // global_keys(), and installers, which have put programs there
  kOfCrawl = 8,   // a crawl
  kOfRunner = 16, // an option in our own environment
};
struct KnownNames {
  unsigned setters;
  std::string_view names;
};
constexpr KnownNames kNames[] = {
    {kInherited | kDecided, " PATH "},
    {kInherited, " HOME USER LOGNAME LANGUAGE SSL_CERT_FILE SSL_CERT_DIR HTTP_PROXY HTTPS_PROXY NO_PROXY "
                 "ALL_PROXY http_proxy https_proxy no_proxy all_proxy SHELL "},
    {kInherited | kOfCrawl, " LANG TZ "},
    {kDecided, " CONFIG_DIR DATA_DIR ARCHIVE_DIR CRAWL_DIR CRAWL_OUTPUT_DIR SNAP_DIR SNAPSHOT_DIR TMP_DIR "
               "EXTRA_CONTEXT ABX_RUNTIME TMPDIR MACHINE_ID LIB_BIN_DIR "},
    {kContract, " ABXPKG_LIB_DIR LIB_DIR PERSONAS_DIR ACTIVE_PERSONA NODE_PATH NODE_MODULES_DIR "
                "NODE_MODULE_DIR ABXPKG_NO_CACHE ABXPKG_FAST_SCRIPT "},
    {kContract | kOfCrawl | kOfRunner, " TIMEOUT USER_AGENT CHECK_SSL_VALIDITY "},
    {kContract | kOfRunner, " CHROME_SANDBOX "},
    {kContract | kOfCrawl, " DRY_RUN "},
    {kOfCrawl, " STALL_TIMEOUT RESOLUTION DEBUG CHROME_ISOLATION IDENTIFY "},
    {kOfRunner, " COOKIES_FILE "}};

std::set<std::string> names_for(unsigned setter) {
  std::set<std::string> names;
  for (const auto& known : kNames)
    if ((known.setters & setter) != 0)
      for (auto& name : base::split(known.names, " "))
        names.insert(std::move(name));
  return names;
}

bool may_set(unsigned setter, std::string_view name) {
  const auto word = " " + std::string(name) + " ";
  return std::any_of(std::begin(kNames), std::end(kNames), [&](const KnownNames& known) {
    return (known.setters & setter) != 0 && known.names.find(word) != std::string_view::npos;
  });
}

bool inheritable(std::string_view name) { return name.starts_with("LC_") || may_set(kInherited, name); }

bool passes_as_option(std::string_view name) {
  if (name.empty() || name.find('=') != std::string_view::npos || name.find('\0') != std::string_view::npos)
    return false;
  if (never_inherited(name) || may_set(kDecided, name)) return false;
  return !name.starts_with("LD_") && name != "PLUGINS" && name != "SEARCH_BACKEND_ENGINE" &&
         name != "UV_RUN_RECURSION_DEPTH";
}

std::string option_or(const Options& options, const std::string& key, std::string_view otherwise) {
  const auto found = options.find(key);
  return found != options.end() && !found->second.empty() ? found->second : std::string(otherwise);
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

bool crawl_hook(const Hook& hook) {
  return hook.name.event == Event::crawl_setup || hook.name.event == Event::crawl_end;
}

// Returns the object that hook-side helpers merge under every record that they print.
std::string extra_context(const Hook& hook, const HookContext& context) {
  nlohmann::json object{{"hook_name", hook.name.name}};
  if (hook.plugin != nullptr) object["plugin"] = hook.plugin->name;
  if (!context.crawl_id.empty()) object["crawl_id"] = context.crawl_id;
  if (!crawl_hook(hook)) {
    constexpr std::size_t kLongestText = 4096;
    object["snapshot_id"] = context.snapshot_id;
    object["snapshot_depth"] = context.depth;
    object["snapshot_url"] = context.url;
    object["snapshot_title"] = clean_text(context.snapshot_title, kLongestText, Lines::one);
    object["snapshot_tags"] = clean_text(context.snapshot_tags, kLongestText, Lines::one);
  }
  return base::json_text(object);
}

// The keys that every hook gets, from the context and from global options.
Options global_keys(const Hook& hook, const Options& options, const HookContext& context) {
  Options keys;
  const auto set_path = [&](std::initializer_list<const char*> names, const std::filesystem::path& path) {
    if (path.empty()) return;
    for (const char* name : names)
      keys[name] = path.string();
  };
  set_path({"DATA_DIR", "CONFIG_DIR"}, context.data_dir);
  if (!context.data_dir.empty()) set_path({"ARCHIVE_DIR"}, context.data_dir / "archive");
  set_path({"CRAWL_DIR", "CRAWL_OUTPUT_DIR"}, context.crawl_dir);
  if (crawl_hook(hook)) {
    set_path({"SNAP_DIR"}, context.crawl_dir); // where the helpers look when there is no page yet
  } else {
    set_path({"SNAP_DIR", "SNAPSHOT_DIR"}, context.snapshot_dir);
  }
  set_path({"TMP_DIR", "TMPDIR"}, context.temporary_dir);
  const std::filesystem::path library =
      !context.library_dir.empty()
          ? context.library_dir
          : std::filesystem::path(option_or(options, "ABXPKG_LIB_DIR", option_or(options, "LIB_DIR", "")));
  set_path({"ABXPKG_LIB_DIR", "LIB_DIR"}, library);
  if (!library.empty()) set_path({"LIB_BIN_DIR"}, library / "bin");
  set_path({"PERSONAS_DIR"}, context.personas_dir);
  if (option_or(options, "CHROME_ISOLATION", "") == "snapshot" && keys.contains("SNAP_DIR")) {
    set_path({"PERSONAS_DIR"}, std::filesystem::path(keys["SNAP_DIR"]) / ".persona");
  }
  keys["ACTIVE_PERSONA"] = context.persona;
  keys["ABX_RUNTIME"] = context.runtime;
  if (!context.machine_id.empty()) keys["MACHINE_ID"] = context.machine_id;
  keys["ABXPKG_FAST_SCRIPT"] = "1";
  keys["DRY_RUN"] = "False";
  keys["ABXPKG_NO_CACHE"] = "False";
  keys["TIMEOUT"] = "60";
  keys["CHECK_SSL_VALIDITY"] = "True";
  keys["CHROME_SANDBOX"] = "true";
  keys["EXTRA_CONTEXT"] = extra_context(hook, context);

  std::string modules = option_or(options, "NODE_MODULES_DIR", option_or(options, "NODE_MODULE_DIR", ""));
  if (!modules.empty()) {
    keys["NODE_MODULES_DIR"] = keys["NODE_MODULE_DIR"] = modules;
    keys["NODE_PATH"] = modules;
  }
  return keys;
}

// Secrets that are declared by plugins which this hook has nothing to do with, and keys meant for a server.
std::set<std::string> withheld_keys(const PluginSet& plugin_set, const Plugin& plugin) {
  const auto near = with_required_plugins(plugin_set, plugin);
  std::set<std::string> withheld;
  std::set<std::string> needed;
  for (const auto& [name, other] : plugin_set.plugins()) {
    const bool related = std::find(near.begin(), near.end(), &other) != near.end();
    for (const Property& property : other.properties) {
      std::set<std::string>& target = property.server_only || (property.sensitive && !related) ? withheld : needed;
      if (&target == &needed && !related) continue;
      target.insert(property.key);
      target.insert(property.aliases.begin(), property.aliases.end());
      if (&target == &needed && !property.fallback.empty()) needed.insert(property.fallback);
    }
  }
  for (const std::string& key : needed)
    withheld.erase(key);
  return withheld;
}

// Puts directories of the resolved binaries first, so that "#!/usr/bin/env node" finds the resolved node; a directory
// that is on the path anyway keeps its place.
std::string search_path(const Environment& environment, const std::string& inherited) {
  const auto parts = base::split(inherited, ":");
  std::set<std::string> present(parts.begin(), parts.end());
  std::string path;
  const auto prepend = [&](const std::string& directory) {
    if (directory.empty() || directory.find(':') != std::string::npos || !present.insert(directory).second) return;
    path += directory + ":";
  };
  for (const auto& [key, value] : environment) {
    if (key.ends_with("_BINARY") && value.starts_with('/')) {
      prepend(std::filesystem::path(value).parent_path().string());
    }
  }
  if (const auto found = environment.find("LIB_BIN_DIR"); found != environment.end()) prepend(found->second);
  if (const auto found = environment.find("NODE_MODULES_DIR"); found != environment.end() && !found->second.empty()) {
    prepend((std::filesystem::path(found->second) / ".bin").string());
  }
  return path + inherited;
}

} // namespace

std::set<std::string> crawl_may_set(const PluginSet& plugin_set) {
  auto may = names_for(kOfCrawl);
  std::set<std::string> own;
  for (const auto& [name, plugin] : plugin_set.plugins()) {
    const auto prefix = key_prefix(name);
    for (const auto* suffix : {"_ENABLED", "_TIMEOUT", "_STALL_TIMEOUT"})
      may.insert(prefix + suffix);
    may.insert({"USE_" + prefix, "SAVE_" + prefix});
    for (const auto& property : plugin.properties) {
      auto& names = property.workers_own ? own : may;
      names.insert(property.key);
      names.insert(property.aliases.begin(), property.aliases.end());
      if (!property.fallback.empty()) names.insert(property.fallback);
    }
  }
  std::erase_if(may, [&](const std::string& name) {
    return own.contains(name) || is_workers_own(name) || !passes_as_option(name);
  });
  return may;
}

Options crawl_options(const PluginSet& plugin_set, const Options& given) {
  Options options;
  if (given.empty()) return options;
  const auto may = crawl_may_set(plugin_set);
  for (const auto& [name, value] : given)
    if (may.contains(name)) options[name] = value;
  return options;
}

std::map<std::string, std::string> inherited_environment(const std::vector<std::string>& extra) {
  Environment result;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const auto equals = text.find('=');
    if (equals == std::string_view::npos || equals == 0) continue;
    const std::string name(text.substr(0, equals));
    if (never_inherited(name)) continue;
    if (inheritable(name) || std::find(extra.begin(), extra.end(), name) != extra.end()) {
      result[name] = std::string(text.substr(equals + 1));
    }
  }
  return result;
}

Options environment_options(const PluginSet& plugin_set, const Options& given) {
  std::map<std::string, std::vector<std::string>> names; // by each name of an option: all that it has
  std::set<std::string> secret;
  for (const auto& name : names_for(kOfRunner))
    names[name];
  for (const auto& [plugin_name, plugin] : plugin_set.plugins()) {
    for (const Property& property : plugin.properties) {
      std::vector<std::string> all = property.aliases;
      all.push_back(property.key);
      for (const std::string& name : all) {
        names[name].insert(names[name].end(), all.begin(), all.end());
        if (property.sensitive || property.server_only) secret.insert(name);
      }
      if (!property.fallback.empty()) names[property.fallback];
    }
  }
  Options options;
  for (const auto& [name, others] : names) {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr || *value == '\0' || !passes_as_option(name)) continue;
    if (secret.contains(name) || is_secret_key(name) || given.contains(name)) continue;
    if (std::any_of(others.begin(), others.end(), [&](const std::string& other) { return given.contains(other); }))
      continue;
    options[name] = value;
  }
  return options;
}

void check_agents(const Options& options) {
  for (const auto& [name, value] : options)
    if (name.ends_with("USER_AGENT") && std::any_of(value.begin(), value.end(), base::is_control))
      throw base::Error(base::ErrorClass::configuration, "option " + name + " has a control character");
}

std::vector<std::string> hook_environment(const PluginSet& plugin_set, const Hook& hook, const Options& options,
                                          const HookContext& context, const Environment& inherited) {
  Environment environment;
  for (const auto& [name, value] : inherited) {
    if (!never_inherited(name)) environment[name] = value;
  }
  const Options globals = global_keys(hook, options, context);
  for (const auto& [name, value] : globals)
    environment[name] = value;

  // An option may set the place of the library or the personas only if the context does not.
  const auto overridable = [&](const std::string& name) {
    if (!passes_as_option(name)) return false;
    if (name == "PERSONAS_DIR" || name == "ABXPKG_LIB_DIR" || name == "LIB_DIR") return !globals.contains(name);
    return name != "ACTIVE_PERSONA";
  };
  std::set<std::string> withheld;
  if (hook.plugin != nullptr) withheld = withheld_keys(plugin_set, *hook.plugin);
  for (const auto& [name, value] : options) {
    if (overridable(name) && !withheld.contains(name)) environment[name] = value;
  }
  if (hook.plugin != nullptr) {
    for (const auto& [name, option] : resolve_properties(plugin_set, *hook.plugin, options, globals)) {
      if (option.property->server_only || !overridable(name)) continue;
      // A default never replaces what is there, and an empty one would hide the hook's own fallback.
      if (option.given || (!option.value.empty() && !environment.contains(name))) environment[name] = option.value;
    }
  }
  const auto path = inherited.find("PATH");
  environment["PATH"] = search_path(
      environment,
      option_or(options, "PATH",
                path != inherited.end() && !path->second.empty() ? std::string_view(path->second) : kDefaultPath));

  if (!context.last_on_path.empty()) environment["PATH"] += ":" + context.last_on_path;

  check_agents(environment);
  std::vector<std::string> result;
  result.reserve(environment.size());
  for (const auto& [name, value] : environment) {
    const bool unusable = value.find('\0') != std::string::npos;
    if (unusable || name.size() + value.size() > kLongestEntry) {
      throw base::Error(base::ErrorClass::configuration,
                        "option " + name + (unusable ? " contains a NUL character" : " is longer than 120 KiB") +
                            " and cannot be passed to a hook");
    }
    result.push_back(name + "=" + value);
  }
  return result;
}

std::string started_with(const PluginSet& plugin_set, const process::Command& command,
                         const std::filesystem::path& directory) {
  constexpr std::size_t kMost = 8192, kLongestWord = 500;
  static const std::regex password("://[^/@ ]*@");
  const auto shown = [](const std::string& text) {
    const bool user = text.find("://") != std::string::npos && text.find('@') != std::string::npos;
    return clean_text(user ? std::regex_replace(text, password, "://") : text, kLongestWord, Lines::one);
  };
  std::unordered_set<std::string_view> open, secret;
  for (const auto& [name, plugin] : plugin_set.plugins())
    for (const Property& property : plugin.properties) {
      auto& names = property.sensitive || property.server_only ? secret : open;
      names.insert(property.key);
      names.insert(property.aliases.begin(), property.aliases.end());
    }
  nlohmann::ordered_json object{{"command", nlohmann::json::array()},
                                {"directory", shown(directory.string())},
                                {"environment", nlohmann::json::object()}};
  std::size_t size = 100 + directory.native().size();
  for (const std::string& argument : command.argv) {
    size += argument.size() + 3;
    if (size > kMost / 2) break;
    object["command"].push_back(shown(argument));
  }
  for (const std::string& entry : command.environment) {
    const auto equals = std::min(entry.find('='), entry.size());
    const std::string name = entry.substr(0, equals);
    const bool told = !is_secret_key(name) && !secret.contains(name) &&
                      (open.contains(name) || inheritable(name) || may_set(kDecided, name) ||
                       may_set(kContract, name) || name.ends_with("_BINARY"));
    const std::string value = told && equals < entry.size() ? shown(entry.substr(equals + 1)) : "(set)";
    size += name.size() + value.size() + 8;
    if (size > kMost) break;
    object["environment"][name] = value;
  }
  return base::json_text(object);
}

std::vector<std::string> hook_arguments(const Hook& hook, const HookContext& context) {
  std::vector<std::string> arguments;
  if (!hook.executable) {
    const std::string_view extension = hook.name.extension;
    arguments.emplace_back("/usr/bin/env");
    arguments.emplace_back(extension == "py" ? "python3" : extension == "js" ? "node" : "bash");
  } else if (interpreter_of(hook) == kOwnInterpreter) {
    if (const auto own = find_binary(kOwnInterpreter, path_directories(context.last_on_path)))
      arguments.push_back(*own);
  }
  arguments.push_back(hook.path.string());
  if (crawl_hook(hook)) {
    std::string seeds = context.source_url;
    if (seeds.size() > kLongestSeeds) {
      const auto newline = seeds.rfind('\n', kLongestSeeds);
      seeds.resize(newline == std::string::npos ? 0 : newline);
    }
    arguments.push_back("--url=" + (context.url.empty() ? first_line(context.source_url) : context.url));
    arguments.push_back("--crawl-id=" + context.crawl_id);
    arguments.push_back("--source-url=" + seeds);
  } else if (hook.name.event == Event::snapshot) {
    arguments.push_back("--url=" + context.url);
    arguments.push_back("--snapshot-id=" + context.snapshot_id);
  }
  return arguments;
}

} // namespace holdfast::hooks
