#pragma once
// A check of a persona, proposed from what differs between a page with it and the same page without. Pure.

#include "services/capture/hook.hpp"

#include <set>
#include <string>

namespace holdfast::capture {

struct Sight { // of a page that has been loaded
  std::string url;
  std::set<std::string> labels;  // of its links and buttons, in lower case
  std::set<std::string> cookies; // names of those that its scripts do not see
  bool asks_password{false};
};

// A list, as a persona's checks are kept (lib/store/persona.hpp). The surest one alone: where the login is; else its
// form; else the label that signs out; else the cookie of the session. "none" if nothing differs.
Json proposed_checks(const Sight& with, const Sight& without);

} // namespace holdfast::capture
