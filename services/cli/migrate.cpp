#include "lib/base/error.hpp"
#include "lib/store/schema.hpp"
#include "services/cli/verbs.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <iostream>
#include <memory>

namespace holdfast::cli {

namespace {

int migrate(Context& context, bool force) {
  // Not context.connection(): that one refuses the very schema which is to be migrated.
  pg::ConnectionOptions options;
  options.statement_timeout = std::chrono::hours(1);
  pg::Connection connection(context.dsn(), options);
  const auto report = store::migrator().migrate(connection, force);
  if (context.json()) {
    std::cout
        << nlohmann::json{{"type", "Migration"}, {"revision", report.revision}, {"applied", report.applied}}.dump()
        << std::endl;
  } else {
    for (const auto& name : report.applied)
      std::cout << "applied " << name << '\n';
    std::cout << "the schema is at revision " << report.revision
              << (report.revision > store::migrator().revision() ? ", of a newer release; this program can work with it"
                  : report.applied.empty()                       ? ", nothing to do"
                                                                 : "")
              << std::endl;
  }
  return base::kExitSuccess;
}

} // namespace

Action migrate_verb(CLI::App& command) {
  const auto force = std::make_shared<bool>(false);
  command.add_flag("--force", *force, "Migrate even if programs run that are too old for it");
  return [force](Context& context) { return migrate(context, *force); };
}

} // namespace holdfast::cli
