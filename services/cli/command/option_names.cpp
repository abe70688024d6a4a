#include "services/cli/command/option_names.hpp"

#include "lib/base/error.hpp"
#include "lib/base/text/text.hpp"
#include "lib/hooks/environment.hpp"

#include <vector>

namespace holdfast::cli {

void check_option_name(const hooks::PluginSet& plugin_set, const std::string& name) {
  if (plugin_set.plugins().empty()) return;
  const auto known = hooks::crawl_may_set(plugin_set);
  if (known.contains(name)) return;
  std::string owner; // the plugin that the name begins with, the longest
  std::vector<std::string> of_owner;
  for (const auto& [plugin_name, plugin] : plugin_set.plugins()) {
    const auto prefix = hooks::key_prefix(plugin_name);
    if (!name.starts_with(prefix + "_") || plugin_name.size() < owner.size()) continue;
    owner = plugin_name;
    of_owner.clear();
    for (const auto& property : plugin.properties)
      if (!property.workers_own) of_owner.push_back(property.key);
  }
  const auto near = base::nearest(name, {known.begin(), known.end()});
  std::string hint;
  if (!near.empty()) hint = "did you mean " + near + "? ";
  if (!of_owner.empty())
    hint += "plugin " + owner + " has " + base::join(of_owner, ", ");
  else {
    std::vector<std::string> plugins;
    for (const auto& [plugin_name, plugin] : plugin_set.plugins())
      plugins.push_back(plugin_name);
    hint += "holdfast config --plugin NAME lists the options of " + base::join(plugins, ", ");
  }
  throw base::Error(base::ErrorClass::usage, "--option " + name + ": no plugin has such an option that a crawl may set",
                    hint);
}

} // namespace holdfast::cli
