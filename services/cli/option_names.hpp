#pragma once
// Names that `--option NAME=VALUE` may have, as the plugins of this machine declare them. Pure.

#include "lib/hooks/catalog.hpp"

#include <string>

namespace holdfast::cli {

// Throws Error(usage) with the nearest name, or the names there are, if no plugin knows the option and none that
// declares nothing could. Everything is accepted where there are no plugins.
void check_option_name(const hooks::Catalog& catalog, const std::string& name);

} // namespace holdfast::cli
