#pragma once
// Reads messages of HTTP, as they were on the wire, from events of DevTools. Pure functions.

#include "lib/warc/writer.hpp"
#include "services/capture/hook.hpp"

#include <optional>
#include <string>

namespace holdfast::capture {

// Reads a Headers object of DevTools, in which values that were sent under one name are joined by line ends.
Headers headers_from(const Json& object);
// Returns the bytes of the values, which DevTools reads as windows-1252.
Headers as_sent(Headers headers);
// Returns the fields in the order of the text of a head of HTTP/1. Those that it does not have are the last.
Headers in_order_of(std::string_view text, Headers fields);
// Reads a list of {name, value}.
Headers headers_from_list(const Json& list);

// A response as Network.responseReceivedExtraInfo tells it, which is what came, also where the browser answers from its
// cache.
struct SentResponse {
  int status{0};
  std::string reason;
  Headers headers;
};
SentResponse sent_response(const Json& extra);

// The body of a request, by the request of Network.requestWillBeSent; nullopt: it must be asked for.
std::optional<std::string> request_body(const Json& request);

// Returns the reason phrase of HTTP/1.1, because a response of HTTP/2 has none.
std::string reason_of(int status);

enum class Length { unknown, right, wrong };
// Compares the announced length with what has come. The length of a coded body is that of its code.
Length compared(const warc::Exchange& exchange, std::uint64_t size);

} // namespace holdfast::capture
