#pragma once
// Compares a page with its last capture. Pure.

#include "lib/change/fingerprint.hpp"

#include <cstddef>
#include <string>

namespace holdfast::change {

struct Change {
  // first, same, text, look, links, title, status, gone or back: the first of them that holds, in the order gone, back,
  // status, text, title, links, look.
  std::string kind{"first"};
  std::size_t words_added{0}, words_removed{0}, words_moved{0}, links_added{0}, links_removed{0};
  double look_share{0}; // of the page's area: pictures and texts that look otherwise
  bool learnt{false};   // what differed became the mask, because both captures followed each other at once
};

struct Compared {
  Change change;
  Fingerprint next; // for the capture after this one
};

// `learn`: the captures follow each other at once. What differs is learnt as noise, once for a URL.
Compared compare(const Fingerprint& earlier, Shape now, bool learn);
// A page that is not there, of which the site answered with a status of 400 or above.
Compared compare_status(Fingerprint earlier, int status);

} // namespace holdfast::change
