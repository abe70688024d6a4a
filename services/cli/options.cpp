#include "lib/base/error.hpp"
#include "lib/base/json_text.hpp"
#include "lib/hooks/persona.hpp"
#include "lib/hooks/plugin_options.hpp"
#include "lib/store/program.hpp"
#include "lib/store/view.hpp"
#include "services/cli/output.hpp"
#include "services/cli/plugins.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <iostream>

namespace holdfast::cli {

namespace {

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

// Where a property's value comes from: said under its own name, another one, or by the schema.
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
    std::cout << base::json_text(nlohmann::ordered_json{
                     {"type", "Option"}, {"plugin", plugin}, {"key", key}, {"value", value}, {"origin", origin}})
              << '\n';
  } else {
    const auto shown = fitted(printable(value), 60);
    std::cout << key << std::string(key.size() < 32 ? 32 - key.size() : 1, ' ') << shown << "  (" << printable(origin)
              << ")\n";
  }
}

} // namespace

int show_options(Context& context, const ConfigOptions& options) {
  const auto catalog = context.catalog();
  Layers layers;
  for (const auto& [key, value] : hooks::environment_options(*catalog))
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
    if (const auto persona = hooks::read_persona(context.data_dir() / "personas", crawl.persona))
      layers.add(hooks::persona_options(*persona, context.data_dir() / "personas" / crawl.persona),
                 "persona " + crawl.persona);
    layers.add(crawl.options, "the crawl");
    plugins = crawl.plugins;
  }
  std::vector<std::string> shown;
  if (!options.plugin.empty()) {
    if (catalog->find(options.plugin) == nullptr) catalog->select({options.plugin}); // says what there is
    shown.push_back(options.plugin);
  } else {
    std::string list;
    for (const auto& name : plugins)
      list += (list.empty() ? "" : ",") + name;
    shown = hooks::selected_plugins(*catalog, list, layers.options());
  }
  for (const auto& name : shown) {
    if (!context.json() && shown.size() > 1) std::cout << (name == shown.front() ? "" : "\n") << name << '\n';
    const auto resolved = hooks::resolve_properties(*catalog, *catalog->find(name), layers.options(), {});
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

} // namespace holdfast::cli
