#include "lib/base/text/duration.hpp"

#include "lib/base/error.hpp"
#include "lib/base/text/characters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <span>

namespace holdfast::base {

namespace {

struct Unit {
  std::string_view name; // lower case
  double factor;
};

constexpr std::array kDurationUnits = std::to_array<Unit>({
    {"", 1e3},
    {"ms", 1},
    {"s", 1e3},
    {"m", 60e3},
    {"min", 60e3},
    {"h", 3600e3},
    {"d", 24 * 3600e3},
    {"w", 7 * 24 * 3600e3},
});

constexpr std::array kSizeUnits = std::to_array<Unit>({
    {"", 1},
    {"b", 1},
    {"k", 0x1p10},
    {"kb", 0x1p10},
    {"kib", 0x1p10},
    {"m", 0x1p20},
    {"mb", 0x1p20},
    {"mib", 0x1p20},
    {"g", 0x1p30},
    {"gb", 0x1p30},
    {"gib", 0x1p30},
    {"t", 0x1p40},
    {"tb", 0x1p40},
    {"tib", 0x1p40},
});

// The largest whole number up to which a double counts exactly: 285 thousand years, or 8 PiB.
constexpr double kLargestExact = 0x1p53;

// A decimal number, then a unit. nullopt for anything else: a sign, an exponent, an unknown unit, more than fits.
std::optional<double> parse_quantity(std::string_view text, std::span<const Unit> units) {
  if (text.find_first_of("\n\v\f\r") != std::string_view::npos) return std::nullopt; // more than one value
  text = trimmed(text);
  const auto length = std::min(text.find_first_not_of("0123456789."), text.size());
  const std::string_view number = text.substr(0, length);
  const std::string unit_name = lower_case(trimmed(text.substr(length)));

  double value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (error != std::errc{} || end != number.data() + number.size()) return std::nullopt;
  for (const Unit& unit : units) {
    if (unit.name != unit_name) continue;
    const double quantity = std::round(value * unit.factor);
    if (quantity > kLargestExact) return std::nullopt;
    return quantity;
  }
  return std::nullopt;
}

} // namespace

std::chrono::milliseconds parse_duration(std::string_view text) {
  if (const auto quantity = parse_quantity(text, kDurationUnits)) {
    return std::chrono::milliseconds(static_cast<std::int64_t>(*quantity));
  }
  throw Error(ErrorClass::configuration, fmt::format("\"{}\" is not a duration", text),
              "Write a number and a unit: 250ms, 90s, 1.5m, 2h, 3d or 1w; a bare number is seconds.");
}

std::string format_duration(std::chrono::milliseconds duration) {
  const std::int64_t count = duration.count();
  const std::string sign = count < 0 ? "-" : "";
  const std::uint64_t milliseconds = count < 0 ? -static_cast<std::uint64_t>(count) : static_cast<std::uint64_t>(count);

  // Each unit is rounded before it is chosen: 59.96 s is a minute, not "60.0s".
  const auto in_units_of = [&](std::uint64_t unit) { return milliseconds / unit + (milliseconds % unit >= unit / 2); };
  const auto two_units = [&](std::uint64_t amount, std::uint64_t factor, std::string_view large,
                             std::string_view small) {
    const std::string rest = amount % factor == 0 ? "" : fmt::format(" {} {}", amount % factor, small);
    return fmt::format("{}{} {}{}", sign, amount / factor, large, rest);
  };
  if (milliseconds < 1000) return fmt::format("{}{} ms", sign, milliseconds);
  if (const auto tenths = in_units_of(100); tenths < 600)
    return tenths % 10 == 0 ? fmt::format("{}{} s", sign, tenths / 10)
                            : fmt::format("{}{}.{} s", sign, tenths / 10, tenths % 10);
  if (const auto seconds = in_units_of(1000); seconds < 3600) return two_units(seconds, 60, "min", "s");
  if (const auto minutes = in_units_of(60'000); minutes < 24 * 60) return two_units(minutes, 60, "h", "min");
  return two_units(in_units_of(3'600'000), 24, "d", "h");
}

std::uint64_t parse_size(std::string_view text) {
  if (const auto quantity = parse_quantity(text, kSizeUnits)) return static_cast<std::uint64_t>(*quantity);
  throw Error(ErrorClass::configuration, fmt::format("\"{}\" is not a size", text),
              "Write a number and a unit: 512, 10k, 1.5MiB, 2g or 1t (powers of 1024); a bare number is bytes.");
}

std::string format_size(std::uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  auto amount = static_cast<double>(bytes);
  for (const std::string_view unit : {"KiB", "MiB", "GiB", "TiB", "PiB"}) {
    amount /= 1024;
    if (amount < 1023.95) return fmt::format("{:.1f} {}", amount, unit); // 1023.95 would print as 1024.0
  }
  return fmt::format("{:.1f} EiB", amount / 1024);
}

} // namespace holdfast::base
