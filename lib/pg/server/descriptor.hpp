#pragma once
// A file descriptor that is closed by its owner's destructor. Private to lib/pg.

#include <unistd.h>

#include <utility>

namespace holdfast::pg::server {

class Descriptor {
public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() { reset(); }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }

  int get() const noexcept { return number_; }
  explicit operator bool() const noexcept { return number_ >= 0; }
  void reset() noexcept {
    if (number_ >= 0) ::close(number_);
    number_ = -1;
  }

private:
  int number_{-1};
};

} // namespace holdfast::pg::server
