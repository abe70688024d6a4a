#include "lib/hooks/text.hpp"

#include "lib/base/text/json.hpp"
#include "lib/base/text/text.hpp"

#include <charconv>

namespace holdfast::hooks {

namespace {

constexpr std::string_view kEllipsis = "\xE2\x80\xA6"; // U+2026

unsigned byte_at(std::string_view text, std::size_t index) {
  return index < text.size() ? static_cast<unsigned char>(text[index]) : 0u;
}

// End of the escape sequence that starts at `at` (text[at] is ESC).
std::size_t skip_escape(std::string_view text, std::size_t at) noexcept {
  const unsigned kind = byte_at(text, at + 1);
  std::size_t index = at + 2;
  if (kind == '[') { // CSI: parameters, then one final byte
    while (index < text.size() && byte_at(text, index) >= 0x20 && byte_at(text, index) <= 0x3F)
      ++index;
    if (index < text.size() && byte_at(text, index) >= 0x40 && byte_at(text, index) <= 0x7E) ++index;
    return index;
  }
  if (kind == ']' || kind == 'P' || kind == '_' || kind == '^') { // OSC, DCS, ...: up to BEL or ESC backslash
    while (index < text.size() && text[index] != '\a' && text[index] != '\x1b' && text[index] != '\n')
      ++index;
    if (index < text.size() && text[index] == '\a') return index + 1;
    if (byte_at(text, index) == 0x1b && byte_at(text, index + 1) == '\\') return index + 2;
    return index;
  }
  return kind >= 0x20 && kind <= 0x7E ? at + 2 : at + 1;
}

} // namespace

std::string clean_text(std::string_view text, std::size_t limit, Lines lines) {
  std::string result;
  bool blank_pending = false; // leading and trailing blanks never reach the result
  std::size_t newlines_pending = 0;
  for (std::size_t at = 0; at < text.size();) {
    const unsigned lead = byte_at(text, at);
    if (lead == 0x1b) {
      at = skip_escape(text, at);
      continue;
    }
    if (lead == '\n' && lines == Lines::many) {
      ++newlines_pending;
      blank_pending = false;
      ++at;
      continue;
    }
    if (lead == ' ' || lead == '\t' || lead == '\n' || lead == '\r') {
      // Indentation of a continued text is kept in one blank; it is for reading, not for layout.
      blank_pending = true;
      ++at;
      continue;
    }
    const std::size_t length = base::utf8_length(text.substr(at));
    const bool c1_control = length == 2 && lead == 0xC2 && byte_at(text, at + 1) < 0xA0;
    if (length == 1 && (lead < 0x20 || lead == 0x7F)) {
      ++at;
      continue;
    }
    if (c1_control) {
      at += 2;
      continue;
    }
    std::string piece;
    if (!result.empty()) {
      if (newlines_pending > 0) piece.append(newlines_pending > 1 ? "\n\n" : "\n");
      if (blank_pending) piece.push_back(' ');
    }
    blank_pending = false;
    newlines_pending = 0;
    piece += length == 0 ? base::kReplacement : text.substr(at, length);
    if (result.size() + piece.size() > limit) {
      // Leaves space for the ellipsis, at a character boundary.
      const std::size_t keep = limit > kEllipsis.size() ? limit - kEllipsis.size() : 0;
      while (result.size() > keep) {
        while (!result.empty() && (byte_at(result, result.size() - 1) & 0xC0u) == 0x80u)
          result.pop_back();
        if (!result.empty()) result.pop_back();
      }
      if (limit >= kEllipsis.size()) result += kEllipsis;
      return result;
    }
    result += piece;
    at += length == 0 ? 1 : length;
  }
  return result;
}

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
