#pragma once
// Identifies clients and their rights: a token of the database (holdfast token) in the header Authorization or in a
// cookie, or the role of guests. Clients that send wrong tokens have to wait. Any thread.

#include "lib/pg/connection.hpp"
#include "services/serve/http_message.hpp"
#include "services/serve/rates.hpp"

#include <chrono>
#include <mutex>
#include <set>
#include <string>

namespace holdfast::serve {

constexpr std::chrono::seconds kSignedIn{30 * 24 * 3600}; // how long a browser keeps its cookie

enum class Role { none, reader, operator_ };
// "reader" -> Role::reader; none for any other text.
Role role_named(std::string_view name);

struct Caller {
  std::string name; // of the token; empty: a guest
  Role role{Role::none};
  std::string files_key; // of the token

  bool may_read() const noexcept { return role != Role::none; }
  bool may_change() const noexcept { return role == Role::operator_; }
  bool is_guest() const noexcept { return name.empty(); }
  // Returns the name under which the database records commands.
  std::string by() const { return is_guest() ? "a guest of the page" : "token " + name; }
};

class Access {
public:
  // guest: the role of requests without a token. Cookies are named after the collection, because a browser sends those
  // of all ports of a host.
  Access(const std::string& collection_id, Role guest);

  // A token that is not valid is no guest: role none.
  Caller caller(const Request& request, pg::Connection& connection);
  // Returns how long the client must wait before a token in its header is checked, because it sent wrong ones. Tokens
  // that were valid lately never wait. Zero: not at all.
  std::chrono::seconds wait(const Request& request);
  // Makes a secret that signs one browser in, as an operator, once: for the link that an operator of this machine is
  // shown. It is kept in memory alone, and replaces an earlier one.
  std::string make_link();
  // Returns true if this is that secret, which it then is no more.
  bool use_link(const std::string& secret);
  // The value of Set-Cookie that signs a browser in, or out if `token` is empty.
  std::string cookie(const Request& request, const std::string& token) const;

private:
  std::string token_of(const Request& request) const;

  bool was_valid(const std::string& token) const;

  const std::string cookie_;
  const Role guest_;
  Rates wrong_; // tokens
  mutable std::mutex mutex_;
  std::set<std::string> valid_; // digests of tokens
  std::string link_;            // digest of the secret; empty: there is none
};

// Returns true if a page of another origin makes a browser send this. Such a request may change nothing.
bool is_cross_site(const Request& request);

} // namespace holdfast::serve
