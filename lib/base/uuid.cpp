#include "lib/base/uuid.hpp"

#include "lib/base/error.hpp"
#include "lib/base/text/text.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace holdfast::base {

namespace {

// Time in units of 1/4096 millisecond, which are the 48 + 12 bits that lead a version 7 UUID (RFC 9562, method 3).
// Never the same twice, never smaller than before, whatever the wall clock does.
std::uint64_t next_tick() {
  static std::mutex mutex;
  static std::uint64_t last = 0;

  const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
  const auto nanoseconds =
      static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(since_epoch).count());
  const std::uint64_t milliseconds = nanoseconds / 1'000'000;
  const std::uint64_t fraction = (nanoseconds % 1'000'000) * 4096 / 1'000'000;

  const std::lock_guard lock(mutex);
  last = std::max(last + 1, milliseconds << 12 | fraction);
  return last;
}

} // namespace

std::string random_bytes(std::size_t count) {
  // Straight from the kernel each time: a buffer of our own would be repeated in a forked child.
  std::string bytes(count, '\0');
  if (::getentropy(bytes.data(), count) != 0)
    throw Error(ErrorClass::system, "cannot read random numbers: " + errno_text(errno));
  return bytes;
}

std::string new_uuid() {
  auto bytes = random_bytes(16);
  const std::uint64_t tick = next_tick();
  const std::uint64_t milliseconds = tick >> 12;
  for (std::size_t i = 0; i < 6; ++i)
    bytes[i] = static_cast<char>(milliseconds >> (40 - 8 * i));
  bytes[6] = static_cast<char>(0x70 | (tick >> 8 & 0x0F)); // version 7
  bytes[7] = static_cast<char>(tick);
  bytes[8] = static_cast<char>(0x80 | (bytes[8] & 0x3F)); // variant of RFC 9562
  std::string text = hex(bytes);
  for (const std::size_t hyphen : {8U, 13U, 18U, 23U})
    text.insert(hyphen, 1, '-');
  return text;
}

std::string random_hex32() { return hex(random_bytes(16)); }

bool is_uuid(std::string_view text) noexcept {
  if (text.size() != 32 && text.size() != 36) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool hyphen = text.size() == 36 && (i == 8 || i == 13 || i == 18 || i == 23);
    if (hyphen ? text[i] != '-' : hex_value(text[i]) < 0) return false;
  }
  return true;
}

} // namespace holdfast::base
