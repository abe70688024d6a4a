#pragma once
// Differences between libpqxx 6.4, 7.8 and 7.10, behind one set of names; the only file that checks the version.
// Private to lib/pg, and to its .cpp files. One thread at a time, as the connection it works on.

#include "lib/pg/result.hpp"

#include <pqxx/connection>
#include <pqxx/except>
#include <pqxx/nontransaction>
#include <pqxx/notification>
#include <pqxx/result>
#include <pqxx/transaction>
#include <pqxx/version>

#include <exception>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#define HOLDFAST_PQXX_7_10 (PQXX_VERSION_MAJOR > 7 || (PQXX_VERSION_MAJOR == 7 && PQXX_VERSION_MINOR >= 10))

#include <pqxx/prepared_statement>
#if PQXX_VERSION_MAJOR >= 7
#include <pqxx/params>
#endif
#if !HOLDFAST_PQXX_7_10
#include <pqxx/errorhandler>
#endif

namespace holdfast::pg::compat {

using TextSink = std::function<void(const char* text)>;

// The SQLSTATE of any exception of the library; empty if it is no report of the server. Version 6 has some exceptions
// that are no sql_error, and some that are one but lost their SQLSTATE.
inline std::string sqlstate_of(const std::exception& error) {
  const auto is = [&]<class Known>(std::in_place_type_t<Known>) {
    return dynamic_cast<const Known*>(&error) != nullptr;
  };
  if (const auto* reported = dynamic_cast<const pqxx::sql_error*>(&error)) {
    if (!reported->sqlstate().empty()) return reported->sqlstate();
  }
  if (is(std::in_place_type<pqxx::deadlock_detected>)) return "40P01";
  if (is(std::in_place_type<pqxx::serialization_failure>)) return "40001";
  if (is(std::in_place_type<pqxx::statement_completion_unknown>)) return "40003";
  if (is(std::in_place_type<pqxx::transaction_rollback>)) return "40000";
  if (is(std::in_place_type<pqxx::insufficient_privilege>)) return "42501";
  if (is(std::in_place_type<pqxx::syntax_error>)) return "42601";
  return {};
}

#if PQXX_VERSION_MAJOR >= 7

inline pqxx::params raw(const Params& params) {
  pqxx::params raw_params;
  for (const auto& value : params.values()) {
    if (value) {
      raw_params.append(*value);
    } else {
      raw_params.append();
    }
  }
  return raw_params;
}

inline pqxx::result exec_prepared(pqxx::transaction_base& transaction, const std::string& name, const Params& params) {
#if HOLDFAST_PQXX_7_10
  return transaction.exec(pqxx::prepped{name}, raw(params));
#else
  return transaction.exec_prepared(name, raw(params));
#endif
}

inline pqxx::result exec_unprepared(pqxx::transaction_base& transaction, const std::string& sql, const Params& params) {
#if HOLDFAST_PQXX_7_10
  return transaction.exec(sql, raw(params));
#else
  return transaction.exec_params(sql, raw(params));
#endif
}

// Versions 7 never reconnect by themselves.
inline void forbid_reconnect(pqxx::connection&) {}

#else

inline std::vector<const char*> raw(const Params& params) {
  std::vector<const char*> raw_params;
  for (const auto& value : params.values())
    raw_params.push_back(value ? value->c_str() : nullptr);
  return raw_params;
}

inline pqxx::result exec_prepared(pqxx::transaction_base& transaction, const std::string& name, const Params& params) {
  const auto raw_params = raw(params);
  return transaction.exec_prepared(name, pqxx::prepare::make_dynamic_params(raw_params));
}

inline pqxx::result exec_unprepared(pqxx::transaction_base& transaction, const std::string& sql, const Params& params) {
  const auto raw_params = raw(params);
  return transaction.exec_params(sql, pqxx::prepare::make_dynamic_params(raw_params));
}

// A new backend behind the same object would have lost locks, settings and the LISTEN without a word.
inline void forbid_reconnect(pqxx::connection& connection) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  connection.inhibit_reactivation(true);
#pragma GCC diagnostic pop
}

#endif

#if HOLDFAST_PQXX_7_10

// Sends the payloads of one channel to a sink. Belongs to the connection, which must outlive it.
class Listener {
public:
  Listener(pqxx::connection& connection, const std::string& channel, TextSink sink) {
    connection.listen(channel, [sink = std::move(sink)](pqxx::notification event) { sink(event.payload.c_str()); });
  }
};

// Keeps notices off standard error, where the library would print them.
class NoticeTap {
public:
  NoticeTap(pqxx::connection& connection, TextSink sink) {
    connection.set_notice_handler([sink = std::move(sink)](pqxx::zview text) { sink(text.c_str()); });
  }
};

#else

class Listener : private pqxx::notification_receiver {
public:
  Listener(pqxx::connection& connection, const std::string& channel, TextSink sink)
      : pqxx::notification_receiver(connection, channel), sink_(std::move(sink)) {}

private:
  void operator()(const std::string& payload, int) override { sink_(payload.c_str()); }
  TextSink sink_;
};

class NoticeTap : private pqxx::errorhandler {
public:
  NoticeTap(pqxx::connection& connection, TextSink sink) : pqxx::errorhandler(connection), sink_(std::move(sink)) {}

private:
  bool operator()(const char text[]) noexcept override {
    sink_(text);
    return false; // no further handler: the last one prints
  }
  TextSink sink_;
};

#endif

} // namespace holdfast::pg::compat
