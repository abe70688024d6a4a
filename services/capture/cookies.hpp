#pragma once
// The persona's cookies.

#include "services/capture/devtools.hpp"

namespace holdfast::capture {

// Gives the cookies of COOKIES_FILE (Netscape format) to a browser context. A file that cannot be read gives none.
void load_cookies(DevTools& browser, const std::string& context, const Job& job);

} // namespace holdfast::capture
