#pragma once
// How much may come out of compressed bytes from elsewhere. Deflate can make a thousand of one; lists and pages that
// mean no harm become ten or fifty times as large.

#include <algorithm>
#include <cstddef>

namespace holdfast::base {

inline constexpr std::size_t kUnpackedFreely = std::size_t{16} << 20, kMostExpansion = 200;

// The most that `packed` bytes may unpack to, where `limit` bytes would be too many in any case.
constexpr std::size_t most_unpacked(std::size_t packed, std::size_t limit) {
  return std::min(limit, std::max(kUnpackedFreely, packed > limit / kMostExpansion ? limit : packed * kMostExpansion));
}

} // namespace holdfast::base
