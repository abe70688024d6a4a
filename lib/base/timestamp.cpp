#include "lib/base/timestamp.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <string_view>

namespace holdfast::base {

namespace {

constexpr double kLatest = 253402300799.0; // the end of the year 9999

std::optional<int> number_of(std::string_view digits) {
  int number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (digits.size() != 2 || error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return number;
}

// "Z", "+00", "+01:00", "-0530" or nothing, after the time of day. nullopt: anything else.
std::optional<std::chrono::minutes> offset_of(std::string_view zone) {
  if (zone.empty() || zone == "Z") return std::chrono::minutes(0);
  if (zone.front() != '+' && zone.front() != '-') return std::nullopt;
  const bool colon = zone.size() == 6 && zone[3] == ':';
  if (zone.size() != 3 && zone.size() != 5 && !colon) return std::nullopt;
  const auto hours = number_of(zone.substr(1, 2));
  const auto minutes = zone.size() == 3 ? 0 : number_of(zone.substr(colon ? 4 : 3));
  if (!hours || !minutes || *hours > 14 || *minutes > 59) return std::nullopt;
  const auto offset = std::chrono::hours(*hours) + std::chrono::minutes(*minutes);
  return zone.front() == '-' ? -offset : offset;
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
    if (!std::isfinite(seconds) || seconds < 0 || seconds > kLatest) return std::nullopt;
    return Timestamp(of_seconds(seconds));
  }
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, read = 0;
  if (std::sscanf(text.c_str(), "%4d-%2d-%2d%n", &year, &month, &day, &read) != 3) return std::nullopt;
  const auto date = std::chrono::year(year) / month / day;
  if (!date.ok() || year < 1970) return std::nullopt;
  auto rest = std::string_view(text).substr(static_cast<std::size_t>(read));
  if (rest.empty()) return Timestamp(sys_days(date));
  if (rest.front() != ' ' && rest.front() != 'T') return std::nullopt;
  rest.remove_prefix(1);
  const auto zone = std::min(rest.find_first_of("Z+-"), rest.size());
  const auto offset = offset_of(rest.substr(zone));
  double second = 0;
  if (!offset || std::sscanf(std::string(rest.substr(0, zone)).c_str(), "%2d:%2d:%9lf", &hour, &minute, &second) != 3 ||
      hour < 0 || hour > 23 || minute < 0 || minute > 59 || !(second >= 0 && second < 61))
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
