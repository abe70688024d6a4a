#include "lib/pg/sqlstate.hpp"

#include "lib/base/metrics.hpp"

#include <algorithm>
#include <array>

namespace holdfast::pg {
namespace {

using base::ErrorClass;

struct Rule {
  std::string_view prefix; // a whole SQLSTATE, or its first characters
  ErrorClass error_class;
};

// Rules from SQLSTATE to error class. The first match wins, so exceptions stand before their class. States without a
// rule are bugs.
// clang-format off
constexpr std::array kRules{
    Rule{kLeaseLapsed, ErrorClass::lease_lost},
    Rule{kStaleFence, ErrorClass::lease_lost},
    Rule{kRefused, ErrorClass::refused},
    Rule{"08", ErrorClass::temporary},               // connection lost or refused
    Rule{"25006", ErrorClass::temporary},            // read-only transaction: we sit on a standby during a failover
    Rule{"25P03", ErrorClass::temporary},            // idle in transaction for too long
    Rule{"28", ErrorClass::configuration},           // wrong user or password
    Rule{"3D000", ErrorClass::configuration},        // no such database
    Rule{"3F000", ErrorClass::schema_mismatch},      // no schema "holdfast"
    Rule{"40", ErrorClass::temporary},               // serialisation failure, deadlock, unknown outcome
    Rule{"42501", ErrorClass::configuration},        // the role lacks a grant
    Rule{"42883", ErrorClass::schema_mismatch},      // no such function
    Rule{"42P01", ErrorClass::schema_mismatch},      // no such table or view
    Rule{"53", ErrorClass::temporary},               // disk full, out of memory, too many connections
    Rule{"55006", ErrorClass::temporary},            // object in use
    Rule{kLockTimeout, ErrorClass::temporary},
    Rule{"57014", ErrorClass::temporary},            // statement timeout or cancelled
    Rule{"57P04", ErrorClass::configuration},        // database dropped
    Rule{"57P", ErrorClass::temporary},              // shutting down, crashed, starting up, idle session ended
    Rule{"58030", ErrorClass::temporary},            // input/output error on the server
};
// clang-format on

// The labels of libpq's message fields; anything else at the start of a line is the text of the field above.
constexpr std::array<std::string_view, 11> kLabels{
    "DETAIL:",     "HINT:",        "QUERY:",    "CONTEXT:",       "LINE ",           "SCHEMA NAME:",
    "TABLE NAME:", "COLUMN NAME:", "LOCATION:", "DATATYPE NAME:", "CONSTRAINT NAME:"};

void append_line(std::string& text, std::string_view line) {
  while (!line.empty() && (line.front() == ' ' || line.front() == '\t'))
    line.remove_prefix(1);
  while (!line.empty() && (line.back() == ' ' || line.back() == '\r'))
    line.remove_suffix(1);
  if (line.empty()) return;
  if (!text.empty()) text += ' ';
  text += line;
}

std::string_view hint_of(ErrorClass error_class, std::string_view sqlstate) {
  if (error_class == ErrorClass::schema_mismatch) return "holdfast migrate";
  if (sqlstate == "25006") return "this server is a standby: name the primary in database.url, or all servers";
  if (sqlstate == "42501") return "grant the missing privilege to the role in database.url";
  return {};
}

} // namespace

DatabaseError::DatabaseError(ErrorClass error_class, std::string_view sqlstate, const std::string& message,
                             std::string hint)
    : base::Error(error_class, message, std::move(hint)), sqlstate_(sqlstate) {
  if (error_class != ErrorClass::refused && error_class != ErrorClass::lease_lost)
    base::count("holdfast_worker_database_errors_total", {{"class", std::string(to_string(error_class))}});
}

ErrorClass class_of_sqlstate(std::string_view sqlstate) noexcept {
  const auto rule = std::find_if(kRules.begin(), kRules.end(),
                                 [&](const Rule& candidate) { return sqlstate.starts_with(candidate.prefix); });
  return rule == kRules.end() ? ErrorClass::bug : rule->error_class;
}

bool ends_session(std::string_view sqlstate) noexcept {
  return sqlstate.starts_with("08") || sqlstate.starts_with("57P") || sqlstate == "25P03" || sqlstate == "25P04" ||
         sqlstate == "25006"; // a standby: the next session may find the primary
}

ServerReport parse_server_report(std::string_view text) {
  ServerReport report;
  // "ERROR:  text": the severity is translated by the server, the two blanks are not. Some versions of libpqxx put
  // "Failure during 'x': " in front.
  if (const auto severity = text.find(":  "); severity != std::string_view::npos && severity < text.find('\n')) {
    text.remove_prefix(severity + 3);
  }
  std::string ignored;
  std::string* field = &report.message;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const auto label = std::find_if(kLabels.begin(), kLabels.end(),
                                    [&](std::string_view candidate) { return line.starts_with(candidate); });
    if (label != kLabels.end()) {
      field = *label == "DETAIL:" ? &report.detail : *label == "HINT:" ? &report.hint : &ignored;
      line.remove_prefix(label->size());
    }
    append_line(*field, line);
  }
  return report;
}

DatabaseError make_database_error(std::string_view sqlstate, std::string_view server_text, std::string_view statement) {
  constexpr std::size_t kStatementShown = 120;
  const ErrorClass error_class = class_of_sqlstate(sqlstate);
  ServerReport report = parse_server_report(server_text);
  std::string message = report.message;
  if (error_class != ErrorClass::refused) {
    if (!report.detail.empty()) message += ": " + report.detail;
    std::string excerpt;
    for (const char c : statement.substr(0, kStatementShown))
      excerpt += (c == '\n' || c == '\t') ? ' ' : c;
    if (statement.size() > kStatementShown) excerpt += "...";
    message += " (SQLSTATE " + std::string(sqlstate) + (excerpt.empty() ? "" : " in: " + excerpt) + ")";
  }
  std::string hint = report.hint;
  // "No function matches ... add explicit type casts" does not explain to a user that the schema is older.
  if (const auto ours = hint_of(error_class, sqlstate); !ours.empty()) hint = ours;
  return DatabaseError(error_class, sqlstate, message, std::move(hint));
}

} // namespace holdfast::pg
