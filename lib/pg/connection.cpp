#include "lib/pg/connection.hpp"

#include "lib/base/error.hpp"
#include "lib/base/sha256.hpp"
#include "lib/pg/answer_watch.hpp"
#include "lib/pg/failing_calls.hpp"
#include "lib/pg/pqxx_compat.hpp"
#include "lib/pg/session.hpp"
#include "lib/pg/sqlstate.hpp"

#include <spdlog/spdlog.h>

#include <sys/socket.h>

#include <atomic>
#include <map>
#include <optional>

namespace holdfast::pg {
namespace {

using base::ErrorClass;

constexpr const char* kOutcomeUnknown = "08007";
constexpr pqxx::oid kTimestamptz = 1184; // of pg_type; these never change
constexpr pqxx::oid kInterval = 1186;
constexpr pqxx::oid kTextArray = 1009;
constexpr std::chrono::milliseconds kAnswerSlack{5000}; // for the way there and back, beyond statement_timeout
// A session that has kept us waiting has had its locks for longer.
constexpr const char* kWaits =
    "select string_agg(says || '. ' || way_out || '.', ' ') from holdfast.database_waits('1 second')";

} // namespace

struct Connection::Impl {
  Impl(Session opened, const ConnectionOptions& options)
      : timeline(std::move(opened.timeline)), session(std::move(opened.connection)),
        notices(*session, [](const char* text) {
          try {
            spdlog::debug("database: {}", in_one_line(text));
          } catch (...) { // a notice is not worth an exception inside the library
          }
        }) {
    compat::forbid_reconnect(*session);
    answer_timeout = options.answer_timeout;
    if (answer_timeout.count() == 0 && options.statement_timeout.count() > 0)
      answer_timeout = options.statement_timeout + kAnswerSlack;
    backend_pid = session->backendpid();
  }

  // Runs `action` on the session; every exception of the library leaves as an Error, and a lost session is remembered.
  template <class Action>
  auto guarded(std::string_view statement, Action&& action) {
    if (broken) throw lost("the database session was lost before");
    if (timeline.superseded()) throw lost("its server is an old primary: a later timeline has begun");
    const AnswerDeadline deadline(session->sock(), answer_timeout, &timeline);
    try {
      if constexpr (std::is_void_v<decltype(action())>) {
        action();
        call_worked(statement);
        return;
      } else {
        auto result = action();
        call_worked(statement);
        return result;
      }
    } catch (const base::Error&) {
      throw;
    } catch (const pqxx::in_doubt_error& error) {
      broken = true;
      throw failed(statement,
                   DatabaseError(ErrorClass::temporary, kOutcomeUnknown,
                                 "the database session was lost during COMMIT: " + in_one_line(error.what())));
    } catch (const pqxx::broken_connection& error) {
      throw failed(statement, lost(error.what()));
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& error) {
      const std::string sqlstate = compat::sqlstate_of(error);
      if (!sqlstate.empty()) {
        if (ends_session(sqlstate) || !session->is_open()) broken = true;
        auto failure = make_database_error(sqlstate, error.what(), statement);
        // An administrator has changed something, and can change it back, if the call has worked before or the process
        // has joined.
        if (failure.error_class() == ErrorClass::configuration &&
            (has_worked(statement) || has_worked("holdfast.process_join") || has_worked("holdfast.runner_enter")))
          failure = DatabaseError(ErrorClass::temporary, sqlstate, failure.what(), failure.hint());
        throw failed(statement, failure);
      }
      if (!session->is_open()) throw failed(statement, lost(error.what()));
      throw base::Error(ErrorClass::bug, "the database client failed: " + in_one_line(error.what()));
    }
  }

  DatabaseError failed(std::string_view statement, DatabaseError error) {
    call_failed(statement, error, [this] { return waits(); });
    return error;
  }

  // Returns the reason for which the database waits; empty if it cannot be queried now, such as in a transaction.
  std::string waits() noexcept {
    try {
      if (broken) return "";
      pqxx::nontransaction transaction(*session);
      return transaction.exec(kWaits)[0][0].as<std::string>("");
    } catch (const std::exception&) {
      return "";
    }
  }

  DatabaseError lost(std::string_view reason) {
    broken = true;
    return DatabaseError(ErrorClass::temporary, kSessionLost, "lost the database session: " + in_one_line(reason));
  }

  // The statement's name is a digest of its text: behind a pooler that hands one server session to many clients, equal
  // names then mean equal statements.
  static std::string name_of(const std::string& sql) { return "hf_" + base::sha256_hex(sql).substr(0, 24); }

  pqxx::result execute(pqxx::transaction_base& transaction, const std::string& sql, const Params& params) {
    if (!use_prepared) return compat::exec_unprepared(transaction, sql, params);
    const std::string name = name_of(sql);
    bool has_run = false;
    try {
      auto known = prepared.find(name);
      if (known == prepared.end()) {
        session->prepare(name, sql); // version 6 only takes note of it, and prepares with the first execution
        known = prepared.emplace(name, false).first;
      }
      has_run = known->second;
      auto rows = compat::exec_prepared(transaction, name, params);
      known->second = true;
      return rows;
    } catch (const pqxx::sql_error& error) {
      // A pooler moved us to a server session that lacks the statement (26000) or has it already (42P05), or a
      // migration changed the type of what the statement returns (0A000): prepared statements serve this session no
      // longer.
      const bool statement_lost =
          error.sqlstate() == "26000" || error.sqlstate() == "42P05" || (error.sqlstate() == "0A000" && has_run);
      if (statement_lost) use_prepared = false;
      throw;
    }
  }

  static Result copy(const pqxx::result& rows) {
    Result result;
    for (pqxx::row_size_type column = 0; column < rows.columns(); ++column) {
      result.columns_.emplace_back(rows.column_name(column));
      const auto type = rows.column_type(column);
      result.kinds_.push_back(type == kTimestamptz ? Kind::time
                              : type == kInterval  ? Kind::interval
                              : type == kTextArray ? Kind::list
                                                   : Kind::other);
    }
    result.rows_.reserve(static_cast<std::size_t>(rows.size()));
    for (const auto& row : rows) {
      auto& cells = result.rows_.emplace_back();
      cells.reserve(result.columns_.size());
      for (const auto& field : row) {
        if (field.is_null()) {
          cells.emplace_back(std::nullopt);
        } else {
          cells.emplace_back(std::in_place, field.c_str(), field.size());
        }
      }
    }
    result.affected_ = static_cast<std::size_t>(rows.affected_rows());
    return result;
  }

  Result call_autocommit(const std::string& sql, const Params& params) {
    pqxx::nontransaction transaction(*session);
    const auto rows = execute(transaction, sql, params);
    transaction.commit();
    return copy(rows);
  }

  const SessionTimeline timeline;
  std::unique_ptr<pqxx::connection> session;
  compat::NoticeTap notices;
  std::vector<std::string> payloads;
  std::vector<std::unique_ptr<compat::Listener>> listeners;
  std::map<std::string, bool> prepared; // by name: has it run here?
  bool use_prepared{true};
  bool broken{false};
  std::chrono::milliseconds answer_timeout{0};
  int backend_pid{0};
};

struct Transaction::Impl {
  Connection::Impl& connection;
  pqxx::transaction_base& transaction;
};

namespace {

std::atomic<bool> connected_before{false}; // a server that is still starting is no failure

Session opened(const std::string& dsn, const ConnectionOptions& options) {
  try {
    auto session = open_session(dsn, options);
    call_worked(kConnect);
    connected_before = true;
    return session;
  } catch (const DatabaseError& error) {
    if (connected_before) call_failed(kConnect, error, [] { return std::string(); });
    throw;
  }
}

} // namespace

Connection::Connection(const std::string& dsn, const ConnectionOptions& options)
    : impl_(std::make_unique<Impl>(opened(dsn, options), options)) {
  if (options.read_only) call("set default_transaction_read_only = on");
}

// The library sends UNLISTEN for each listener, and waits for the answer without a deadline: across a dead network that
// would be for ever. A closed socket makes it fail at once; for the server, the end of the session is the same.
Connection::~Connection() {
  if (!impl_->listeners.empty()) ::shutdown(impl_->session->sock(), SHUT_RDWR);
}

Result Connection::call(const std::string& sql, const Params& params) {
  return impl_->guarded(sql, [&] {
    const bool was_prepared = impl_->use_prepared;
    try {
      return impl_->call_autocommit(sql, params);
    } catch (const pqxx::sql_error&) {
      // The refusal came before anything was executed, so it may be repeated without the prepared statement.
      if (!was_prepared || impl_->use_prepared) throw;
      return impl_->call_autocommit(sql, params);
    }
  });
}

void Connection::script(const std::string& sql) {
  transaction([&](Transaction& open) { open.script(sql); });
}

void Connection::transaction(const std::function<void(Transaction&)>& work) {
  std::optional<pqxx::work> open;
  impl_->guarded("begin", [&] { open.emplace(*impl_->session); });
  Transaction::Impl inner{*impl_, *open};
  Transaction handle(inner);
  try {
    work(handle);
  } catch (...) {
    const AnswerDeadline deadline(impl_->session->sock(), impl_->answer_timeout);
    open.reset(); // rolls back
    throw;
  }
  impl_->guarded("commit", [&] { open->commit(); });
}

Result Transaction::call(const std::string& sql, const Params& params) {
  return impl_->connection.guarded(
      sql, [&] { return Connection::Impl::copy(impl_->connection.execute(impl_->transaction, sql, params)); });
}

void Transaction::script(const std::string& sql) {
  impl_->connection.guarded(sql, [&] { impl_->transaction.exec(sql); });
}

void Connection::listen(const std::string& channel) {
  impl_->guarded("listen", [&] {
    impl_->listeners.push_back(std::make_unique<compat::Listener>(
        *impl_->session, channel, [this](const char* payload) { impl_->payloads.emplace_back(payload); }));
  });
}

int Connection::descriptor() const { return impl_->session->sock(); }

std::vector<std::string> Connection::notifications() {
  impl_->guarded("notifications", [&] { impl_->session->get_notifs(); });
  return std::exchange(impl_->payloads, {});
}

bool Connection::broken() const noexcept {
  return impl_->broken || impl_->timeline.superseded() || !impl_->session->is_open();
}

int Connection::backend_pid() const noexcept { return impl_->backend_pid; }

std::string who_blocks(Connection& connection) noexcept {
  try {
    return connection.call(kWaits).value().optional<std::string>().value_or("");
  } catch (const std::exception&) {
    return "";
  }
}

} // namespace holdfast::pg
