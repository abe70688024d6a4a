#pragma once
// Plugins found on disk: a directory with an optional config.json and hooks. Read once and immutable afterwards, so that a
// deploy of plugins never changes a snapshot in flight; share it by shared_ptr between jobs.

#include "lib/hooks/hook_name.hpp"

#include <nlohmann/json_fwd.hpp>

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::hooks {

// One property of a plugin's config.json (contract section 1.14).
struct Property {
  std::string key;                  // "WGET_TIMEOUT"
  std::string type;                 // string, boolean, integer, number, array, object
  std::string default_value;        // serialised as it goes into the environment; {VAR} not yet interpolated
  bool has_default{false};
  std::vector<std::string> enumeration;
  std::optional<double> minimum, maximum;
  std::string pattern;
  std::vector<std::string> aliases; // x-aliases
  std::string fallback;             // x-fallback
  bool sensitive{false};            // x-sensitive: never stored, never printed
  std::string description;
};

struct RequiredBinary {
  std::string name;        // "wget" or "{WGET_BINARY}"
  std::string providers;   // "env,apt"
  std::string min_version;
};

struct Plugin;

struct Hook {
  HookName name;
  std::filesystem::path path;     // the file
  bool executable{false};         // else it is run through the interpreter of its extension
  const Plugin* plugin{nullptr};  // owned by the same catalog
};

struct Plugin {
  std::string name;                 // the directory's name: the plugin's identity
  std::filesystem::path directory;
  std::string title, description;
  std::vector<Property> properties;
  std::vector<std::string> required_plugins;
  std::vector<RequiredBinary> required_binaries;
  std::vector<std::string> output_mimetypes;
  std::vector<Hook> hooks;          // all events, in order
};

class Catalog {
public:
  // Reads every directory in turn; a plugin in a later directory replaces one of the same name. Names starting with "." or
  // "_" are ignored. Throws Error(configuration) naming file and line of a config.json that is not valid, and
  // Error(unavailable) for a directory that does not exist.
  static std::shared_ptr<const Catalog> load(const std::vector<std::filesystem::path>& directories);

  const std::map<std::string, Plugin>& plugins() const noexcept { return plugins_; }
  const Plugin* find(const std::string& name) const;

  // The closure over required_plugins of `roots` (all plugins that are enabled by default if empty), dependencies first.
  // A root may carry a trailing or leading comma-free name only. Throws Error(usage) for an unknown plugin, listing the
  // known ones, and Error(configuration) for a cycle or a dependency that `disabled` forbids.
  std::vector<std::string> select(const std::vector<std::string>& roots, const std::vector<std::string>& disabled = {}) const;

  // Hooks of an event in the selected plugins, by (order, name), hooks without a number last.
  std::vector<const Hook*> hooks_for(Event event, const std::vector<std::string>& selected) const;

private:
  std::map<std::string, Plugin> plugins_;
};

} // namespace holdfast::hooks
