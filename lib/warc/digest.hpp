#pragma once
// Digests, and their text. Values only.

#include <nettle/sha1.h>

#include <string>
#include <string_view>

namespace holdfast::warc {

// A running SHA-1.
class Digest {
public:
  Digest() { sha1_init(&context_); }
  void add(std::string_view bytes);
  std::string finish(); // the raw digest; it begins anew

private:
  sha1_ctx context_{};
};

std::string base32(std::string_view bytes);

} // namespace holdfast::warc
