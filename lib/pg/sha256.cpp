#include "lib/pg/sha256.hpp"

#include "lib/base/error.hpp"

#include <openssl/evp.h>

#include <array>

namespace holdfast::pg {

std::string sha256_hex(std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int length = 0;
  if (EVP_Digest(text.data(), text.size(), digest.data(), &length, EVP_sha256(), nullptr) != 1) {
    throw base::Error(base::ErrorClass::bug, "libcrypto cannot compute SHA-256");
  }
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (unsigned int i = 0; i < length; ++i) {
    hex += kDigits[digest[i] >> 4];
    hex += kDigits[digest[i] & 0x0F];
  }
  return hex;
}

} // namespace holdfast::pg
