#pragma once
// Decides from the words of a page whether it is the requested one. Pure.

#include <cstddef>
#include <string>

namespace holdfast::capture {

struct Shown {
  std::string title, words; // of the main document, their beginning
  std::string language;     // as the main document states it
  std::string asked, url;   // the address of the snapshot, and that of the main document
  bool login{false};        // it shows a field for a password
  bool login_alone{false};  // and little else
  std::size_t size{0};      // characters, with those of frames
  bool pictures{false}, scripts{false};
};

// Returns true for a nearly empty page whose text announces more.
bool looks_unfinished(const Shown& now);

// Returns true for a text that stands where another will be: "Loading events".
bool announces_more(const std::string& text);
// How the doubt about a page begins that stands in front of the requested one.
inline constexpr const char* kChallenge = "the site shows a challenge or a block";
// Returns why it is not the page: a login form for which the address does not ask, a challenge, only "Loading", or less
// than at first; empty if nothing says so.
std::string doubt_about(const Shown& now, std::size_t shown_at_first);

} // namespace holdfast::capture
