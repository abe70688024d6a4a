#include "lib/base/text/timestamp.hpp"

#include "lib/base/text/characters.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <ctime>
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
  return offset_of(zone);
}

// Formats of dates: ISO 8601, mail and HTTP (also its older forms), asctime, handwritten. A year may have two digits.
constexpr std::array kDates{"%Y-%m-%d", "%Y/%m/%d",  "%Y%m%dT",  "%a, %d %b %Y",  "%a, %d-%b-%Y", "%d %b %Y",
                            "%d-%b-%Y", "%b %d, %Y", "%b %d %Y", "%a, %b %d, %Y", "%a %d %b %Y",  "%d.%m.%Y"};
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

} // namespace holdfast::base
