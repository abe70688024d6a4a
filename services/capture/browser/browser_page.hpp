#pragma once
// Requests to the browser that the hook that loads a page shares with the hooks that look at it.

#include "services/capture/browser/devtools.hpp"

#include <filesystem>
#include <string>
#include <utility>

namespace holdfast::capture {

inline constexpr double kLargestSide = 8192; // of a window or a picture, in pixels

// Returns the size of the window: <PLUGIN>_RESOLUTION or RESOLUTION. Throws Ending if it is not WIDTH,HEIGHT.
std::pair<int, int> resolution(const Job& job);
Json device_metrics(std::pair<int, int> size);

// Returns the identity of Chromium, as with windows: parameters of Emulation.setUserAgentOverride. `own`: its user
// agent, as it is without one. USER_AGENT replaces it, and IDENTIFY adds a contact.
Json identity(const std::string& own);

// The socket of the crawl's browser.
std::filesystem::path browser_socket();

// If Chromium shows an error page of its own instead of the page: "the page led to URL: ". Empty: it shows the page.
std::string error_page_shown(DevTools& browser, const std::string& session, Clock::time_point until);
inline constexpr const char* kShownText = "document.body.innerText"; // is evaluated in it
// Returns the error on such a page. Chromium may only report that a navigation was aborted.
std::string reason_on_error_page(DevTools& browser, const std::string& session, Clock::time_point until);

// Answers alert(), confirm() and prompt(), which would block the page. Returns true if the event was one.
bool close_dialog(DevTools& browser, const std::string& method, const Json& parameters, const std::string& session);

} // namespace holdfast::capture
