#pragma once
// Reads from a place in a file. Any thread.

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast::base {

// Up to `size` bytes, also if a signal interrupts. 0: the file ends before them; -1, with errno: that cannot be.
inline ssize_t read_at(int descriptor, char* buffer, std::size_t size, std::uint64_t offset) noexcept {
  for (;;) {
    const auto count = ::pread(descriptor, buffer, size, static_cast<off_t>(offset));
    if (count >= 0 || errno != EINTR) return count;
  }
}

// Whether the file has this text at a place.
inline bool holds_at(int descriptor, std::uint64_t offset, std::string_view text) {
  std::string there(text.size(), '\0');
  return read_at(descriptor, there.data(), there.size(), offset) == static_cast<ssize_t>(text.size()) && there == text;
}

// Hands on the bytes from `begin` to `end`, or to where the file ends. Returns how many; -1, with errno: that cannot
// be.
template <typename Take>
std::int64_t each_piece(int descriptor, std::uint64_t begin, std::uint64_t end, Take&& take) {
  std::string piece(begin < end ? std::min<std::uint64_t>(end - begin, 1u << 18) : 0, '\0');
  auto at = begin;
  while (at < end) {
    const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(piece.size(), end - at));
    const auto got = read_at(descriptor, piece.data(), most, at);
    if (got < 0) return -1;
    if (got == 0) break;
    take(std::string_view(piece).substr(0, static_cast<std::size_t>(got)));
    at += static_cast<std::uint64_t>(got);
  }
  return static_cast<std::int64_t>(at - begin);
}

} // namespace holdfast::base
