#pragma once
// The verbs, each in a file of its own; related ones share one (pause, resume and cancel: steer.cpp; exclude:
// scope.cpp; runner: run.cpp; worker: work.cpp; manual: completion.cpp). verbs.cpp has the table, also of those that
// are one operation.

#include "services/cli/command/verb.hpp"

namespace holdfast::cli {

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
Action search_verb(CLI::App& command);
Action show_verb(CLI::App& command);
Action migrate_verb(CLI::App& command);
Action config_verb(CLI::App& command);
Action version_verb(CLI::App& command);
Action check_verb(CLI::App& command);
Action verify_verb(CLI::App& command);
Action adopt_verb(CLI::App& command);
Action export_verb(CLI::App& command);
Action import_verb(CLI::App& command);
Action import_warc_verb(CLI::App& command); // below it
Action why_verb(CLI::App& command);
Action events_verb(CLI::App& command);
Action log_level_verb(CLI::App& command);
Action serve_verb(CLI::App& command);
Action completion_verb(CLI::App& command);
Action manual_verb(CLI::App& command);
Action psql_verb(CLI::App& command);
Action token_verb(CLI::App& command);
Action webhook_verb(CLI::App& command);
Action doctor_verb(CLI::App& command);
Action plugins_verb(CLI::App& command);
Action binary_verb(CLI::App& command);
Action persona_verb(CLI::App& command);
Action logs_verb(CLI::App& command);
Action inspect_verb(CLI::App& command);

} // namespace holdfast::cli
