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
  std::string finish(); // the raw digest; starts over

private:
  sha1_ctx context_{};
};

// As a WARC header has it: "sha1:" and the digest in base32.
std::string sha1_text(std::string_view digest);
// The same of these bytes.
std::string sha1_of(std::string_view bytes);

} // namespace holdfast::warc
