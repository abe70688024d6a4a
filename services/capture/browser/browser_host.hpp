#pragma once
// The crawl hook of the browser plugin: one Chromium for a worker and a crawl, shared by the hooks of its pages.
//
// Chromium is driven through a pipe, so that no other process and no web page can reach its DevTools. Hooks connect to
// a socket in the plugin's crawl directory; the host passes their commands on and gives each the answers and the events
// of the sessions it opened. A hook may ask all of the pages that it opens itself, and of those of others what they
// show: a page may have the cookies of a persona. When a connection ends, the browser contexts made through it are
// disposed of, with their pages. If Chromium ends, all connections end, and the next one starts another. One thread;
// SIGTERM ends the browser.

namespace holdfast::capture {

inline constexpr const char* kBrowserSocket = "browser.sock"; // in CRAWL_DIR/browser

// Runs until SIGTERM. Returns the exit status.
int run_browser_host();

// Runs for one client alone until it leaves; `socket` is of the connection. All that happens in the browser is for this
// client, windows that pages open too.
int run_browser_for(int socket);

// Starts the browser and ends it. Returns the exit status.
int try_browser();

} // namespace holdfast::capture
