#pragma once
// The verbs, each in a file of its own; related ones share one (pause, resume and cancel: steer.cpp; exclude:
// scope.cpp; runner: run.cpp; worker: work.cpp; manual: completion.cpp). verbs.cpp has the table, also of those that
// are one operation.

#include "services/cli/context/context.hpp"

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace holdfast::cli {

// Registration of verbs. Each verb has a file of its own with one function, which registers the verb's options and
// returns its action; verbs.cpp has the table of all. Main thread.

// Runs the verb with the options that were parsed; returns the exit code. Failures are Errors, which main prints.
using Action = std::function<int(Context&)>;

struct Verb {
  const char* name;
  const char* help;
  const char* examples;             // one a line; `holdfast VERB --help` shows them
  Action (*add)(CLI::App& command); // options that the action needs are kept alive by it
};

// The action that the command line has chosen; set while it is parsed.
using Choice = std::shared_ptr<Action>;

// Adds a verb below `parent`; `choice` becomes what `add` returns if the command line names it.
using AddVerb = std::function<Action(CLI::App& command)>;
void attach_verb(CLI::App& parent, const Choice& choice, const std::string& name, const std::string& help,
                 const std::string& examples, const AddVerb& add);

// For a verb that only groups others: requires one of them, and runs that.
class Group {
public:
  explicit Group(CLI::App& command);
  void verb(const std::string& name, const std::string& help, const std::string& examples, const AddVerb& add) {
    attach_verb(command_, choice_, name, help, examples, add);
  }
  Action action() const;

private:
  CLI::App& command_;
  Choice choice_;
};

std::span<const Verb> all_verbs();

Action add_verb(CLI::App& command);
Action worker_verb(CLI::App& command);
Action run_verb(CLI::App& command);
Action runner_verb(CLI::App& command);
Action steer_verb(CLI::App& command); // pause, resume, cancel: by its name
Action drain_verb(CLI::App& command);
Action retry_verb(CLI::App& command);
Action exclude_verb(CLI::App& command);
Action scope_verb(CLI::App& command);
Action host_verb(CLI::App& command);
Action edit_verb(CLI::App& command);
Action remove_verb(CLI::App& command);
Action schedule_verb(CLI::App& command);
Action status_verb(CLI::App& command);
Action list_verb(CLI::App& command);
Action diff_verb(CLI::App& command);
Action search_verb(CLI::App& command);
Action show_verb(CLI::App& command);
Action migrate_verb(CLI::App& command);
Action config_verb(CLI::App& command);
Action version_verb(CLI::App& command);
Action check_verb(CLI::App& command);
Action verify_verb(CLI::App& command);
Action adopt_verb(CLI::App& command);
Action backup_verb(CLI::App& command);
Action restore_verb(CLI::App& command);
Action export_verb(CLI::App& command);
Action import_verb(CLI::App& command);
Action import_warc_verb(CLI::App& command); // below it; the next, too
Action import_page_verb(CLI::App& command);
Action why_verb(CLI::App& command);
Action events_verb(CLI::App& command);
Action log_level_verb(CLI::App& command);
Action serve_verb(CLI::App& command);
Action completion_verb(CLI::App& command);
Action manual_verb(CLI::App& command);
Action psql_verb(CLI::App& command);
Action account_verb(CLI::App& command);
Action token_verb(CLI::App& command);
Action share_verb(CLI::App& command);
Action shelf_verb(CLI::App& command);
Action watch_verb(CLI::App& command);
Action webhook_verb(CLI::App& command);
Action doctor_verb(CLI::App& command);
Action plugins_verb(CLI::App& command);
Action binary_verb(CLI::App& command);
Action persona_verb(CLI::App& command);
Action logs_verb(CLI::App& command);
Action inspect_verb(CLI::App& command);

} // namespace holdfast::cli
