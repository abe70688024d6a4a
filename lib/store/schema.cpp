#include "lib/store/schema.hpp"

#include "lib/store/call.hpp"
#include "migrations/migrations.hpp"

namespace holdfast::store {

namespace {

std::vector<pg::MigrationFile> convert(const std::vector<migrations::File>& files) {
  std::vector<pg::MigrationFile> converted;
  for (const auto& file : files)
    converted.push_back({file.name, file.text});
  return converted;
}

} // namespace

const pg::Migrator& migrator() {
  static const pg::Migrator instance(convert(migrations::numbered()), convert(migrations::functions()));
  return instance;
}

bool has_schema(pg::Connection& connection) {
  return connection.call("select to_regnamespace('holdfast') is not null").value();
}

std::vector<Lacking> complete_schema(pg::Connection& connection) {
  const auto rows = call(connection, "complete");
  std::vector<Lacking> lacking;
  for (std::size_t i = 0; i < rows.size(); ++i)
    lacking.push_back({rows[i]["what"], rows[i]["why"], rows[i]["statement"]});
  return lacking;
}

std::vector<std::string> database_problems(pg::Connection& connection) {
  const auto rows = connection.call("select says || ': ' || way_out as problem from holdfast.database_waits() "
                                    "union all select says || ': ' || way_out from holdfast.failing_calls() "
                                    "union all select why || ': ' || statement from holdfast.neighbours()");
  std::vector<std::string> problems;
  for (std::size_t i = 0; i < rows.size(); ++i)
    problems.push_back(rows[i]["problem"]);
  return problems;
}

} // namespace holdfast::store
