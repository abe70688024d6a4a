#pragma once
// The bytes of one body: small ones in memory, larger ones in a file without a name in the current directory. Used from
// one thread.

#include "lib/base/file.hpp"
#include "lib/warc/gzip.hpp"

#include <nettle/sha1.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast::warc {

// Digests as WARC headers have them: "sha1:" and the SHA-1 in base32. Values only.
class Digest {
public:
  Digest() { sha1_init(&context_); }
  void add(std::string_view bytes);
  std::string finish(); // and starts over

private:
  sha1_ctx context_{};
};

std::string sha1_of(std::string_view bytes);

class Spool {
public:
  Spool() = default;
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;
  void add(std::string_view bytes);
  void clear();
  std::uint64_t size() const { return size_; }
  std::string payload_digest() const;
  // The whole body in pieces, from its start.
  template <typename Take>
  void read(Take&& take) const {
    if (!file_) return take(std::string_view(memory_));
    if (base::each_piece(file_.get(), 0, size_, take) < 0) cannot("cannot read a spooled body");
  }
  // At most the first `most` bytes.
  std::string head(std::size_t most) const;

private:
  std::string memory_;
  base::Fd file_;
  std::uint64_t size_{0};
  Digest digest_;
};

} // namespace holdfast::warc
