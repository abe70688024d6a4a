#pragma once
// The environment and the arguments of a hook (contract sections 1.5-1.7, 1.14; design decisions 22-24). Pure functions over
// maps: nothing is read from our own environment except through `inherited`, which the caller builds from the allow-list.

#include "lib/hooks/catalog.hpp"

#include <chrono>
#include <map>
#include <string>
#include <vector>

namespace holdfast::hooks {

using Options = std::map<std::string, std::string>; // "WGET_TIMEOUT" -> "30"

struct HookContext {
  std::string snapshot_id, crawl_id, url, source_url; // source_url: the crawl's seeds, one a line
  int depth{0};
  std::filesystem::path data_dir, crawl_dir, snapshot_dir, temporary_dir, library_dir, personas_dir;
  std::string persona{"Default"};
  std::string snapshot_title, snapshot_tags;
};

// PATH, HOME, LANG, LC_*, TZ, TERM-less: the variables of our own environment that a hook may see, plus `extra` names.
// Proxies: HTTP_PROXY, HTTPS_PROXY, NO_PROXY, ALL_PROXY in either case. HOLDFAST_* and PG* never pass.
std::map<std::string, std::string> inherited_environment(const std::vector<std::string>& extra);

// Every property of the plugin and of its required plugins, resolved: own name, then aliases, in `options`; else the
// x-fallback key if that is explicitly in `options`; else the schema default with {VAR} interpolated. Throws
// Error(configuration) naming plugin and key if a value does not fit its type, enum, bounds or pattern.
Options resolve_options(const Catalog& catalog, const Plugin& plugin, const Options& options);

// The hook's timeout: <PLUGIN>_TIMEOUT in options > TIMEOUT in options > schema default of <PLUGIN>_TIMEOUT > 60 s; at
// most 12 h (contract section 1.11).
std::chrono::milliseconds hook_timeout(const Plugin& plugin, const Options& options);

// <PLUGIN>_ENABLED or its aliases; true unless an option or the schema says false.
bool plugin_enabled(const Plugin& plugin, const Options& options);

// "NAME=value" list for Command::environment: inherited, then global keys of the contract with their old aliases
// (SNAP_DIR and SNAPSHOT_DIR, CRAWL_DIR and CRAWL_OUTPUT_DIR, ABXPKG_LIB_DIR and LIB_DIR, ...), then resolved options.
std::vector<std::string> hook_environment(const Catalog& catalog, const Hook& hook, const Options& options,
                                          const HookContext& context,
                                          const std::map<std::string, std::string>& inherited);

// argv: the file itself when it is executable, else interpreter and file; then --url= and --snapshot-id= for snapshot
// hooks, --url=, --crawl-id= and --source-url= for crawl hooks.
std::vector<std::string> hook_arguments(const Hook& hook, const HookContext& context);

} // namespace holdfast::hooks
