#pragma once
// SHA-256 as 64 lower-case hexadecimal digits (libcrypto). A Sha256 belongs to one thread; sha256_hex may be called on
// any.

#include <memory>
#include <string>
#include <string_view>

namespace holdfast::base {

class Sha256 {
public:
  Sha256();
  void update(std::string_view bytes);
  std::string finish(); // once

private:
  std::unique_ptr<void, void (*)(void*)> context_; // EVP_MD_CTX
};

std::string sha256_hex(std::string_view text);

} // namespace holdfast::base
