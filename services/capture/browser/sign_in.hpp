#pragma once
// A browser that a user drives from elsewhere, to sign in to a site (services/worker/session/sign_ins.hpp). Its
// standard input is a socket that the worker connects with a view, now and then with another one. Messages in both
// directions are JSON texts that end with a NUL; their member "type" is their kind (PersonsBrowser::take_input,
// html/persona_view.js). Typed text goes to the browser and nowhere else. One thread; ends with that socket, or once
// the state is kept in CRAWL_DIR/browser/state.json, as Playwright writes it.

#include <string>

namespace holdfast::capture {

// Returns the exit status: 0 if the state was kept.
int run_sign_in(const std::string& url);

} // namespace holdfast::capture
