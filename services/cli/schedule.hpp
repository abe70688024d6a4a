#pragma once
// holdfast schedule add|list|pause|resume|remove|run-now|next. Main thread.

#include "services/cli/verbs.hpp"

#include <functional>
#include <string>

namespace CLI {
class App;
}

namespace holdfast::cli {

struct ScheduleOptions {
  AddOptions crawl; // what each run adds
  std::string every, time_zone, name;
  int count{5};
};

// Adds the verb to the command line. `options` and `verb` must live until the command line has been parsed and the verb
// has run.
void add_schedule_commands(CLI::App& app, ScheduleOptions& options, std::function<int(Context&)>& verb);

} // namespace holdfast::cli
