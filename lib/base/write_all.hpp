#pragma once
// Writes to a descriptor that blocks. Any thread.

#include <unistd.h>

#include <cerrno>
#include <string_view>

namespace holdfast::base {

// All of it, also if a signal interrupts or the system takes less at once. False, with errno, if that cannot be.
inline bool write_all(int descriptor, std::string_view bytes) noexcept {
  while (!bytes.empty()) {
    const auto count = ::write(descriptor, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

} // namespace holdfast::base
