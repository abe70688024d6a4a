#pragma once
// Directories of snapshots in the archive that no row names. Main thread.

#include "lib/archive/recover.hpp"
#include "services/cli/context/context.hpp"

#include <filesystem>
#include <functional>
#include <string>

namespace holdfast::cli {

// Tells the directories of snapshots that no row names. `below`: relative to the root. Returns how many have one.
std::size_t each_unknown_directory(pg::Connection& connection, const archive::Files& files,
                                   const std::filesystem::path& below,
                                   const std::function<void(const std::string&)>& found);

} // namespace holdfast::cli
