#pragma once
// Requests and responses of the HTTP server, and what may be believed of a request. Pure; any thread.

#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "services/serve/connections.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::store {
struct SignInAddress;
}

namespace holdfast::serve {

using FindFarEnd = std::function<store::SignInAddress()>; // where a WebSocket leads (view_relay.hpp); blocking

struct Request {
  std::string method{"GET"};                     // HEAD counts as GET
  std::string path;                              // decoded, begins with "/"; never holds NUL
  std::multimap<std::string, std::string> query; // decoded, in order
  std::string host;                              // lower case, without the port: letters, digits, ".-_:[]" only
  std::string authority; // the same with the port: what a browser calls our origin, behind the scheme
  std::string authorization, cookie, if_match, if_none_match, accept_encoding, accept_datetime, content_type, origin,
      fetch_site, idempotency_key, last_event_id, body;
  std::string peer;         // the client's address; of IPv6 its network
  std::string user, groups; // as a trusted proxy names them (HttpOptions); empty: none

  bool changes() const noexcept { return method != "GET"; }
  std::string here() const; // path and query, encoded again
  // A parameter of the address, the first of its name; empty if it is not given.
  std::string parameter(const std::string& name) const {
    const auto found = query.find(name);
    return found == query.end() ? "" : found->second;
  }
};

// The fields of a form, in their order: "a=b&c=d". Returns false if it is none.
using Form = std::vector<std::pair<std::string, std::string>>;
bool read_form(std::string_view text, Form& form);
// Reads the form of a request, which may also be multipart/form-data; of a file, its bytes.
bool read_form(const Request& request, Form& form);

struct Response {
  unsigned status{200};
  std::string type{"text/html; charset=utf-8"};
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
  base::Fd file;                    // to send instead of the body
  std::vector<std::string> program; // the same: what this program writes to its standard output, as it comes
  std::shared_ptr<Watch> watch;     // the same: server-sent events
  FindFarEnd far_end;               // the same: a WebSocket, which ends with `watch`

  Response with(std::string name, std::string value) && { // a header
    headers.emplace_back(std::move(name), std::move(value));
    return std::move(*this);
  }
};

Response plain(unsigned status, std::string text);
Response content(std::string type, std::string body);

// application/problem+json (RFC 9457). kind: a class of lib/base/error.hpp, or not_found, unauthorized, forbidden; it
// is also the code, unless `more`, the members beside it, has another.
using Members = std::vector<std::pair<std::string, std::string>>;
Response problem(unsigned status, std::string_view kind, const std::string& detail, const std::string& hint = {},
                 const Members& more = {});
// A refusal in the language of the asker: a problem below /api/, else plain text.
Response refusal(std::string_view target, unsigned status, std::string_view kind, const std::string& detail);

// Returns the sentence for a call of the database that failed and may work later; the log has the server's own words.
std::string outage(const base::Error& error);

// Answers that the client has to wait before it may repeat this.
Response too_many(std::string_view target, std::chrono::seconds wait);

// Entity tags: of an answer, and whether a list as in If-Match names one. A compressed answer has one of its own, which
// names the same.
std::string tag_of(std::string_view body);
bool names_tag(std::string_view list, std::string_view tag);
// Gives a good answer its tag; nothing is sent again that the client has.
void tag_with_digest(const Request& request, Response& response);
// Text, if the client takes it so and it is worth while.
void compress(const Request& request, Response& response);

// Server-sent events; a problem if `watch` is null: too many watch.
Response event_stream(std::shared_ptr<Watch> watch);

// Returns "/path" for "http://host/path", as clients send to a proxy; then `authority` is set, which counts more than a
// Host header.
std::string path_of_target(std::string_view target, std::string& authority);
// "bearer x" -> "Bearer x": the name of a scheme has no case.
std::string with_usual_scheme(std::string_view authorization);
// Splits a request's target: path and query. Returns false if it is malformed.
bool read_target(std::string_view target, Request& request);
// "Host" in lower case, without its port; sets `out` and returns whether it is safe in headers and pages.
bool read_host(std::string_view host, std::string& out);
bool is_header_value(std::string_view value);
// Returns true for a name of a user as a proxy may give it: UTF-8 without control characters, not too long.
bool is_user_name(std::string_view name);

struct ByteRange {
  std::uint64_t begin{0}, end{0};
  enum class What { whole, part, none } what{What::whole}; // none: it has no such bytes
};
// Reads "bytes=100-199" of a file with `size` bytes. Several ranges, and other units, return the whole.
ByteRange read_range(std::string_view header, std::uint64_t size);

// Returns true if a path may be sent as a Location: absolute, on this host, of plain characters.
bool is_plain_path(std::string_view path);
// Returns a path of this server, with its query; "/" for anything else.
std::string local_path(const std::string& path);
Response see_other(const std::string& path);
// Returns true if the request names this server by an address, or by one of its names, in lower case. Without names:
// always. A page elsewhere can make its own name lead here (DNS rebinding), but not an address.
bool is_named(const std::vector<std::string>& names, const Request& request);

// "a%20b" -> "a b"; false for a wrong escape or NUL.
bool percent_decode(std::string_view text, bool plus_is_space, std::string& out);

} // namespace holdfast::serve
