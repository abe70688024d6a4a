#pragma once
// The bytes of one body: small ones in memory, larger ones in a file without a name in the current directory. Used from
// one thread.

#include "lib/warc/digest.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast::warc {

class Spool {
public:
  Spool() = default;
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;
  ~Spool();
  void add(std::string_view bytes);
  std::uint64_t size() const { return size_; }
  std::string payload_digest() const; // raw SHA-1
  // The whole body in pieces, from its start.
  template <typename Take>
  void read(Take&& take) const {
    if (file_ < 0) return take(std::string_view(memory_));
    std::string piece(kPiece, '\0');
    for (std::uint64_t at = 0; at < size_;) {
      const auto count = read_at(at, piece);
      if (count == 0) return;
      take(std::string_view(piece).substr(0, count));
      at += count;
    }
  }
  // At most the first `most` bytes.
  std::string head(std::size_t most) const;

private:
  static constexpr std::size_t kPiece = 1u << 18;
  std::size_t read_at(std::uint64_t offset, std::string& piece) const;

  std::string memory_;
  int file_{-1};
  std::uint64_t size_{0};
  Digest digest_;
};

} // namespace holdfast::warc
