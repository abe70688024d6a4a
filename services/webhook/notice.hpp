#pragma once
// Events as users read them: by e-mail or through Apprise.

#include "lib/archive/diff_page.hpp"
#include "lib/change/diff.hpp"

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace holdfast::webhook {

// Both captures of a notice, from their files.
struct Comparison {
  change::Difference difference;
  std::string picture_before, picture; // small, JPEG; empty: there is none
};

// Reads both captures; directories relative to the root. Leaves empty what is missing or cannot be read. Blocking.
Comparison compare(const archive::OpenFile& open, const std::string& before, const std::string& now);

struct Notice {
  std::string subject, text;
  std::string html;                    // empty: of an event that is no notice of a watch
  std::string picture_before, picture; // named in the HTML as cid:before and cid:now
  std::string timestamp;               // of the event
};

// Returns the notice of an event. `page`: URL of holdfast serve; empty: no links. Pure.
Notice notice_of(const nlohmann::json& event, const std::string& page, const Comparison& comparison);

} // namespace holdfast::webhook
