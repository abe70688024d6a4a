#pragma once
// holdfast doctor|binary|persona|logs: what plugins need, what they are given, what they have said. Main thread.

#include "services/cli/context.hpp"

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace holdfast::cli {

// Adds the verbs to the command line; each sets `verb`.
void add_plugin_commands(CLI::App& app, std::function<int(Context&)>& verb);

// What each enabled plugin (or each of those named) lacks on this machine, and the command that installs it. 1 if
// something is missing.
int doctor(Context& context, const std::vector<std::string>& plugins);

struct LogOptions {
  std::string id, plugin;
  bool follow{false};
};
// What hooks of a snapshot or crawl have printed: those that run on this machine, and those that failed.
int logs(Context& context, const LogOptions& options);

struct ConfigOptions {
  std::string key, plugin, crawl;
};
// Options of a plugin or a crawl as its hooks get them, and where each comes from.
int show_options(Context& context, const ConfigOptions& options);

} // namespace holdfast::cli
