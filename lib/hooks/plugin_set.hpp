#pragma once
// Plugins found on disk: a directory with an optional config.json and hooks. Read once and immutable afterwards, so
// that a deploy of plugins never changes a snapshot in flight; share it by shared_ptr between jobs.

#include <nlohmann/json_fwd.hpp>

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::hooks {

// The file name of a hook: on_<Event>__[<order>_]<rest>[.bg|.finite.bg|.daemon.bg].<ext>.
// Pure.
enum class Event { crawl_setup, snapshot, binary, crawl_end };

struct HookName {
  Event event{};
  int order{-1};         // the two-digit number; -1 if absent
  std::string name;      // file name minus its last extension: "on_Snapshot__35_wget.finite.bg"
  std::string extension; // "sh", "py", "js" or empty
  bool background{false};
  bool daemon{false}; // in the background until it is stopped
};

// nullopt if it is no hook name or of an event that Holdfast never runs. "Crawl" and "CrawlSetup" are the same event; a
// trailing "Event" in the event's name is accepted.
std::optional<HookName> parse_hook_name(std::string_view file_name);

struct Property {
  std::string key;           // "WGET_TIMEOUT"
  std::string type;          // string, boolean, integer, number, array, object
  std::string default_value; // serialised as it goes into the environment; {VAR} not yet interpolated
  bool has_default{false};
  std::vector<std::string> enumeration;
  std::optional<double> minimum, maximum;
  std::string pattern;
  std::vector<std::string> aliases; // x-aliases
  std::string fallback;             // x-fallback
  bool sensitive{false};            // x-sensitive, or a key of is_secret_key(): never stored, never printed
  bool server_only{false};          // x-scope "server": never passed to a hook
  bool workers_own{false};          // x-scope "worker" or "server", or a name of is_workers_own(): no crawl sets it
  std::string description;
};

struct RequiredBinary {
  std::string name;      // "wget" or "{WGET_BINARY}"
  std::string providers; // "env,apt"
  std::string min_version;
  std::string overrides; // settings for single providers, as JSON; may be empty
};

// Returns true for keys whose value must not be stored or printed, regardless of the schema: TOKEN, SECRET, API_KEY,
// APIKEY, PASSWORD or COOKIE_STRING somewhere in them.
bool is_secret_key(std::string_view key);

// Returns true for keys that name programs, their arguments, paths or sandboxes, regardless of the schema: *_BINARY,
// *_ARGS, *_ARGS_EXTRA, *_DIR, *_FILE, *_PATH, *_SANDBOX. They belong to a machine; holdfast.option_of_workers() is the
// same rule.
bool is_workers_own(std::string_view key);

// "wget" -> "WGET": the prefix of a plugin's own keys.
std::string key_prefix(std::string_view plugin);

struct Plugin;

struct Hook {
  HookName name;
  std::filesystem::path path;    // the file
  bool executable{false};        // else it is run through the interpreter of its extension
  const Plugin* plugin{nullptr}; // owned by the same plugin set
};

struct Plugin {
  std::string name; // the directory's name: the plugin's identity
  std::filesystem::path directory;
  std::string title, description;
  std::vector<Property> properties;
  std::vector<std::string> required_plugins;
  std::vector<RequiredBinary> required_binaries;
  std::vector<std::string> output_mimetypes;
  std::vector<Hook> hooks; // all events, in order
  // True if its success means that the page is archived. False for plugins that work on saved files of others, or that
  // save something about the page.
  bool captures_page{true};
  bool enabled_by_default{true}; // false if its schema has false as default of <PLUGIN>_ENABLED
};

// Name of the host program for plugins, which their x-runtimes must allow. Not "archivebox": under that name the hooks
// leave discovered URLs to urls.jsonl alone, and search plugins expect its database.
inline constexpr std::string_view kRuntime = "abx-dl";

class PluginSet {
public:
  PluginSet() = default;
  PluginSet(const PluginSet&) = delete; // hooks point to their plugins
  PluginSet& operator=(const PluginSet&) = delete;

  // Reads every directory in turn; a plugin in a later directory replaces one of the same name. Names starting with "."
  // or
  // "_" are ignored, as are directories with neither a config.json nor a hook, and plugins whose x-runtimes leave out
  // `runtime`. A hook is a regular file (or a link to one) with an executable bit or a known extension. Throws
  // Error(configuration) naming file and line of a config.json that is not valid, and Error(unavailable) for a
  // directory that does not exist.
  static std::shared_ptr<const PluginSet> load(const std::vector<std::filesystem::path>& directories,
                                               std::string_view runtime = kRuntime);

  const std::map<std::string, Plugin>& plugins() const noexcept { return plugins_; }
  const Plugin* find(const std::string& name) const;

  // Returns this plugin and all that it requires, also those that are not in the plugin set.
  std::vector<std::string> with_required(const std::string& name) const;
  // The first plugin that is not in the plugin set, of this one and all that it requires; "": there is none.
  std::string lacking(const std::string& name) const;

  // Returns true if some plugin declares an option of this name.
  bool is_option(const std::string& key) const { return options_.contains(key); }

  // Returns the closure over required_plugins of `roots` (all plugins that are enabled by default if empty),
  // dependencies first. A root may itself be a list, "wget,title". A root that `disabled` names is left out: disabling
  // has priority. Throws Error(usage) for an unknown root, listing the known ones, and Error(configuration) for a
  // cycle. A dependency that is missing or that `disabled` forbids is Error(configuration) for a root that was named,
  // while default roots that require it are left out.
  std::vector<std::string> select(const std::vector<std::string>& roots,
                                  const std::vector<std::string>& disabled = {}) const;

  // Hooks of an event in the selected plugins, by (order, name), hooks without a number last.
  std::vector<const Hook*> hooks_for(Event event, const std::vector<std::string>& selected) const;

private:
  std::map<std::string, Plugin> plugins_;
  std::set<std::string> options_;
};

} // namespace holdfast::hooks
