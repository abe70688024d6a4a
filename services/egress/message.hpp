#pragma once
// The head of a request to a proxy, and of a response that goes back through it. Pure text, any thread.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace holdfast::egress {

struct RequestHead {
  std::string method;
  std::string host; // lower case; of an IPv6 address without brackets
  std::uint16_t port{0};
  bool tunnel{false};    // CONNECT
  bool lasts{false};     // GET or HEAD without a body, of a client that may send more on its connection
  std::string forwarded; // the head for the server, in origin form, with "Connection: close" unless it lasts; empty for
                         // a tunnel
};

// Reads a head that ends with its empty line. Throws Error(configuration) for what no proxy takes: another form than
// CONNECT host:port or http://host/..., more than one Host that differs from the target. `alone`: nothing has come
// behind it; else it does not last.
RequestHead parse_request(std::string_view head, bool alone = true);

// Returns the length of the head of a response at the start of `bytes`, with its empty line; 0: incomplete.
std::size_t head_length(std::string_view bytes);
// Changes the head of a response so that the connection ends with it; interim heads (100 to 199, but for 101) and other
// text stay unchanged.
std::string closing_response(std::string_view head);
bool is_interim(std::string_view head);

// Finds the end of a response on a connection that stays open. One thread at a time.
class ResponseEnd {
public:
  // `method`: of the request; a response to HEAD has no body, whatever its header.
  explicit ResponseEnd(std::string_view method);
  ~ResponseEnd();
  void take(std::string_view bytes);
  // All of it has come; `behind`: bytes that came after it.
  bool found() const;
  std::size_t behind() const noexcept { return left_.size(); }
  // Returns true if the connection may be used again after the response, once its head is complete. False if the
  // response ends with it, or if there may be two ways to read it: client and proxy must agree where the next response
  // begins.
  bool leaves_open() const;

private:
  class Parser;
  std::unique_ptr<Parser> parser_;
  std::string left_; // not read yet: half a line, or what is behind the end
  bool unreadable_{false};
};

} // namespace holdfast::egress
