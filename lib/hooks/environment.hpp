#pragma once
// The environment and the arguments of a hook by the contract. Pure functions
// over maps: nothing is read from our own environment except through `inherited`, which the caller builds from the
// allow-list.

#include "lib/base/text/text.hpp"
#include "lib/hooks/plugin_set.hpp"
#include "lib/process/command.hpp"

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace holdfast::hooks {

using Options = std::map<std::string, std::string>; // "WGET_TIMEOUT" -> "30"

struct HookContext {
  std::string snapshot_id, crawl_id, url, source_url; // source_url: the crawl's seeds, one a line
  int depth{0};
  std::filesystem::path data_dir, crawl_dir, snapshot_dir, temporary_dir, library_dir, personas_dir;
  std::string persona{"Default"};
  std::filesystem::path persona_files; // cookies.txt, auth.json; empty: none, or not for this hook
  std::string snapshot_title, snapshot_tags;
  std::string machine_id;
  std::string last_on_path;      // directories searched after everything else: stand-ins, and our own programs
  std::string runtime{kRuntime}; // ABX_RUNTIME
};

// PATH, HOME, LANG, LC_*, TZ, TERM-less: the variables of our own environment that a hook may see, plus `extra` names.
// Proxies: HTTP_PROXY, HTTPS_PROXY, NO_PROXY, ALL_PROXY in either case. HOLDFAST_* and PG* never pass, even as `extra`.
std::map<std::string, std::string> inherited_environment(const std::vector<std::string>& extra);

// Options that are variables of our own environment: properties of any plugin in the plugin set, by any of their names,
// and the contract's own (TIMEOUT, USER_AGENT, CHECK_SSL_VALIDITY, CHROME_SANDBOX, COOKIES_FILE). Secrets, and names
// that the context decides, are left out; so are those that `given` already has, under any of their names. Empty ones
// count as not set.
Options environment_options(const PluginSet& plugin_set, const Options& given = {});

// Throws Error(configuration) if a user agent has a control character: a hook would send further headers.
void check_agents(const Options& options);

// Resolves every property of the plugin and of its required plugins: own name, then aliases, in `options`; else the
// x-fallback key if that is explicitly in `options`; else the schema default with {VAR} interpolated. A number that
// comes from a fallback is moved into the bounds: TIMEOUT=3 was not meant for a plugin that needs at least 5. Throws
// Error(configuration) naming plugin and key (the value too, unless it is secret) if a given value does not fit its
// type, enum, bounds or pattern.
Options resolve_options(const PluginSet& plugin_set, const Plugin& plugin, const Options& options);

// Returns the options that a crawl may set: those that the plugins declare, by all their names, except for the workers'
// own; of each plugin whether it is enabled and its time limits; and those of the contract that concern a page
// (TIMEOUT, USER_AGENT, ...). No other option of a crawl comes into the environment of a hook.
std::set<std::string> crawl_may_set(const PluginSet& plugin_set);

// Returns the options of a crawl that it may set.
Options crawl_options(const PluginSet& plugin_set, const Options& given);

// The hook's timeout, in seconds: <PLUGIN>_TIMEOUT in options > TIMEOUT in options > schema default of <PLUGIN>_TIMEOUT
// > 60 s; at most 12 h.
std::chrono::milliseconds hook_timeout(const Plugin& plugin, const Options& options);

// Returns how long the hook may go without progress, if an option sets it: <PLUGIN>_STALL_TIMEOUT > STALL_TIMEOUT, in
// seconds; 0: any time.
std::optional<std::chrono::milliseconds> stall_timeout(const Plugin& plugin, const Options& options);

// Returns <PLUGIN>_ENABLED or its aliases (USE_<PLUGIN> and SAVE_<PLUGIN> always are); true unless an option or the
// schema sets false.
bool plugin_enabled(const Plugin& plugin, const Options& options);

// Returns an option that is true or false, however it is written; what is not given, or neither, is `otherwise`.
inline bool enabled(const Options& options, const std::string& key, bool otherwise) {
  const auto found = options.find(key);
  return found == options.end() ? otherwise : base::parse_boolean(found->second).value_or(otherwise);
}

// Returns the plugins of a crawl: those that it names, or, if it names none, every enabled plugin; with those that they
// require, dependencies first, and without those that an option disables. Throws as PluginSet::select does.
std::vector<std::string> selected_plugins(const PluginSet& plugin_set, const std::vector<std::string>& plugins,
                                          const Options& options);

// Returns those of the `selected` plugins to run where the results of the `archived` ones need not be made again:
// missing plugins, plugins that require these, and those that both require. Plugins without a hook for snapshots are
// never missing.
std::vector<std::string> missing_plugins(const PluginSet& plugin_set, const std::vector<std::string>& selected,
                                         const std::vector<std::string>& archived);

// "NAME=value" list for Command::environment: inherited, then global keys of the contract with their old aliases
// (SNAP_DIR and SNAPSHOT_DIR, CRAWL_DIR and CRAWL_OUTPUT_DIR, ABXPKG_LIB_DIR and LIB_DIR, ...), then resolved options.
// Options that no plugin declares pass as they are; a secret that only other plugins declare does not pass, nor does
// the dynamic linker's LD_*. Directories and identity come from `context` alone. PATH: the directories of absolute
// *_BINARY options, the library's bin, NODE_MODULES_DIR/.bin, then what is inherited. Sorted by name, each name once.
// Throws Error(configuration) for a value that no environment can carry, and as resolve_options does.
std::vector<std::string> hook_environment(const PluginSet& plugin_set, const Hook& hook, const Options& options,
                                          const HookContext& context,
                                          const std::map<std::string, std::string>& inherited);

// Returns how a hook was started, for users: a JSON object of command, directory and environment, of at most 8 KiB. The
// value of a variable is there only if it is the contract's, or an option of a plugin that is not secret; else it is
// "(set)". Passwords in URLs are left out.
std::string started_with(const PluginSet& plugin_set, const process::Command& command,
                         const std::filesystem::path& directory);

// argv: the file itself when it is executable (behind the program that runs it, for a built-in hook), else interpreter
// (found on the hook's PATH by /usr/bin/env) and file; then --url= and --snapshot-id= for snapshot hooks, --url= (the
// first seed if the context has none), --crawl-id= and
// --source-url= for crawl hooks. Seeds beyond 64 KiB are cut at a line: the kernel takes 128 KiB an argument.
std::vector<std::string> hook_arguments(const Hook& hook, const HookContext& context);

} // namespace holdfast::hooks
