#pragma once
// A browser that a person drives from elsewhere, to sign in to a site (services/worker/session/sign_ins.hpp). The view
// connects through a socket in CRAWL_DIR/browser that the worker listens on. Messages in both directions are JSON texts
// that end with a NUL; their member "type" says what they are (PersonsBrowser::take_input, html/persona_view.js). What
// a person types goes to the browser and nowhere else. One thread; ends with the view's connection, or once the state
// is kept.

namespace holdfast::capture {

inline constexpr const char* kViewSocket = "view.sock"; // in CRAWL_DIR/browser
inline constexpr const char* kStateFile = "state.json"; // the same: the browser's state, as Playwright writes it

// Returns the exit status: 0 if the state was kept.
int run_sign_in();

} // namespace holdfast::capture
