#pragma once
// Binaries that plugins need: which, where on this machine, how they would be installed. Reads the file system; starts
// nothing. Stateless; any thread.

#include "lib/hooks/environment.hpp"
#include "lib/hooks/plugin_set.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::hooks {

struct WantedBinary {
  std::string name; // as the plugin names it, templates filled in: "wget", "/opt/bin/wget"
  std::string providers, min_version, overrides;
  // True if one of its providers may take it from the environment; else the hook finds it (npm modules and such).
  bool from_environment{true};
};

// Returns the binaries that a plugin requires, without those of plugins that it requires. `resolved`: see
// resolve_options().
std::vector<WantedBinary> wanted_binaries(const Plugin& plugin, const Options& resolved);

std::vector<std::filesystem::path> path_directories(std::string_view path);
bool is_executable(const std::filesystem::path& path);
// A name is looked for in the directories, a path (with a slash) is taken as it is; nullopt if it is not executable.
std::optional<std::string> find_binary(const std::string& name, const std::vector<std::filesystem::path>& directories);

// Returns the first text that looks like a version in the output of a binary: "1.21.3", "128.0.6613.84". Or "".
std::string version_in(std::string_view text);
// Returns true if `version` is older than `wanted`, number by number; false if either has none.
bool older(std::string_view version, std::string_view wanted);

// The interpreter that a hook's first line names ("node", "/bin/bash"), or that its extension stands for. "" if it is
// compiled.
std::string interpreter_of(const Hook& hook);

// Returns the command that installs a binary here, by the first of its providers that `available` (names of managers on
// this machine: apt-get, brew, npm, pip) can serve; "" if none can. Packages are those of its overrides, else its name.
struct Installation {
  std::string manager; // "apt-get"
  std::vector<std::string> packages;
  std::string command() const; // "npm install -g wget"
};
std::optional<Installation> installation_of(const WantedBinary& binary, const std::vector<std::string>& available);

} // namespace holdfast::hooks
