#pragma once
// One PostgreSQL session (libpqxx inside, hidden). Owned by one thread at a time; never shared. After any error of
// class `temporary` that says the connection is broken (`broken()` is true) the object must be destroyed, never reused:
// libpqxx 6 would silently reconnect without the session's state. The destructor closes the session; an open
// Transaction is rolled back first.
//
// Errors: SQLSTATE is mapped to base::ErrorClass in sqlstate.hpp. Broken connection, shutdown, serialisation failure,
// deadlock, lock/statement timeout, too many connections -> temporary; kLeaseLapsed, kStaleFence -> lease_lost;
// kRefused (by a function, message for users) -> refused; kBrokenInvariant and constraint violations -> bug; disk full
// (53100) -> temporary; cannot connect at all -> unavailable; wrong password or unknown database -> configuration.
//
// A server on an earlier timeline than one seen before is an old primary (hosts.hpp). It is not used: of several
// hosts, the others are tried, and if none is left, that is unavailable. A session whose server is superseded later
// counts as lost.

#include "lib/pg/result.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::pg {

struct ConnectionOptions {
  std::string application_name{"holdfast"};
  std::chrono::milliseconds connect_timeout{5000};
  std::chrono::milliseconds statement_timeout{30000};
  std::chrono::milliseconds lock_timeout{10000};
  std::chrono::milliseconds idle_in_transaction_timeout{60000};
  std::chrono::milliseconds tcp_user_timeout{10000}; // a dead peer costs this much
  // Time after which a call without an answer ends the session, whatever the network reports. Zero: statement_timeout
  // and 5 s more.
  std::chrono::milliseconds answer_timeout{0};
  bool read_only{false}; // default of each transaction
};

class Transaction;

class Connection {
public:
  // dsn: a libpq URI or keyword string. Blocks for at most connect_timeout. Session settings: those that
  // could change a result (kPinned, session.cpp); client_min_messages = warning and the timeouts above, sent in the
  // startup options.
  explicit Connection(const std::string& dsn, const ConnectionOptions& options = {});
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Runs one statement in its own transaction (autocommit). `sql` is prepared once per session and reused.
  Result call(const std::string& sql, const Params& params = {});
  template <class First, class... Rest>
  requires(!std::same_as<First, Params>) Result call(const std::string& sql, const First& first, const Rest&... rest) {
    return call(sql, Params::of(first, rest...));
  }
  // A script of several statements without parameters, in one transaction (migrations).
  void script(const std::string& sql);
  // Runs `work` inside BEGIN/COMMIT; rolls back and rethrows if it throws.
  void transaction(const std::function<void(Transaction&)>& work);

  // LISTEN on a channel; afterwards use descriptor() and notifications().
  void listen(const std::string& channel);
  // Returns the socket, to be dup()ed and watched for reading. Only meaningful while nothing else runs on the session.
  int descriptor() const;
  // Returns notifications that have arrived, without blocking: payloads in order. Throws Error(temporary) if the
  // session is lost.
  std::vector<std::string> notifications();

  bool broken() const noexcept;
  int backend_pid() const noexcept;

private:
  friend class Transaction;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// An open transaction, passed to the work of Connection::transaction. Do not keep it.
class Transaction {
public:
  Result call(const std::string& sql, const Params& params = {});
  template <class First, class... Rest>
  requires(!std::same_as<First, Params>) Result call(const std::string& sql, const First& first, const Rest&... rest) {
    return call(sql, Params::of(first, rest...));
  }
  void script(const std::string& sql);

private:
  friend class Connection;
  struct Impl;
  explicit Transaction(Impl& impl) : impl_(&impl) {}
  Impl* impl_;
};

// Returns which sessions keep statements waiting for locks (holdfast.blockers() of the database). For use after a lock
// timeout. A sentence for users; empty: no session does any more, or the reason is unknown. Reads no table, and so
// waits for no lock.
std::string who_blocks(Connection& connection) noexcept;

} // namespace holdfast::pg
