#include "lib/base/error.hpp"
#include "lib/store/schema.hpp"
#include "services/cli/command/verbs.hpp"
#include "services/cli/terminal/output.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <iostream>
#include <memory>

namespace holdfast::cli {

namespace {

int version(Context& context) {
  if (context.json())
    print_record("Version", {{"version", HOLDFAST_VERSION}, {"revision", store::migrator().revision()}});
  else
    std::cout << "holdfast " << HOLDFAST_VERSION << ", schema revision " << store::migrator().revision() << std::endl;
  return base::kExitSuccess;
}

} // namespace

Action version_verb(CLI::App&) { return &version; }

namespace {

int migrate(Context& context, const pg::MigrateOptions& what) {
  // context.connection() would refuse the very schema which is to be migrated.
  pg::ConnectionOptions options;
  options.statement_timeout = std::chrono::hours(1);
  pg::Connection connection(context.dsn(), options);
  const auto report = store::migrator().migrate(connection, what);
  const bool newer = report.revision > store::migrator().revision();
  const auto lacking = newer || !report.may_change ? std::vector<store::Lacking>{} : store::complete_schema(connection);
  if (context.json()) {
    auto left = nlohmann::json::array();
    for (const auto& [part, why, statement] : lacking)
      left.push_back({{"what", part}, {"why", why}, {"statement", statement}});
    print_record("Migration", {{"revision", report.revision}, {"applied", report.applied}, {"lacking", left}});
  } else {
    for (const auto& name : report.applied)
      std::cout << "applied " << name << '\n';
    std::cout << "the schema is at revision " << report.revision
              << (newer                    ? ", of a newer release; this program can work with it"
                  : report.applied.empty() ? ", nothing to do"
                                           : "")
              << std::endl;
  }
  for (const auto& [part, why, statement] : lacking)
    std::cerr << "without " << part << ": " << why << "; an administrator of the server runs\n  " << statement
              << "\nand then you: holdfast migrate" << std::endl;
  return base::kExitSuccess;
}

} // namespace

Action migrate_verb(CLI::App& command) {
  const auto what = std::make_shared<pg::MigrateOptions>();
  command.add_flag("--force", what->force, "Migrate even if programs run that are too old for it");
  return [what](Context& context) { return migrate(context, *what); };
}

} // namespace holdfast::cli
