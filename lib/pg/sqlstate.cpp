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
  std::string_view way_out{}; // replaces the server's hint
};

// The first rule that fits wins, so exceptions stand before their class. What no rule names is something about the
// server that may pass, and not a bug of ours: its text is reported while calls are repeated.
// clang-format off
constexpr std::array kRules{
    Rule{kBrokenInvariant, ErrorClass::bug},
    Rule{kLeaseLapsed, ErrorClass::lease_lost},
    Rule{kStaleFence, ErrorClass::lease_lost},
    Rule{kRefused, ErrorClass::refused},
    Rule{"08", ErrorClass::temporary},               // connection lost or refused
    Rule{"20", ErrorClass::bug},                     // classes 20 to 23, 26, 34, 42, P0: a statement of ours is wrong
    Rule{"21", ErrorClass::bug},
    Rule{"22", ErrorClass::bug},
    Rule{"23", ErrorClass::bug},
    Rule{"25006", ErrorClass::temporary,             // we may sit on a standby during a failover
         "this server is a standby or takes no writes: name the primary in database.url, or all servers; or reset "
         "default_transaction_read_only"},
    Rule{"25P03", ErrorClass::temporary},            // idle in transaction for too long
    Rule{"25P04", ErrorClass::temporary, "if transaction_timeout of the role or database is too short: reset it"},
    Rule{"25", ErrorClass::bug},
    Rule{"26", ErrorClass::bug},
    Rule{"28", ErrorClass::configuration},           // wrong user or password
    Rule{"34", ErrorClass::bug},
    Rule{"3D000", ErrorClass::configuration},        // no such database
    Rule{"3F000", ErrorClass::schema_mismatch, "holdfast migrate"}, // no schema "holdfast"
    Rule{"40", ErrorClass::temporary},               // serialisation failure, deadlock, unknown outcome
    Rule{"42501", ErrorClass::configuration, "grant the missing privilege to the role in database.url"},
    Rule{"42883", ErrorClass::schema_mismatch, "holdfast migrate"}, // no such function
    Rule{"42P01", ErrorClass::schema_mismatch, "holdfast migrate"}, // no such table or view
    Rule{"42", ErrorClass::bug},
    Rule{"53100", ErrorClass::temporary, "make room on the disk of the database server"},
    Rule{"53200", ErrorClass::temporary,
         "the database server needs more memory; for shared memory, a greater max_locks_per_transaction"},
    Rule{"53300", ErrorClass::temporary,
         "all connections of the database server are in use: end some, or raise max_connections or the limit of the role "
         "or database"},
    Rule{"53400", ErrorClass::temporary, "if temp_file_limit of the role or server is too small: raise it"},
    Rule{"54000", ErrorClass::temporary,             // among others, the queue of notifications is full
         "if its queue of notifications is full: end the transaction of the session that listens, then select "
         "pg_notification_queue_usage()"},
    Rule{kLockTimeout, ErrorClass::temporary},
    Rule{"57014", ErrorClass::temporary,             // statement timeout, or someone has cancelled it
         "if statement_timeout of the role or database is too short: reset it"},
    Rule{"57P03", ErrorClass::temporary, "the database server starts or recovers: wait"},
    Rule{"57P04", ErrorClass::configuration},        // database dropped
    Rule{"58030", ErrorClass::temporary, "the disk of the database server reports errors: see its log"},
    Rule{"P0", ErrorClass::bug},
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

const Rule& rule_of(std::string_view sqlstate) {
  static constexpr Rule kUnknown{"", ErrorClass::temporary};
  const auto rule = std::find_if(kRules.begin(), kRules.end(),
                                 [&](const Rule& candidate) { return sqlstate.starts_with(candidate.prefix); });
  return rule == kRules.end() ? kUnknown : *rule;
}

} // namespace

DatabaseError::DatabaseError(ErrorClass error_class, std::string_view sqlstate, const std::string& message,
                             std::string hint)
    : base::Error(error_class, message, std::move(hint)), sqlstate_(sqlstate) {
  if (error_class != ErrorClass::refused && error_class != ErrorClass::lease_lost)
    base::count("holdfast_worker_database_errors_total", {{"class", std::string(to_string(error_class))}});
}

ErrorClass class_of_sqlstate(std::string_view sqlstate) noexcept {
  return sqlstate.empty() ? ErrorClass::bug : rule_of(sqlstate).error_class;
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
  if (const auto ours = rule_of(sqlstate).way_out; !ours.empty()) hint = ours;
  return DatabaseError(error_class, sqlstate, message, std::move(hint));
}

} // namespace holdfast::pg
