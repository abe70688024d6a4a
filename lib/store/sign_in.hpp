#pragma once
// People who sign in by hand (migrations/functions/87_sign_in.sql). Blocking; call on the thread that owns the
// connection. All may be repeated.

#include "lib/pg/connection.hpp"

#include <chrono>
#include <optional>
#include <string>

namespace holdfast::store {

struct SignIn {
  std::string id, persona, url, asked_by;
  std::string seen_at; // address of this worker, as the database sees it
  std::chrono::milliseconds left{0};
};

// The row of v_persona with this sign-in; none: it has ended.
pg::Result sign_in_row(pg::Connection& connection, const std::string& id);

struct SignInAddress {
  static constexpr std::size_t kKeySize = 64;
  std::string address, certificate_hash; // SHA-256 of what its worker presents
  int port{0};
  std::string key{};     // lets one connection in
  std::string waits{};   // for what, for users
  std::string problem{}; // why there will be none
};
// Prepares a new connection. Throws Error(refused) if another user has the view.
SignInAddress sign_in_open(pg::Connection& connection, const std::string& id, const std::string& by);

// Takes a sign-in for a worker. Errors: lease_lost if it has lapsed.
std::optional<SignIn> sign_in_take(pg::Connection& connection, const std::string& worker);
bool sign_in_ready(pg::Connection& connection, const std::string& worker, const std::string& id,
                   const SignInAddress& place);
// The sign-in that this key lets in; empty: none.
std::string sign_in_check(pg::Connection& connection, const std::string& worker, const std::string& key);

} // namespace holdfast::store
