#pragma once
// SHA-256 as 64 lower-case hexadecimal digits. A Sha256 belongs to one thread; sha256_hex may be called on any.

#include <nettle/sha2.h>

#include <string>
#include <string_view>

namespace holdfast::base {

class Sha256 {
public:
  Sha256() { sha256_init(&context_); }
  void update(std::string_view bytes);
  std::string finish(); // and starts over

private:
  sha256_ctx context_{};
};

std::string sha256_hex(std::string_view text);

} // namespace holdfast::base
