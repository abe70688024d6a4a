#include "services/cli/terminal/times.hpp"

#include "lib/base/error.hpp"
#include "lib/base/text/characters.hpp"
#include "lib/base/text/duration.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/text/timestamp.hpp"
#include "lib/store/catalog/view.hpp"

#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <optional>

namespace holdfast::cli {

namespace {

constexpr std::size_t kDigits = 19; // "2026-11-22 02:48:46"

// A time of day at the beginning of `text`, read as UTC.
std::optional<std::time_t> time_at_start(std::string_view text) {
  if (text.size() < kDigits || (text[10] != ' ' && text[10] != 'T') || text[16] != ':') return std::nullopt;
  const auto time = base::read_timestamp(std::string(text.substr(0, kDigits)));
  return time ? std::optional(std::chrono::system_clock::to_time_t(*time)) : std::nullopt;
}

// A time of day in UTC with its zone, as PostgreSQL and JSON write it.
std::optional<std::time_t> time_in_utc(std::string_view text) {
  const auto time = time_at_start(text);
  const auto zone = time ? text.find_first_not_of("0123456789.", kDigits) : std::string_view::npos;
  if (zone == std::string_view::npos) return std::nullopt;
  const auto rest = text.substr(zone);
  return rest == "+00" || rest == "+00:00" || rest == "Z" ? time : std::nullopt;
}

std::string in_zone(std::time_t time) {
  std::tm parts{};
  ::localtime_r(&time, &parts);
  std::array<char, 64> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S %Z", &parts)};
}

// `direction`: of a duration, before (-1) or after (1) now.
std::string point_in_time(const std::string& given, int direction) {
  if (const auto time = time_in_utc(given)) return base::utc_timestamp(*time);
  for (const char* form : {"%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"}) {
    std::tm parts{};
    parts.tm_isdst = -1;
    const char* end = ::strptime(given.c_str(), form, &parts);
    if (end != nullptr && *end == '\0') return base::utc_timestamp(std::mktime(&parts));
  }
  try {
    const auto distance = base::parse_duration(given) * direction;
    return base::utc_timestamp(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now() + distance));
  } catch (const base::Error&) {
    throw base::Error(base::ErrorClass::usage, "\"" + given + "\" is not a time",
                      "for example 2h, 7d, 2026-11-22, \"2026-11-22 14:00\"");
  }
}

} // namespace

std::string local_time(std::string_view utc) {
  if (utc.starts_with("9999-") || utc == "infinity" || utc == "-infinity") return "never";
  const auto time = time_in_utc(utc);
  return time ? in_zone(*time) : std::string(utc);
}

std::string with_local_times(std::string_view sentence) {
  constexpr std::string_view kZone = " UTC";
  std::string text;
  for (std::size_t at = 0; at < sentence.size();) {
    const auto rest = sentence.substr(at);
    if (rest.size() >= kDigits + kZone.size() && rest.substr(kDigits, kZone.size()) == kZone)
      if (const auto time = time_at_start(rest)) {
        text += in_zone(*time);
        at += kDigits + kZone.size();
        continue;
      }
    text += sentence[at++];
  }
  return text;
}

std::string time_before(const std::string& given) { return point_in_time(given, -1); }
std::string time_after(const std::string& given) { return point_in_time(given, 1); }

std::string shown_cell(const pg::Result& result, std::size_t row, std::size_t column) {
  const auto text = result.cell(row, column).value_or("");
  if (text.empty()) return text;
  switch (result.kind(column)) {
  case pg::Kind::time:
    return local_time(text);
  case pg::Kind::interval:
    return store::written_interval(text);
  case pg::Kind::list:
    return base::join(result[row][result.columns()[column]].as<std::vector<std::string>>(), ", ");
  case pg::Kind::other:
    break;
  }
  const auto& name = result.columns()[column];
  std::uint64_t bytes = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  if ((name == "bytes" || name.ends_with("_bytes")) && error == std::errc{} && end == text.data() + text.size())
    return bytes == 0 ? "0" : base::format_size(bytes);
  return with_local_times(text);
}

} // namespace holdfast::cli
