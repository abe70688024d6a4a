#include "lib/warc/digest.hpp"

#include "lib/base/text/encoding.hpp"

#include <cstdint>

namespace holdfast::warc {

void Digest::add(std::string_view bytes) {
  sha1_update(&context_, bytes.size(), reinterpret_cast<const std::uint8_t*>(bytes.data()));
}

std::string Digest::finish() {
  std::string result(SHA1_DIGEST_SIZE, '\0');
  sha1_digest(&context_, result.size(), reinterpret_cast<std::uint8_t*>(result.data()));
  return "sha1:" + base::base32_encode(result);
}

std::string sha1_of(std::string_view bytes) {
  Digest digest;
  digest.add(bytes);
  return digest.finish();
}

} // namespace holdfast::warc
