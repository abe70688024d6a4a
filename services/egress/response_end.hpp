#pragma once
// Finds the end of a response on a connection that stays open. One thread at a time.

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace holdfast::egress {

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
