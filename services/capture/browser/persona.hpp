#pragma once
// The persona of a page's browser context: cookies, storage, logins and headers of AUTH_STORAGE_FILE (Playwright's
// storage state, with additions of lib/persona/state.hpp), or the cookies of COOKIES_FILE alone (Netscape's format).
// A file that is not there gives nothing. Owned by the tab or the person's browser; nothing of it is logged or kept
// with the page.

#include "services/capture/browser/devtools.hpp"

#include <optional>
#include <set>
#include <string>
#include <utility>

namespace holdfast::capture {

class Persona {
public:
  explicit Persona(DevTools& browser);

  // Before the first page of the context.
  void give(const std::string& context, Clock::time_point until);
  // The cookies of the context, and what these origins have stored there. One that could not be read has its name
  // alone.
  Json read(const std::string& context, const std::set<std::string>& origins, Clock::time_point until);
  // Takes an event of the page that storage is put in place on; false: it is another's.
  bool take(const std::string& method, const Json& parameters, const std::string& session);
  // Writes what the context has now into changes/ beside the file, if there is that directory.
  void keep(const std::string& context, const std::string& page_url, Clock::time_point until);

  // Why the page that `requested` led to is the one without a login, by the checks of the persona and the answer to
  // its credentials; empty: it is not, as far as they tell. `shown`: it has a document in `session`.
  std::string why_signed_out(const std::string& context, const std::string& session, const std::string& requested,
                             const std::string& url, int status, bool shown, Clock::time_point until);

  // User and password for a server of this origin.
  std::optional<std::pair<std::string, std::string>> login(const std::string& origin) const;
  // Headers to send to this URL besides its own, as Fetch.continueRequest takes them; null: none.
  Json headers(const std::string& url, const Json& own) const;

private:
  // Puts an entry of "origins" in place, on an empty page that no server is asked for, or answers with one. Null: it
  // could not be done.
  Json on_origin(const std::string& context, const std::string& origin, const Json& given, Clock::time_point until);
  bool is_for(const std::string& host) const;
  void give_cookies(const std::string& context, const Json& cookies, Clock::time_point until);

  DevTools& browser_;
  std::string file_;
  Json state_;
  std::string session_; // of the page that storage is put in place on
};

} // namespace holdfast::capture
