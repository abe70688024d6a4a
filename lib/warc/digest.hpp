#pragma once
// Digests, and their text. Values only.

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace holdfast::warc {

// A running SHA-1 or SHA-256.
class Digest {
public:
  enum class Kind { sha1, sha256 };
  explicit Digest(Kind kind);
  Digest(const Digest& other);
  Digest& operator=(const Digest&) = delete;
  ~Digest();
  void add(std::string_view bytes);
  std::string finish(); // the raw digest; once

private:
  struct Closer {
    void operator()(void* context) const;
  };
  std::unique_ptr<void, Closer> context_;
};

// As a WARC header has it: "sha1:" and the digest in base32.
std::string sha1_text(std::string_view digest);

} // namespace holdfast::warc
