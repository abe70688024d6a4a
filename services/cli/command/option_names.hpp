#pragma once
// Names that `--option NAME=VALUE` may have, as the plugins of this machine declare them. Pure.

#include "lib/hooks/plugin_set.hpp"

#include <string>

namespace holdfast::cli {

// Throws Error(usage) with the nearest name, or the names there are, if it is none that a crawl may set.
// Everything is accepted where there are no plugins.
void check_option_name(const hooks::PluginSet& plugin_set, const std::string& name);

} // namespace holdfast::cli
