#include "lib/base/text/time.hpp"

#include "lib/base/error.hpp"
#include "lib/base/text/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace holdfast::base {

namespace {

using namespace std::string_view_literals;

constexpr std::size_t kLongest = 80; // with the name of a zone

// A Timestamp counts nanoseconds in 64 bits, which end in April 2262.
constexpr int kLastYear = 2261;
constexpr double kEnd = 9214646400; // the end of that year, in seconds since 1970
static_assert(std::chrono::sys_days(std::chrono::year(kLastYear + 1) / 1 / 1) ==
              std::chrono::sys_seconds(std::chrono::seconds(static_cast<std::int64_t>(kEnd))));

std::optional<int> number_of(std::string_view digits) {
  int number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (digits.size() != 2 || error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return number;
}

// "Z", "+00", "+01:00", "-0530" or nothing, after the time of day. nullopt: anything else.
std::optional<std::chrono::minutes> offset_of(std::string_view zone) {
  if (zone.empty() || zone == "Z" || zone == "z") return std::chrono::minutes(0);
  if (zone.front() != '+' && zone.front() != '-') return std::nullopt;
  const bool colon = zone.size() == 6 && zone[3] == ':';
  if (zone.size() != 3 && zone.size() != 5 && !colon) return std::nullopt;
  const auto hours = number_of(zone.substr(1, 2));
  const auto minutes = zone.size() == 3 ? 0 : number_of(zone.substr(colon ? 4 : 3));
  if (!hours || !minutes || *hours > 14 || *minutes > 59) return std::nullopt;
  const auto offset = std::chrono::hours(*hours) + std::chrono::minutes(*minutes);
  return zone.front() == '-' ? -offset : offset;
}

std::optional<std::chrono::minutes> named_offset(std::string_view zone) {
  constexpr std::array<std::pair<std::string_view, int>, 11> kZones{{{"UT", 0},
                                                                     {"UTC", 0},
                                                                     {"GMT", 0},
                                                                     {"EST", -5},
                                                                     {"EDT", -4},
                                                                     {"CST", -6},
                                                                     {"CDT", -5},
                                                                     {"MST", -7},
                                                                     {"MDT", -6},
                                                                     {"PST", -8},
                                                                     {"PDT", -7}}};
  for (const auto& [name, hours] : kZones)
    if (zone == name) return std::chrono::hours(hours);
  return offset_of(zone.substr(zone.starts_with("GMT") ? 3 : 0)); // "GMT+0100"
}

// Formats of dates: ISO 8601, mail and HTTP (also its older forms), asctime, JavaScript, handwritten. A year may have
// two digits.
constexpr std::array kDates{"%Y-%m-%d",    "%Y/%m/%d",    "%Y%m%dT",   "%a, %d %b %Y", "%a, %d-%b-%Y",
                            "%d %b %Y",    "%d-%b-%Y",    "%b %d, %Y", "%b %d %Y",     "%a, %b %d, %Y",
                            "%a %d %b %Y", "%a %b %d %Y", "%d.%m.%Y"};
constexpr std::array kAsctime{"%a %b %d %T %Y", "%a %b %d %T %z %Y", "%a %b %d %T UTC %Y", "%a %b %d %T GMT %Y"};
constexpr std::array kTimes{"%I:%M:%S %p", "%I:%M %p", "%H:%M:%S", "%H:%M", "%H%M%S"};

// The first of these formats that the text begins with, and what follows it; nullopt: none.
std::optional<std::string_view> read_one(const std::string& text, std::span<const char* const> formats,
                                         std::tm& parts) {
  for (const auto* format : formats) {
    std::tm tried = parts;
    if (const char* const end = ::strptime(text.c_str(), format, &tried); end != nullptr) {
      parts = tried;
      return std::string_view(text).substr(static_cast<std::size_t>(end - text.c_str()));
    }
  }
  return std::nullopt;
}

// Takes digits behind "." or ",": thousandths of a second and less.
double fraction_of(std::string_view& text) {
  if (text.size() < 2 || (text.front() != '.' && text.front() != ',')) return 0;
  const auto digits = std::min(text.find_first_not_of("0123456789", 1), text.size());
  double fraction = 0;
  const auto number = "0." + std::string(text.substr(1, digits - 1));
  std::from_chars(number.data(), number.data() + number.size(), fraction);
  text.remove_prefix(digits);
  return fraction;
}

// Returns seconds since 1970 for a number of seconds, or thousandths, millionths or billionths of one, or millionths
// since 1601 (Chromium). The ranges in which they name times from 1973 on do not meet.
double in_seconds(double number) {
  constexpr double kSince1601 = 11644473600e6;
  if (number >= kSince1601 && number < kSince1601 + 9.2e15) return (number - kSince1601) / 1e6;
  for (const double least : {1e17, 1e14, 1e11})
    if (number >= least) return number / (least / 1e8);
  return number;
}

} // namespace

std::optional<Timestamp> read_timestamp(const std::string& text) {
  using namespace std::chrono;
  // The name of a zone stands behind its offset: "+0100 (CET)" in mail, "+01:00[Europe/Berlin]" of Java.
  if (const auto name = text.find_last_of("([");
      name != text.npos && text.size() < kLongest && ")]"sv.find(text.back()) != text.npos)
    return read_timestamp(std::string(trimmed(std::string_view(text).substr(0, name))));
  const auto of_seconds = [](double seconds) {
    return duration_cast<Timestamp::duration>(duration<double, std::micro>(std::round(seconds * 1e6)));
  };
  double seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error == std::errc{} && end == text.data() + text.size()) {
    const bool date = text.find_first_not_of("0123456789") == text.npos;
    if (date && text.size() == 4) return read_timestamp(text + "-01");                              // a year
    if (date && text.size() == 8) return read_timestamp(text + "T000000");                          // a day
    if (date && text.size() == 14) return read_timestamp(text.substr(0, 8) + "T" + text.substr(8)); // of an index
    seconds = in_seconds(seconds);
    if (!std::isfinite(seconds) || seconds < 0 || seconds >= kEnd) return std::nullopt;
    return Timestamp(of_seconds(seconds));
  }
  std::string date_text = text;
  if (text.size() == 7 || (text.size() == 8 && text.back() == 'Z')) date_text.insert(7, "-01"); // a month
  std::tm parts{};
  double fraction = 0;
  auto rest = read_one(date_text, kAsctime, parts);
  if (!rest && (rest = read_one(date_text, kDates, parts)) && !rest->empty() && *rest != "Z") {
    for (const std::string_view between : {",", " ", "at ", "T"})
      if (rest->starts_with(between)) rest->remove_prefix(between.size());
    const std::string time(*rest);
    rest = read_one(time, kTimes, parts);
    if (!rest) return std::nullopt;
    fraction = fraction_of(*rest);
    const auto zone = trimmed(*rest);
    const auto offset = rest->starts_with(' ') ? named_offset(zone) : offset_of(zone);
    if (!offset) return std::nullopt;
    parts.tm_gmtoff = duration_cast<std::chrono::seconds>(*offset).count();
  } else if (!rest || (!rest->empty() && *rest != "Z")) {
    return std::nullopt;
  }
  int year = parts.tm_year + 1900;
  if (year < 100) year += year < 70 ? 2000 : 1900;
  const auto date = std::chrono::year(year) / (parts.tm_mon + 1) / parts.tm_mday;
  if (!date.ok() || year < 1970 || year > kLastYear || parts.tm_sec > 60) return std::nullopt;
  return Timestamp(sys_days(date)) + hours(parts.tm_hour) + minutes(parts.tm_min) +
         of_seconds(parts.tm_sec + fraction) - std::chrono::seconds(parts.tm_gmtoff);
}

std::string written_timestamp(Timestamp time) {
  const auto whole = std::chrono::floor<std::chrono::seconds>(time);
  const auto fraction = std::chrono::floor<std::chrono::milliseconds>(time - whole).count();
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), ".%03dZ", static_cast<int>(fraction));
  auto written = utc_timestamp(std::chrono::system_clock::to_time_t(whole));
  written.pop_back(); // the "Z"
  return written + text.data();
}

std::string utc_timestamp(std::time_t time) {
  std::tm utc{};
  ::gmtime_r(&time, &utc);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc)};
}

std::string iso_time(std::string_view utc) {
  constexpr std::size_t kDay = 10, kTime = 19;
  if (utc.size() < kTime) return std::string(utc);
  return std::string(utc.substr(0, kDay)) + "T" + std::string(utc.substr(kDay + 1, kTime - kDay - 1)) + "Z";
}

std::string canonical_timestamp(const std::string& text) {
  const auto time = read_timestamp(text);
  return time ? written_timestamp(*time) : "";
}

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
