#include "lib/base/error.hpp"
#include "lib/catalog/list.hpp"
#include "lib/config/layers.hpp"
#include "lib/hooks/plugin_options.hpp"
#include "lib/store/find.hpp"
#include "lib/store/worker.hpp"
#include "services/cli/command/verbs.hpp"
#include "services/cli/terminal/output.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <iostream>
#include <memory>

namespace holdfast::cli {

namespace {

struct ConfigOptions {
  std::string key, plugin, crawl;
};

class Layers {
public:
  void add(const std::map<std::string, std::string>& options, const std::string& origin) {
    for (const auto& [key, value] : options)
      set(key, value, origin);
  }
  void set(const std::string& key, const std::string& value, const std::string& origin) {
    options_[key] = value;
    origins_[key] = origin;
  }
  const hooks::Options& options() const { return options_; }
  const std::string& origin(const std::string& key) const { return origins_.at(key); }
  bool has(const std::string& key) const { return options_.contains(key); }

private:
  hooks::Options options_;
  std::map<std::string, std::string> origins_;
};

// Returns the origin of a property's value: its own name, another one, or the schema.
std::string origin_of(const Layers& layers, const std::string& key, const hooks::ResolvedOption& option,
                      const std::map<std::string, hooks::ResolvedOption>& all) {
  if (layers.has(key)) return layers.origin(key);
  const auto* property = option.property;
  if (property == nullptr || !option.given) return "default of the plugin";
  for (const auto& alias : property->aliases)
    if (layers.has(alias)) return alias + ", " + layers.origin(alias);
  std::string fallback = property->fallback;
  for (int i = 0; i < 8 && !fallback.empty(); ++i) { // they may borrow from each other
    if (layers.has(fallback)) return fallback + ", " + layers.origin(fallback);
    const auto next = all.find(fallback);
    fallback = next == all.end() || next->second.property == nullptr ? "" : next->second.property->fallback;
  }
  return "an option of another name";
}

void print_option(const Context& context, const std::string& plugin, const std::string& key, const std::string& value,
                  const std::string& origin) {
  if (context.json()) {
    print_record("Option", {{"plugin", plugin}, {"key", key}, {"value", value}, {"origin", origin}});
  } else {
    const auto shown = fitted(printable(value), 60);
    std::cout << key << std::string(key.size() < 32 ? 32 - key.size() : 1, ' ') << shown << "  (" << printable(origin)
              << ")\n";
  }
}

// Options of a plugin or a crawl as its hooks get them, and where each comes from.
int show_options(Context& context, const ConfigOptions& options) {
  const auto plugin_set = context.plugin_set();
  Layers layers;
  for (const auto& [key, value] : hooks::environment_options(*plugin_set))
    layers.set(key, value, "environment " + key);
  for (const auto& [key, value] : context.settings().hook_options())
    layers.set(key, value.text, value.origin);
  if (const auto& timeout = context.settings().value("hook.timeout");
      timeout.origin != "default" && !layers.has("TIMEOUT"))
    layers.set("TIMEOUT", std::to_string(context.settings().duration("hook.timeout").count() / 1000),
               "hook.timeout, " + timeout.origin);
  std::vector<std::string> plugins;
  if (!options.crawl.empty()) {
    auto& connection = context.connection();
    const auto found = store::find(connection, options.crawl);
    if (found.kind == "process")
      throw base::Error(base::ErrorClass::refused, "\"" + options.crawl + "\" is not a crawl");
    const auto crawl = store::crawl_options(connection, found.crawl_id.empty() ? found.id : found.crawl_id);
    const auto rows = catalog::list(connection, catalog::ListQuery{"personas", 1}.by("persona", crawl.persona));
    for (const auto& row : rows) {
      const auto set = nlohmann::json::parse(row.text("options"));
      for (const auto& [key, value] : set.items())
        layers.set(key, value.get<std::string>(), "persona " + crawl.persona);
    }
    layers.add(crawl.options, "the crawl");
    plugins = crawl.plugins;
  }
  std::vector<std::string> shown;
  if (!options.plugin.empty()) {
    if (plugin_set->find(options.plugin) == nullptr) plugin_set->select({options.plugin}); // throws, naming all
    shown.push_back(options.plugin);
  } else {
    shown = hooks::selected_plugins(*plugin_set, plugins, layers.options());
  }
  for (const auto& name : shown) {
    if (!context.json() && shown.size() > 1) std::cout << (name == shown.front() ? "" : "\n") << name << '\n';
    const auto resolved = hooks::resolve_properties(*plugin_set, *plugin_set->find(name), layers.options(), {});
    for (const auto& [key, option] : resolved) {
      if (!options.key.empty() && key != options.key) continue;
      const bool secret = hooks::is_secret_key(key) || (option.property != nullptr && option.property->sensitive);
      print_option(context, name, key, secret ? (option.value.empty() ? "(unset)" : "(set)") : option.value,
                   origin_of(layers, key, option, resolved));
    }
  }
  std::cout << std::flush;
  return base::kExitSuccess;
}

int show_config(Context& context, const std::string& key) {
  const auto& settings = context.settings();
  bool any = false;
  const auto print = [&](const std::string& name, const std::string& value, const std::string& origin) {
    if (!key.empty() && key != name) return;
    any = true;
    if (context.json())
      print_record("Setting", {{"key", name}, {"value", value}, {"origin", origin}});
    else if (key.empty())
      std::cout << name << std::string(name.size() < 28 ? 28 - name.size() : 1, ' ') << fitted(printable(value), 60)
                << "  (" << origin << ")\n";
    else
      std::cout << value << '\n';
  };
  for (const auto& entry : config::key_table()) {
    const auto& value = settings.value(entry.name);
    std::string text = entry.secret ? (value.text.empty() ? "(unset)" : "(set)") : value.text;
    if (!entry.secret && entry.type == config::Type::path && !settings.path(entry.name).empty())
      text = settings.path(entry.name).string();
    print(std::string(entry.name), text, value.origin);
  }
  for (const auto& [name, value] : settings.hook_options())
    print(name, hooks::is_secret_key(name) ? "(set)" : value.text, value.origin);
  std::cout << std::flush;
  if (!any) {
    std::vector<std::string> names;
    for (const auto& entry : config::key_table())
      names.emplace_back(entry.name);
    const auto near = config::nearest_key(key, names);
    throw base::Error(base::ErrorClass::usage, "there is no setting \"" + key + "\"",
                      !near.empty() ? "did you mean holdfast config " + near + "?" : "holdfast config lists them");
  }
  return base::kExitSuccess;
}

} // namespace

Action config_verb(CLI::App& command) {
  const auto options = std::make_shared<ConfigOptions>();
  command.add_option("key", options->key, "Only this one's value");
  command.add_option("--plugin", options->plugin, "Options of this plugin, and of those that it requires");
  command.add_option("--crawl", options->crawl, "Options as the hooks of this crawl get them");
  return [options](Context& context) {
    return options->plugin.empty() && options->crawl.empty() ? show_config(context, options->key)
                                                             : show_options(context, *options);
  };
}

} // namespace holdfast::cli
