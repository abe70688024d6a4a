#pragma once
// Accounts: names with passwords (migrations/functions/84_account.sql). A password is hashed here, by yescrypt of
// libcrypt, and never sent to the database. Blocking.

#include "lib/pg/connection.hpp"

#include <chrono>
#include <optional>
#include <string>

namespace holdfast::store {

// Adds an account, or gives one another password and role. Returns false if there was one. Throws Error(refused) for a
// name that is not allowed, Error(usage) for a password of less than 10 or more than 500 bytes, or with control
// characters.
bool account_set(pg::Connection& connection, const std::string& name, const std::string& role,
                 const std::string& password, const std::string& by);

// Gives an account another password, for which its user has given that of `hash`. Returns false if it has another one
// now. Throws as account_set() does.
bool account_change(pg::Connection& connection, const std::string& name, const std::string& hash,
                    const std::string& password, const std::string& by);

struct AccountAsked {
  std::chrono::seconds wait{0}; // after wrong passwords; zero: not at all
  std::string hash;             // empty: there is no such account
};
// Begins to sign in, and counts the attempt. `peer`: the client's address.
AccountAsked account_ask(pg::Connection& connection, const std::string& name, const std::string& peer);
// Returns true if it is the password of this hash. Takes as long for an account that there is not. Needs no database:
// it takes about 0.1 s.
bool password_fits(const std::string& hash, const std::string& password);
// Returns the token of a new session with this name; nullopt: the password has changed meanwhile.
std::optional<std::string> account_enter(pg::Connection& connection, const std::string& name, const std::string& peer,
                                         const std::string& hash, const std::string& session,
                                         std::chrono::milliseconds keep, const std::string& by);

} // namespace holdfast::store
