#include "lib/hooks/record_json.hpp"

#include "lib/base/text/json.hpp"
#include "lib/base/text/utf8.hpp"

#include <charconv>

namespace holdfast::hooks {

using nlohmann::json;

namespace {

// Value of the four hexadecimal digits after "\u" at `at`, or -1.
int escaped_unit(std::string_view text, std::size_t at) {
  if (at + 6 > text.size() || text[at] != '\\' || text[at + 1] != 'u') return -1;
  int unit = 0;
  const char* const begin = text.data() + at + 2;
  const auto [end, error] = std::from_chars(begin, begin + 4, unit, 16);
  return error == std::errc{} && end == begin + 4 && *begin != '-' ? unit : -1;
}

// Escapes that no database takes become \ufffd: \u0000, and lone surrogates, which Python prints for file names that
// are not UTF-8.
std::string repair_escapes(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] != '\\') {
      result.push_back(text[at++]);
      continue;
    }
    const int unit = escaped_unit(text, at);
    if (unit < 0) { // another escape: take both characters, so that "\\u0000" stays what it is
      result += text.substr(at, 2);
      at += 2;
      continue;
    }
    const bool high = unit >= 0xD800 && unit <= 0xDBFF;
    const int next = high ? escaped_unit(text, at + 6) : -1;
    if (high && next >= 0xDC00 && next <= 0xDFFF) {
      result += text.substr(at, 12);
      at += 12;
    } else {
      const bool unusable = unit == 0 || (unit >= 0xD800 && unit <= 0xDFFF);
      result += unusable ? std::string_view("\\ufffd") : text.substr(at, 6);
      at += 6;
    }
  }
  return result;
}

} // namespace

json parse_record_line(std::string_view line) {
  const auto begin = line.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos || line[begin] != '{' || base::nests_too_deep(line)) return nullptr;
  const auto parse = [](std::string_view text) { return json::parse(text.begin(), text.end(), nullptr, false); };
  json value = line.find("\\u0000") == std::string_view::npos ? parse(line) : parse(repair_escapes(line));
  if (value.is_discarded()) value = parse(repair_escapes(base::repair_utf8(line)));
  return value.is_object() ? value : json(nullptr);
}

std::string environment_text(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "True" : "False";
  return base::json_text(value);
}

} // namespace holdfast::hooks
