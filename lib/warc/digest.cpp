#include "lib/warc/digest.hpp"

#include <cstdint>

namespace holdfast::warc {

void Digest::add(std::string_view bytes) {
  sha1_update(&context_, bytes.size(), reinterpret_cast<const std::uint8_t*>(bytes.data()));
}

std::string Digest::finish() {
  std::string result(SHA1_DIGEST_SIZE, '\0');
  sha1_digest(&context_, result.size(), reinterpret_cast<std::uint8_t*>(result.data()));
  return result;
}

std::string base32(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
  std::string result;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char letter : bytes) {
    bits = bits << 8 | static_cast<unsigned char>(letter);
    for (count += 8; count >= 5; count -= 5)
      result += kDigits[bits >> (count - 5) & 31];
  }
  if (count > 0) result += kDigits[bits << (5 - count) & 31];
  while (result.size() % 8 != 0)
    result += '=';
  return result;
}

} // namespace holdfast::warc
