#pragma once
// holdfast pause|resume|cancel|drain|retry|exclude|scope|host|tag|priority|keep|remove. Main thread.

#include "services/cli/context.hpp"

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace holdfast::cli {

struct ControlOptions {
  std::vector<std::string> ids, plugins, allow, deny, undo, add, remove;
  std::string host, worker, machine, why, domain, crawl, delay, keep, label, notes;
  int parallel{-1}, priority{0};
  bool all{false}, failed{false}, yes{false}, expired{false}, back{false}, wait{false};
};

// Adds the verbs to the command line. `options` and `verb` must live until the command line has been parsed and the
// verb has run.
void add_control_commands(CLI::App& app, ControlOptions& options, std::function<int(Context&)>& verb);

} // namespace holdfast::cli
