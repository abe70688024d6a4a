#include "services/cli/option_names.hpp"

#include "lib/base/error.hpp"
#include "lib/base/text.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <vector>

namespace holdfast::cli {

namespace {

// Of the contract itself: every hook gets these, whatever its plugin declares.
constexpr std::array<std::string_view, 18> kGeneral = {
    "TIMEOUT",        "STALL_TIMEOUT",    "USER_AGENT",  "CHECK_SSL_VALIDITY", "COOKIES_FILE", "RESOLUTION", "DRY_RUN",
    "DEBUG",          "HTTP_PROXY",       "HTTPS_PROXY", "NO_PROXY",           "ALL_PROXY",    "LANG",       "TZ",
    "CHROME_SANDBOX", "CHROME_ISOLATION", "PERSONAS_DIR", "IDENTIFY"};

} // namespace

void check_option_name(const hooks::Catalog& catalog, const std::string& name) {
  if (catalog.plugins().empty() || name.starts_with("LC_")) return;
  std::set<std::string> known(kGeneral.begin(), kGeneral.end());
  std::string owner; // the plugin that the name begins with, the longest
  std::vector<std::string> of_owner;
  for (const auto& [plugin_name, plugin] : catalog.plugins()) {
    const auto prefix = hooks::key_prefix(plugin_name);
    for (const auto* suffix : {"_ENABLED", "_TIMEOUT", "_STALL_TIMEOUT"})
      known.insert(prefix + suffix);
    known.insert("USE_" + prefix);
    known.insert("SAVE_" + prefix);
    for (const auto& property : plugin.properties) {
      known.insert(property.key);
      known.insert(property.aliases.begin(), property.aliases.end());
      if (!property.fallback.empty()) known.insert(property.fallback);
    }
    if (!name.starts_with(prefix + "_") || plugin_name.size() < owner.size()) continue;
    if (plugin.properties.empty()) return; // it declares nothing, so it may read anything
    owner = plugin_name;
    of_owner.clear();
    for (const auto& property : plugin.properties)
      of_owner.push_back(property.key);
  }
  if (known.contains(name)) return;
  const auto near = base::nearest(name, {known.begin(), known.end()});
  std::string hint;
  if (!near.empty()) hint = "did you mean " + near + "? ";
  if (!owner.empty())
    hint += "plugin " + owner + " has " + base::join(of_owner, ", ");
  else {
    std::vector<std::string> plugins;
    for (const auto& [plugin_name, plugin] : catalog.plugins())
      plugins.push_back(plugin_name);
    hint += "holdfast config --plugin NAME lists the options of " + base::join(plugins, ", ");
  }
  throw base::Error(base::ErrorClass::usage, "--option " + name + ": no plugin has such an option", hint);
}

} // namespace holdfast::cli
