#pragma once
// Reads from a place in a file. Any thread.

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace holdfast::base {

// Up to `size` bytes, also if a signal interrupts. 0: the file ends before them; -1, with errno: that cannot be.
inline ssize_t read_at(int descriptor, char* buffer, std::size_t size, std::uint64_t offset) noexcept {
  for (;;) {
    const auto count = ::pread(descriptor, buffer, size, static_cast<off_t>(offset));
    if (count >= 0 || errno != EINTR) return count;
  }
}

} // namespace holdfast::base
