#include "lib/base/timestamp.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <string_view>

namespace holdfast::base {

namespace {

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

// Offset of the zones that RFC 822 names.
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

// "Sat, 31 Jan 2026 23:59:59 GMT"; the weekday, the seconds and the zone may be missing, the year may have two digits.
// The older ones of HTTP are "Saturday, 31-Jan-26 23:59:59 GMT" and asctime's "Sat Jan 31 23:59:59 2026".
std::optional<Timestamp> read_mail_date(std::string_view text) {
  using namespace std::chrono;
  constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
  if (const auto comma = text.find(", "); comma != std::string_view::npos) text.remove_prefix(comma + 2);
  int day = 0, year = 0, hour = 0, minute = 0, second = 0, read = 0;
  std::array<char, 4> month{};
  std::array<char, 9> time{};
  std::string date(text);
  if (std::sscanf(date.c_str(), "%*3s %3s %2d %8s %4d%n", month.data(), &day, time.data(), &year, &read) == 4 &&
      static_cast<std::size_t>(read) == date.size())
    date = std::to_string(day) + " " + month.data() + " " + std::to_string(year) + " " + time.data();
  if (const auto dash = date.find('-'); dash == 1 || dash == 2)
    std::replace(date.begin(), date.begin() + static_cast<std::ptrdiff_t>(std::min(date.find(' '), date.size())), '-',
                 ' ');
  if (std::sscanf(date.c_str(), "%2d %3s %4d %2d:%2d%n", &day, month.data(), &year, &hour, &minute, &read) != 5)
    return std::nullopt;
  auto rest = std::string_view(date).substr(static_cast<std::size_t>(read));
  if (rest.starts_with(':')) {
    const auto seconds = number_of(rest.substr(1, 2));
    if (!seconds) return std::nullopt;
    second = *seconds;
    rest.remove_prefix(3);
  }
  const auto at = kMonths.find(month.data());
  if (!rest.empty() && rest.front() != ' ') return std::nullopt;
  const auto offset = named_offset(rest.empty() ? "GMT" : rest.substr(1));
  if (!offset) return std::nullopt;
  if (year < 100) year += year < 70 ? 2000 : 1900;
  const auto when = std::chrono::year(year) / static_cast<int>(at / 3 + 1) / day;
  if (month[2] == '\0' || at == std::string_view::npos || at % 3 != 0 || !when.ok() || year < 1970 ||
      year > kLastYear || hour < 0 || hour > 23 || minute < 0 || minute > 59 || second > 60)
    return std::nullopt;
  return Timestamp(sys_days(when)) + hours(hour) + minutes(minute) + seconds(second) - *offset;
}

} // namespace

std::optional<Timestamp> read_timestamp(const std::string& text) {
  using namespace std::chrono;
  const auto of_seconds = [](double seconds) {
    return duration_cast<Timestamp::duration>(duration<double, std::micro>(std::round(seconds * 1e6)));
  };
  double seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error == std::errc{} && end == text.data() + text.size()) {
    const bool date = text.find_first_not_of("0123456789") == text.npos;
    if (date && text.size() == 4) return read_timestamp(text + "-01"); // a year
    if (date && text.size() == 14)                                     // as in an index of captures
      return read_timestamp(text.substr(0, 4) + "-" + text.substr(4, 2) + "-" + text.substr(6, 2) + "T" +
                            text.substr(8, 2) + ":" + text.substr(10, 2) + ":" + text.substr(12));
    if (!std::isfinite(seconds) || seconds < 0 || seconds >= kEnd) return std::nullopt;
    return Timestamp(of_seconds(seconds));
  }
  int year = 0, month = 0, day = 1, hour = 0, minute = 0, read = 0;
  std::string date_text = text;
  if (text.size() == 7 || (text.size() == 8 && text.back() == 'Z')) date_text.insert(7, "-01"); // a month
  if (std::sscanf(date_text.c_str(), "%4d%*1[-/]%2d%*1[-/]%2d%n", &year, &month, &day, &read) != 3)
    return read_mail_date(text);
  const auto date = std::chrono::year(year) / month / day;
  if (!date.ok() || year < 1970 || year > kLastYear) return std::nullopt;
  auto rest = std::string_view(date_text).substr(static_cast<std::size_t>(read));
  if (rest.empty() || rest == "Z") return Timestamp(sys_days(date));
  if (rest.front() != ' ' && rest.front() != 'T') return std::nullopt;
  rest.remove_prefix(1);
  const auto zone = std::min(rest.find_first_not_of("0123456789:. "), rest.size());
  const auto offset = zone < rest.size() ? named_offset(rest.substr(zone)) : std::chrono::minutes(0);
  const std::string time(rest.substr(0, zone));
  int minutes_end = 0, seconds_end = 0;
  double second = 0;
  std::sscanf(time.c_str(), "%2d:%2d%n:%9lf%n", &hour, &minute, &minutes_end, &second, &seconds_end);
  const auto rest_of_time = std::string_view(time).substr(static_cast<std::size_t>(std::max(minutes_end, seconds_end)));
  if (!offset || minutes_end == 0 ||
      rest_of_time.find_first_not_of(seconds_end > 0 ? "0123456789 " : " ") != rest_of_time.npos || hour < 0 ||
      hour > 23 || minute < 0 || minute > 59 || !(second >= 0 && second < 61))
    return std::nullopt;
  return Timestamp(sys_days(date)) + hours(hour) + minutes(minute) + of_seconds(second) - *offset;
}

std::string written_timestamp(Timestamp time) {
  const auto whole = std::chrono::floor<std::chrono::seconds>(time);
  const auto fraction = std::chrono::floor<std::chrono::milliseconds>(time - whole).count();
  const auto seconds = std::chrono::system_clock::to_time_t(whole);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  std::array<char, 40> text{};
  const auto length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(text.data() + length, text.size() - length, ".%03dZ", static_cast<int>(fraction));
  return text.data();
}

std::string canonical_timestamp(const std::string& text) {
  const auto time = read_timestamp(text);
  return time ? written_timestamp(*time) : "";
}

} // namespace holdfast::base
