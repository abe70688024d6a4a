#pragma once
// Digests as WARC headers have them: "sha1:" and the SHA-1 in base32. Values only.

#include <nettle/sha1.h>

#include <string>
#include <string_view>

namespace holdfast::warc {

class Digest {
public:
  Digest() { sha1_init(&context_); }
  void add(std::string_view bytes);
  std::string finish(); // and starts over

private:
  sha1_ctx context_{};
};

std::string sha1_of(std::string_view bytes);

} // namespace holdfast::warc
