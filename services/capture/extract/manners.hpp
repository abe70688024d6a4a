#pragma once
// Decides which requests may follow a press of the reader. A press is judged by its effect: reading.cpp checks each
// request before it leaves the browser. Pure. deploy/plugins/reading.md describes the rules for users.

#include <string>
#include <string_view>

namespace holdfast::capture {

// The most that the reader has pressed so far. It only rises, because effects of a press may come late.
enum class Pressed { nothing, more, shows, unknown };

struct Request {
  std::string method, url, type, body; // type: of DevTools, "Fetch", "Image", ...
  bool known_host{false};              // the page itself has asked it for something before the first press
};

// Returns why a request must not leave the browser; empty if it may.
// - more: something whose whole label asks for more was pressed. It may also POST, but not send a beacon, PUT, PATCH,
//   DELETE, a GraphQL mutation, or a request whose address acts.
// - shows: something that shows more by its role was pressed. Only GET and GraphQL queries may follow.
// - unknown: the same, but to other sites only for pictures, films, fonts, styles and frames.
std::string_view why_held(Pressed pressed, const Request& request, std::string_view page_host);

// Returns true for an address that changes something by its words: /logout, /item/3/delete, ?action=vote.
bool acts(std::string_view url);

} // namespace holdfast::capture
