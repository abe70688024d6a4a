#pragma once
// Resolution of the value of a plugin's property. Private to this module; the public face is environment.hpp.

#include "lib/hooks/environment.hpp"

#include <map>
#include <string>
#include <vector>

namespace holdfast::hooks {

struct ResolvedOption {
  std::string value;
  bool given{false};                 // by an option, an alias or a fallback; else it is the schema's default
  const Property* property{nullptr}; // owned by the plugin set
};

// Returns the plugin, then everything that it requires, nearest first. Plugins that are not in the plugin set are left
// out.
std::vector<const Plugin*> with_required_plugins(const PluginSet& plugin_set, const Plugin& plugin);

// Every property of those plugins, by key. `globals` stand behind options and before schema defaults.
std::map<std::string, ResolvedOption> resolve_properties(const PluginSet& plugin_set, const Plugin& plugin,
                                                         const Options& options, const Options& globals);

} // namespace holdfast::hooks
