#pragma once
// Plugins that `holdfast plugins install` has put on this machine, below <data_dir>/lib: a set is a directory there
// with `plugins` and options.json. plugins.json, beside the sets, lists plugins that were switched on or off.
// Stateless.

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::cli {

// The directories of plugins, by name of the set.
std::vector<std::filesystem::path> machine_plugins(const std::filesystem::path& data_dir);

using MachineOptions = std::pair<std::filesystem::path, std::map<std::string, std::string>>; // and where they stand
// Options of hooks, the strongest first. Throws Error(configuration) with the path of a file that is no JSON object of
// texts.
std::vector<MachineOptions> machine_options(const std::filesystem::path& data_dir);

// Writes the options <PLUGIN>_ENABLED into plugins.json. Throws Error(cannot_create).
void switch_plugins(const std::filesystem::path& data_dir, const std::vector<std::string>& plugins, bool on);

} // namespace holdfast::cli
