#pragma once
// Moves the browser's pointer, wheel and keys in the main frame of a page, as reader/hands.js asks.

#include "services/capture/extract/frames.hpp"

#include <string>

namespace holdfast::capture {

// `hand`: {"point": [[x, y], ...]}, {"wheel": [x, y, by]}, {"drag": [[x, y], ...]} or {"key": "PageDown"}, in pixels of
// the window. Waits for each movement until the page has taken it, at most until `until`.
void move_hand(DevTools& browser, const std::string& session, const Json& hand, const Frames::Wait& wait,
               Clock::time_point until);

} // namespace holdfast::capture
