#pragma once
// How much may come out of compressed bytes from elsewhere. Deflate can make a thousand of one; lists and pages that
// mean no harm become ten or fifty times as large.

#include <algorithm>
#include <cstddef>
#include <string>

namespace holdfast::base {

inline constexpr std::size_t kUnpackedFreely = std::size_t{16} << 20, kMostExpansion = 200;

// The most that `packed` bytes may unpack to, where `limit` bytes would be too many in any case.
constexpr std::size_t most_unpacked(std::size_t packed, std::size_t limit) {
  return std::min(limit, std::max(kUnpackedFreely, packed > limit / kMostExpansion ? limit : packed * kMostExpansion));
}

struct Unpacked {
  std::string bytes;
  bool whole{false}; // nothing is missing
};
enum class Step { more, whole, damaged };

// What a decoder has, as far as it can be read, and at most so much. next(piece, got) fills `piece` with the next `got`
// bytes.
template <typename Decoder>
Unpacked unpack(Decoder&& decoder, std::size_t most) {
  Unpacked result;
  std::string piece(1u << 16, '\0');
  for (;;) {
    std::size_t got = 0;
    const auto step = decoder.next(piece, got);
    const auto room = most - result.bytes.size();
    result.bytes.append(piece, 0, std::min(got, room));
    if (step == Step::more && got <= room) continue;
    result.whole = step == Step::whole && got <= room;
    return result;
  }
}

} // namespace holdfast::base
