#include "lib/pg/session.hpp"

#include "lib/base/text/text.hpp"
#include "lib/pg/answer_watch.hpp"
#include "lib/pg/conninfo.hpp"
#include "lib/pg/sqlstate.hpp"

#include <pqxx/except>
#include <pqxx/nontransaction>
#include <pqxx/result>
#include <spdlog/spdlog.h>

#include <exception>
#include <mutex>
#include <set>

namespace holdfast::pg {
namespace {

using base::ErrorClass;

constexpr std::size_t kLongestReason = 2000; // of a failure, in characters

// libpq has no SQLSTATE of a refused connection, but the text of the server is recognisable: "FATAL:  ..." with two
// blanks.
DatabaseError connect_failure(const std::string& text, const std::string& conninfo, const ConnectionOptions& options) {
  const std::string message = "cannot connect to the database: " + in_one_line(text);
  if (text.find("startup parameter") != std::string::npos) {
    return DatabaseError(ErrorClass::configuration, kCannotConnect, message,
                         "PgBouncer: set ignore_startup_parameters = options in pgbouncer.ini");
  }
  if (text.find("no password supplied") != std::string::npos) {
    return DatabaseError(ErrorClass::configuration, kCannotConnect, message,
                         "put the password into database.url or into ~/.pgpass");
  }
  if (text.find(":  ") == std::string::npos) {
    const char* hint = "is the server running, and database.url right?";
    if (text.find("could not translate host name") != std::string::npos)
      hint = "is the host in database.url right, and does the name server know it?";
    else if (text.find("SSL") != std::string::npos || text.find("certificate") != std::string::npos)
      hint = "see the certificate of the server, until when it is valid, and sslmode and sslrootcert in database.url";
    return DatabaseError(ErrorClass::unavailable, kCannotConnect, message, hint);
  }
  const std::string sqlstate = sqlstate_of_refusal(conninfo, options.connect_timeout);
  if (sqlstate.empty()) return DatabaseError(ErrorClass::temporary, kCannotConnect, message);
  ErrorClass error_class = class_of_sqlstate(sqlstate);
  if (error_class == ErrorClass::bug) error_class = ErrorClass::unavailable;
  return DatabaseError(error_class, sqlstate, message,
                       sqlstate == "42501"                        ? "grant connect on this database to the login"
                       : error_class == ErrorClass::configuration ? "check database.url"
                                                                  : "");
}

std::unique_ptr<pqxx::connection> connect(const std::string& dsn, const ConnectionOptions& options) {
  const std::string conninfo = session_conninfo(with_password(dsn), options);
  try {
    return std::make_unique<pqxx::connection>(conninfo);
  } catch (const std::exception& error) {
    throw connect_failure(error.what(), conninfo, options);
  }
}

// Settings that change the text of a value, or the meaning of a statement. Set after connecting, and read back: the
// startup options are ignored by PgBouncer, and an administrator may give roles and databases settings of their own.
struct Pinned {
  const char *name, *value;
  bool kept{false};                 // by PgBouncer for each client, also in transaction mode
  const char* instead_of = nullptr; // pinned only where it is this; any other value is the administrator's choice
  bool fits(std::string_view found) const { return instead_of == nullptr ? found == value : found != instead_of; }
};
constexpr Pinned kPinned[] = {
    {"datestyle", "ISO, MDY", true},
    {"timezone", "UTC", true},
    {"standard_conforming_strings", "on", true},
    {"search_path", "public, holdfast", true}, // without it, statements fail and mean nothing else
    {"intervalstyle", "postgres"},
    {"bytea_output", "hex"},
    {"extra_float_digits", "1"},
    {"transform_null_equals", "off"},
    {"array_nulls", "on"},
    {"quote_all_identifiers", "off"},
    {"xmlbinary", "base64"},
    {"row_security", "on"},
    {"gin_fuzzy_search_limit", "0"},
    {"exit_on_error", "off"},
    {"default_transaction_isolation", "read committed"},
    {"synchronous_commit", "on", false, "off"}}; // else a crash of the server loses confirmed commits

// Behind a pooler, the next transaction may have a server session that has only its defaults.
void require_defaults(pqxx::nontransaction& transaction) {
  std::string names, wrong;
  for (const auto& pinned : kPinned)
    if (!pinned.kept) names += (names.empty() ? "" : ",") + std::string(pinned.name);
  const auto rows = transaction.exec("select lower(name), reset_val, current_user from pg_settings "
                                     "where lower(name) = any ('{" +
                                     names + "}')");
  for (const auto& row : rows)
    for (const auto& pinned : kPinned)
      if (row[0].c_str() == std::string_view(pinned.name) && !pinned.fits(row[1].c_str()))
        wrong += (wrong.empty() ? "" : "; ") + ("alter role " + std::string(row[2].c_str())) + " set " + pinned.name +
                 " = '" + pinned.value + "'";
  if (!wrong.empty())
    throw DatabaseError(ErrorClass::configuration, kCannotConnect,
                        "sessions come by way of a pooler, which does not keep settings, and those of this login would "
                        "change what is read",
                        wrong);
}

void pin_settings(pqxx::connection& session, const ConnectionOptions& options) {
  const AnswerDeadline deadline(session.sock(), options.connect_timeout);
  try {
    pqxx::nontransaction transaction(session);
    std::string statement = "select pg_backend_pid()";
    for (const auto& pinned : kPinned) {
      const std::string name = std::string("'") + pinned.name + "'", value = std::string("'") + pinned.value + "'";
      const std::string found = "current_setting(" + name + ")";
      statement += ", set_config(" + name + ", " +
                   (pinned.instead_of == nullptr ? value
                                                 : "case " + found + " when '" + pinned.instead_of + "' then " + value +
                                                       " else " + found + " end") +
                   ", false)";
    }
    const auto row = transaction.exec(statement)[0];
    int column = 0;
    const bool pooled = row[column].as<int>() != session.backendpid();
    for (const auto& pinned : kPinned)
      if (const std::string found = row[++column].c_str(); !pinned.fits(found))
        throw DatabaseError(ErrorClass::configuration, kCannotConnect,
                            "the database does not take the setting " + std::string(pinned.name) + ": it stays " +
                                found);
    if (pooled) require_defaults(transaction);
  } catch (const base::Error&) {
    throw;
  } catch (const std::exception& error) {
    throw DatabaseError(ErrorClass::temporary, kSessionLost,
                        "cannot set up the database session: " + in_one_line(error.what()));
  }
}

// The timeline is that of the WAL being written: the control file has the new one only after a checkpoint.
SessionTimeline ask_timeline(pqxx::connection& session, const ConnectionOptions& options) {
  const AnswerDeadline deadline(session.sock(), options.connect_timeout);
  try {
    pqxx::nontransaction transaction(session);
    const auto rows = transaction.exec(
        "select case when pg_is_in_recovery() then '0' else substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) end,"
        " system_identifier from pg_control_system()");
    const auto timeline = std::stoul(rows[0][0].c_str(), nullptr, 16);
    return timeline == 0 ? SessionTimeline{} : see_timeline(rows[0][1].c_str(), static_cast<std::uint32_t>(timeline));
  } catch (const pqxx::broken_connection& error) {
    throw DatabaseError(ErrorClass::temporary, kSessionLost, "lost the database session: " + in_one_line(error.what()));
  } catch (const pqxx::sql_error& error) {
    spdlog::debug("the database does not tell its timeline: {}", in_one_line(error.what()));
    return {};
  }
}

DatabaseError old_primary(const std::string& server, const SessionTimeline& timeline) {
  const auto file = timelines_file();
  return DatabaseError(ErrorClass::unavailable, kCannotConnect,
                       "the database server " + server + " is an old primary: it is on timeline " +
                           std::to_string(timeline.own) + ", and timeline " + std::to_string(timeline.newest->load()) +
                           " of the same system has been seen",
                       "stop it, or make it a standby of the new primary" +
                           (file.empty() ? std::string() : "; if it was restored on purpose, remove " + file.string()));
}

// Connection strings with which this process has had a session. A later obstacle (a password that is being rotated, a
// database that is being restored) may pass.
class KnownLogins {
public:
  void add(const std::string& dsn) {
    const std::lock_guard lock(mutex_);
    known_.insert(dsn);
  }
  bool contain(const std::string& dsn) {
    const std::lock_guard lock(mutex_);
    return known_.contains(dsn);
  }

private:
  std::mutex mutex_;
  std::set<std::string> known_;
};
KnownLogins known_logins;

std::unique_ptr<pqxx::connection> log_in(const std::string& dsn, const ConnectionOptions& options) {
  try {
    auto connection = connect(dsn, options);
    known_logins.add(dsn);
    return connection;
  } catch (const base::Error& error) {
    if (error.error_class() != ErrorClass::configuration || !known_logins.contain(dsn)) throw;
    throw DatabaseError(ErrorClass::temporary, kCannotConnect, error.what(), error.hint());
  }
}

Session open_one(const std::string& dsn, const ConnectionOptions& options) {
  Session opened{log_in(dsn, options), {}};
  pin_settings(*opened.connection, options);
  opened.timeline = ask_timeline(*opened.connection, options);
  if (!opened.timeline.superseded()) return opened;
  const char* host = opened.connection->hostname();
  const char* port = opened.connection->port();
  const auto error = old_primary(std::string(host ? host : "") + ":" + (port ? port : ""), opened.timeline);
  spdlog::warn("{}", error.what());
  throw error;
}

// Combines the failures of two hosts: if one may pass, the result may, so that the caller tries again.
DatabaseError both(const DatabaseError& first, const DatabaseError& second) {
  const bool may_pass = first.error_class() != ErrorClass::temporary && second.error_class() == ErrorClass::temporary;
  const auto& main = may_pass || first.hint().empty() ? second : first;
  return DatabaseError(may_pass ? second.error_class() : first.error_class(), main.sqlstate(),
                       std::string(first.what()) + "; " + second.what(), main.hint());
}

} // namespace

std::string in_one_line(std::string_view text) {
  if (text.find("client encoding") != std::string_view::npos) return "the server closed the connection";
  return base::one_line(text, kLongestReason);
}

// libpq goes on to the next host only if the connection itself is refused: not if a proxy or a dying server accepts and
// then hangs up.
Session open_session(const std::string& dsn, const ConnectionOptions& options) {
  const auto hosts = hosts_to_try(dsn);
  if (hosts.empty()) return open_one(dsn, options);
  std::optional<DatabaseError> failure;
  for (const auto& host : hosts) {
    try {
      auto session = open_one(with_host(dsn, host), options);
      connected_to(dsn, host);
      return session;
    } catch (const DatabaseError& error) {
      failure.emplace(failure ? both(*failure, error) : error);
    }
  }
  throw *failure;
}

std::optional<SessionTimeline> look_at_server(const std::string& dsn, const ConnectionOptions& options) {
  try {
    pqxx::connection session(session_conninfo(with_password(dsn), options));
    return ask_timeline(session, options);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

} // namespace holdfast::pg
