#include "services/cli/terminal/output.hpp"

#include "lib/base/error.hpp"
#include "lib/base/text/json.hpp"
#include "lib/base/text/number.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/text/time.hpp"
#include "lib/catalog/list.hpp"

#include <nlohmann/json.hpp>

#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <optional>

namespace holdfast::cli {

namespace {

// The character at `at`; moves on behind it.
char32_t next_character(std::string_view text, std::size_t& at) {
  const auto [code, length] = base::first_character(text.substr(at));
  at += length;
  return code;
}

std::size_t width_of(char32_t character) {
  const int width = wcwidth(static_cast<wchar_t>(character));
  return width < 0 ? 1 : static_cast<std::size_t>(width);
}

// Shortens ids for users to the last eight digits, which `holdfast show` takes (the first ones are a time, much the
// same for neighbours).
std::string abridged(std::string text) {
  if (text.size() == 36 && text[8] == '-' && text[13] == '-' && text[18] == '-' && text[23] == '-')
    return text.substr(28);
  return text;
}

std::size_t place_of(const pg::Result& result, const std::string& column) {
  const auto found = std::find(result.columns().begin(), result.columns().end(), column);
  if (found == result.columns().end()) throw base::Error(base::ErrorClass::bug, "a table has no column " + column);
  return static_cast<std::size_t>(found - result.columns().begin());
}

} // namespace

void print_defect(bool json, const std::string& kind, const std::string& path, const std::string& detail) {
  auto words = kind;
  std::replace(words.begin(), words.end(), '_', ' ');
  if (json)
    print_record("Defect", {{"kind", kind}, {"path", path}, {"detail", detail}});
  else
    std::cout << words << "  " << printable(path) << ": " << printable(detail) << '\n';
}

std::string shell_word(std::string_view word) {
  const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
    return base::is_alpha(c) || base::is_digit(c) || std::string_view("-_./:@%+=,").find(c) != std::string_view::npos;
  });
  return plain ? std::string(word) : base::shell_quoted(word);
}

std::string printable(std::string_view text) {
  std::string clean;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t from = at;
    const char32_t character = next_character(text, at);
    if (base::is_unprintable(character))
      clean += character == '\t' || character == '\n' ? ' ' : '?';
    else
      clean.append(text.substr(from, at - from));
  }
  return clean;
}

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  for (std::size_t at = 0; at < text.size();)
    width += width_of(next_character(text, at));
  return width;
}

std::string fitted(std::string_view text, std::size_t columns) {
  if (display_width(text) <= columns) return std::string(text);
  std::string cut;
  std::size_t width = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t from = at;
    const auto character = width_of(next_character(text, at));
    if (width + character + 1 > columns) break;
    width += character;
    cut.append(text.substr(from, at - from));
  }
  return cut + "…";
}

std::size_t terminal_width() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 120;
}

namespace {

// Failures stand out on a terminal (not with NO_COLOR). Plain cells get nothing.
std::string_view colour_of(const std::string& column, const std::string& cell) {
  static const bool coloured = isatty(STDOUT_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr;
  if (!coloured || (column != "outcome" && column != "status" && column != "last_outcome")) return {};
  if (cell == "failed" || cell == "quarantined" || cell == "refused" || cell == "missing") return "\x1b[31m";
  if (cell == "partial" || cell == "paused" || cell == "cancelled") return "\x1b[33m";
  return cell == "succeeded" ? "\x1b[32m" : "";
}

} // namespace

void print_table(const pg::Result& result, const std::vector<std::string>& wanted, std::ostream& out) {
  std::vector<std::vector<std::string>> rows;
  std::vector<std::size_t> widths;
  std::vector<std::size_t> places; // of the columns in the result
  std::vector<std::string> columns;
  for (auto column : wanted) {
    const bool optional = column.ends_with('?');
    if (optional) column.pop_back();
    const auto place = place_of(result, column);
    bool empty = true;
    for (std::size_t i = 0; i < result.size() && empty; ++i) {
      const auto cell = shown_cell(result, i, place);
      empty = cell.empty() || cell == "0";
    }
    if (optional && empty) continue;
    widths.push_back(display_width(column));
    places.push_back(place);
    columns.push_back(std::move(column));
  }
  for (std::size_t i = 0; i < result.size(); ++i) {
    std::vector<std::string> row;
    for (std::size_t c = 0; c < columns.size(); ++c) {
      row.push_back(abridged(printable(shown_cell(result, i, places[c]))));
      widths[c] = std::max(widths[c], display_width(row.back()));
    }
    rows.push_back(std::move(row));
  }
  // The widest columns give way until the table fits, then the last ones are left out. URLs tell rows apart: they keep
  // the most, and stay.
  constexpr std::size_t kWord = 10, kUrl = 32;
  const std::size_t room = std::max<std::size_t>(terminal_width(), 40);
  const auto is_url = [&](std::size_t c) { return columns[c].ends_with("url"); };
  const auto total = [&] {
    std::size_t sum = 0;
    for (const auto width : widths)
      sum += width == 0 ? 0 : width + 2; // 0: left out
    return sum - 2;
  };
  while (total() > room) {
    std::size_t widest = columns.size(), last = 0;
    for (std::size_t c = 0; c < columns.size(); ++c) {
      if (c > 0 && widths[c] > 0 && !is_url(c)) last = c;
      const bool gives = widths[c] > (is_url(c) ? kUrl : kWord);
      if (gives && (widest == columns.size() || widths[c] > widths[widest])) widest = c;
    }
    if (widest < columns.size())
      --widths[widest];
    else if (last > 0)
      widths[last] = 0;
    else
      break;
  }
  std::size_t shown_last = columns.empty() ? 0 : columns.size() - 1;
  while (shown_last > 0 && widths[shown_last] == 0)
    --shown_last;
  const auto print_row = [&](const std::vector<std::string>& cells) {
    std::string line;
    for (std::size_t c = 0; c < cells.size(); ++c) {
      if (widths[c] == 0) continue;
      const std::string cell = fitted(cells[c], widths[c]);
      const auto colour = colour_of(columns[c], cells[c]);
      line += colour.empty() ? cell : std::string(colour) + cell + "\x1b[0m";
      if (c < shown_last) line += std::string(widths[c] - display_width(cell) + 2, ' ');
    }
    out << line << '\n';
  };
  print_row(columns);
  for (const auto& row : rows)
    print_row(row);
}

void print_csv(const pg::Result& result, const std::vector<std::string>& wanted) {
  const auto print = [](std::string field, bool first) {
    if (!first) std::cout << ',';
    // Titles are a site's words: a program for tables would run one that begins so as a formula.
    if (!field.empty() && std::string_view("=+-@\t\r").find(field.front()) != std::string_view::npos)
      field.insert(0, "'");
    if (field.find_first_of(",\"\r\n") == std::string::npos) {
      std::cout << field;
      return;
    }
    std::cout << '"';
    for (const char character : field)
      std::cout << (character == '"' ? "\"\"" : std::string(1, character));
    std::cout << '"';
  };
  const auto& columns = wanted.empty() ? result.columns() : wanted;
  for (std::size_t c = 0; c < columns.size(); ++c)
    print(columns[c], c == 0);
  std::cout << "\r\n";
  for (std::size_t i = 0; i < result.size(); ++i) {
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const auto place = place_of(result, columns[c]);
      const bool is_list = result.kind(place) == pg::Kind::list && !result[i].is_null(columns[c]);
      print(is_list ? base::join(result[i][columns[c]].as<std::vector<std::string>>(), ", ")
                    : result.cell(i, place).value_or(""),
            c == 0);
    }
    std::cout << "\r\n";
  }
}

void print_record(std::string_view type, const nlohmann::ordered_json& fields, std::ostream& out) {
  nlohmann::ordered_json line{{"type", type}};
  line.update(fields);
  out << base::json_text(line) << '\n';
}

void print_records(const std::vector<std::string>& objects, std::string_view type) {
  for (const auto& object : objects)
    print_record(type, nlohmann::ordered_json::parse(object));
}

void print_fields(const std::vector<std::pair<std::string, std::string>>& fields, std::ostream& out) {
  std::size_t width = 0;
  for (const auto& [name, value] : fields)
    if (!value.empty()) width = std::max(width, name.size());
  for (const auto& [name, value] : fields)
    if (!value.empty()) out << name << std::string(width - name.size() + 2, ' ') << printable(value) << '\n';
}

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
    return catalog::written_interval(text);
  case pg::Kind::list:
    return base::join(result[row][result.columns()[column]].as<std::vector<std::string>>(), ", ");
  case pg::Kind::other:
    break;
  }
  const auto& name = result.columns()[column];
  const auto bytes = base::parse_number<std::uint64_t>(text);
  if (bytes && (name == "bytes" || name.ends_with("_bytes"))) return *bytes == 0 ? "0" : base::format_size(*bytes);
  return with_local_times(text);
}

} // namespace holdfast::cli
