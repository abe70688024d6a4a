#pragma once
// The persona of a page's browser context: cookies, storage, logins and headers of AUTH_STORAGE_FILE (Playwright's
// storage state, with additions of lib/persona/state.hpp), or the cookies of COOKIES_FILE alone (Netscape's format). A
// missing file gives nothing. Owned by the tab or the user's browser; nothing of it is logged or kept with the page.

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
  // Reads the cookies of the context, and the storage of these origins. An origin that could not be read has its name
  // alone.
  Json read(const std::string& context, const std::set<std::string>& origins, Clock::time_point until);
  // Takes an event of the page on which storage is restored; returns false for events of others, of which it notes the
  // secrets that they send.
  bool take(const std::string& method, const Json& parameters, const std::string& session);
  // Writes what the context has now into changes/ beside the file, if there is that directory.
  void keep(const std::string& context, const std::string& page_url, Clock::time_point until);

  // Returns why the page of `requested` is the one without a login, by the checks of the persona and the answer to its
  // credentials; empty: it is not, as far as they show. `shown`: it has a document in `session`.
  std::string why_signed_out(const std::string& context, const std::string& session, const std::string& requested,
                             const std::string& url, int status, bool shown, Clock::time_point until);

  // Returns true if the browser acts for a user: with cookies, storage, passwords or headers.
  bool signs_in() const;
  // User and password for a server of this origin.
  std::optional<std::pair<std::string, std::string>> login(const std::string& origin) const;
  // Headers to send to this URL besides its own, as Fetch.continueRequest takes them; null: none.
  Json headers(const std::string& url, const Json& own) const;

private:
  // Restores an entry of "origins" on an empty page for which no server is asked, or reads one. Null: failed.
  Json on_origin(const std::string& context, const std::string& origin, const Json& given, Clock::time_point until);
  bool is_for(const std::string& host) const;
  void note_sent(const std::string& method, const Json& parameters);
  void give_cookies(const std::string& context, const Json& cookies, Clock::time_point until);

  DevTools& browser_;
  std::string file_;
  Json state_;
  std::set<std::pair<std::string, std::string>> sent_; // names and values of secrets
  std::string session_;                                // of the page that storage is put in place on
};

} // namespace holdfast::capture
