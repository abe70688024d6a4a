#pragma once

#include "services/cli/context/context.hpp"

namespace holdfast::cli {

// Returns the origin of archived files of `holdfast serve` with these settings.
std::string files_url(const config::Settings& settings);

} // namespace holdfast::cli
