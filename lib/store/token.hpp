#pragma once
// Tokens for the page and the HTTP API (migrations/functions/83_token.sql). A token itself is never sent to the
// database, only its SHA-256. Blocking; call on the thread that owns the connection.

#include "lib/pg/connection.hpp"

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace holdfast::store {

// Returns a new token, of 256 random bits.
std::string new_token();
// Makes a token. role: reader or operator. Throws Error(refused) for a name that is taken or not
// allowed.
std::string token_add(pg::Connection& connection, const std::string& name, const std::string& role,
                      std::optional<std::chrono::milliseconds> keep, const std::string& by);

struct TokenOwner {
  std::string name, role;
  std::string files_key; // the first part of the addresses of archived files that it is shown
  std::string account;   // that the token acts for; empty: none
};
// Returns the owner of a valid token; else nothing.
std::optional<TokenOwner> token_check(pg::Connection& connection, const std::string& token);

// Makes a token as token_add() does, for the user who asks for it.
std::string own_token_add(pg::Connection& connection, const std::string& name, const std::string& role,
                          std::optional<std::chrono::milliseconds> keep, const std::string& by);

// The crawl that the first request with this key adds: `crawl`, if this is the first. Throws Error(refused) if the key
// came with another body.
std::string api_request_once(pg::Connection& connection, const std::string& caller, const std::string& key,
                             const std::string& body, const std::string& crawl);

std::set<std::string> tokens_valid(pg::Connection& connection, const std::vector<std::string>& names);

// Returns the database role for requests of this role ("reader", "operator"), or empty for the login itself, if this
// database has no roles. Throws Error(refused) if the login may not take the role.
std::string role_of_requests(pg::Connection& connection, const std::string& role);

// Links that share a page or a shelf (migrations/functions/96_share.sql).

struct SharedThing { // one of them
  std::optional<std::string> snapshot, url, shelf;
};
// The id of a link, for its list and to revoke it; made of a UUID.
std::string share_id(const std::string& uuid);
// Makes a link; returns its secret, of which only the digest is stored. nullopt: there is one of this UUID already.
std::optional<std::string> share_add(pg::Connection& connection, const std::string& uuid, const SharedThing& what,
                                     std::chrono::milliseconds keep, const std::string& by);

} // namespace holdfast::store
