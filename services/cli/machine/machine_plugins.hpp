#pragma once
// Plugins that `holdfast plugins install` has put on this machine, below <data_dir>/lib: a set is a directory there
// with `plugins` and options.json. plugins.json, beside the sets, lists plugins that were switched on or off.
// Stateless.

#include <filesystem>
#include <functional>
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

// Writing systems that a browser on this machine can show. A character without a font is an empty box in every
// screenshot and PDF. Uses fontconfig, as Chromium does. Used by `holdfast doctor`.
struct FontNeed {
  std::string what;    // "font for Chinese"
  std::string package; // Debian's, that has one
  std::string found;   // the family that fontconfig chose; "": none
};

// Runs a program and returns what it prints, "" if it fails.
using RunProgram = std::function<std::string(const std::vector<std::string>& argv)>;

std::vector<FontNeed> font_needs(const RunProgram& run);

} // namespace holdfast::cli
