#pragma once
// Requests of servers for user and password (HTTP authentication) in the browser of a sign-in. A person answers the
// first one of a server; the answer is kept for the others, and for the persona. Used from one thread.

#include "services/capture/browser/devtools.hpp"

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::capture {

class Logins {
public:
  explicit Logins(DevTools& browser) : browser_(browser) {}

  // Takes an event Fetch.authRequired. Returns what a person must answer; null: it is answered already.
  Json take(const std::string& session, const Json& parameters, bool may_ask);
  // Answers the first of these requests, and the others of its server, as the view has told; removes them.
  void give(std::vector<Json>& asked, const Json& login);
  // Adds users and passwords to the state of a persona.
  void save(Json& state) const;

private:
  void answer(const Json& asked, Json answer);

  DevTools& browser_;
  std::map<std::string, std::pair<std::string, std::string>> known_; // by origin: user and password
  std::set<std::string> answered_;                                   // requests
};

} // namespace holdfast::capture
