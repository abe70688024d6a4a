#include "lib/base/uuid.hpp"

#include "lib/base/characters.hpp"
#include "lib/base/error.hpp"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>

namespace holdfast::base {

namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";

// Straight from the kernel each time: a buffer of our own would be repeated in a forked child.
void fill_random(std::span<std::uint8_t> bytes) {
  std::size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t got = getrandom(bytes.data() + filled, bytes.size() - filled, 0);
    if (got > 0) {
      filled += static_cast<std::size_t>(got);
    } else if (errno != EINTR) {
      throw Error(ErrorClass::system, "cannot read random numbers: " + errno_text(errno));
    }
  }
}

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

std::string to_hex(std::span<const std::uint8_t> bytes) {
  std::string text;
  text.reserve(bytes.size() * 2 + 4);
  for (const std::uint8_t byte : bytes) {
    text += kHexDigits[byte >> 4];
    text += kHexDigits[byte & 0xF];
  }
  return text;
}

} // namespace

std::string new_uuid() {
  std::array<std::uint8_t, 16> bytes{};
  fill_random(std::span(bytes).subspan(8));
  const std::uint64_t tick = next_tick();
  const std::uint64_t milliseconds = tick >> 12;
  for (std::size_t i = 0; i < 6; ++i)
    bytes[i] = static_cast<std::uint8_t>(milliseconds >> (40 - 8 * i));
  bytes[6] = static_cast<std::uint8_t>(0x70 | (tick >> 8 & 0x0F)); // version 7
  bytes[7] = static_cast<std::uint8_t>(tick);
  bytes[8] = static_cast<std::uint8_t>(0x80 | (bytes[8] & 0x3F)); // variant of RFC 9562

  std::string text = to_hex(bytes);
  for (const std::size_t hyphen : {8U, 13U, 18U, 23U})
    text.insert(hyphen, 1, '-');
  return text;
}

std::string random_hex32() {
  std::array<std::uint8_t, 16> bytes{};
  fill_random(bytes);
  return to_hex(bytes);
}

bool is_uuid(std::string_view text) noexcept {
  if (text.size() != 32 && text.size() != 36) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool hyphen = text.size() == 36 && (i == 8 || i == 13 || i == 18 || i == 23);
    if (hyphen ? text[i] != '-' : hex_value(text[i]) < 0) return false;
  }
  return true;
}

} // namespace holdfast::base
