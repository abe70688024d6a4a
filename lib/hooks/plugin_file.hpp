#pragma once
// Reads one plugin's config.json. Private to this module.

#include "lib/hooks/plugin_set.hpp"

#include <filesystem>
#include <string_view>

namespace holdfast::hooks {

// Fills title, properties and requirements of `plugin`. Returns false if its x-runtimes leave out `runtime`. Throws
// Error(configuration) as "file:line: message" if it is not valid JSON or a known key has a wrong type; unknown keys
// are allowed, because the schema of others grows.
bool read_plugin_file(const std::filesystem::path& file, std::string_view runtime, Plugin& plugin);

} // namespace holdfast::hooks
