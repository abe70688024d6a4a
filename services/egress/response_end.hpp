#pragma once
// Where a response ends on a connection that goes on behind it. One thread at a time.

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace holdfast::egress {

class ResponseEnd {
public:
  // `method`: of the request; a response to HEAD has no body, whatever it says.
  explicit ResponseEnd(std::string_view method);
  ~ResponseEnd();
  // The bytes that came next, from the head on.
  void take(std::string_view bytes);
  // All of it has come; `behind`: bytes that came after it.
  bool found() const;
  std::size_t behind() const noexcept { return left_.size(); }
  // Once its head has come: the connection may be used again after it. Not if the response ends with it, or if there
  // may be two ways to read it: what the client takes for the next response must begin where the proxy takes it to.
  bool leaves_open() const;

private:
  class Parser;
  std::unique_ptr<Parser> parser_;
  std::string left_; // not read yet: half a line, or what is behind the end
  bool unreadable_{false};
};

} // namespace holdfast::egress
