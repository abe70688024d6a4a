#pragma once
// Small work on text that several modules need. Pure; any thread.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::base {

// "a, b,,c" at "," -> {"a", "b", "c"}: any of `separators` ends a part; blanks around it go, empty parts are left out.
std::vector<std::string> split(std::string_view text, std::string_view separators);

std::string join(const std::vector<std::string>& parts, std::string_view separator);

std::string shell_quoted(std::string_view word);

// true/false, yes/no, on/off, 1/0 in any case; nullopt: none of these.
std::optional<bool> parse_boolean(std::string_view text);

// Valid UTF-8 without control characters other than tab and line ends.
std::string clean(std::string_view text);
// Valid UTF-8 without control characters; blanks collapsed; at most `limit` characters.
std::string one_line(std::string_view text, std::size_t limit);

// Returns the one of `known` that `word` most likely misspells; empty if none is near.
std::string nearest(std::string_view word, const std::vector<std::string>& known);

// ASCII that no locale can change: classes, case, blanks, hexadecimal digits. Pure; any thread.
constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
constexpr bool is_alpha(char c) noexcept { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
constexpr bool is_blank(char c) noexcept { return c == ' ' || (c >= '\t' && c <= '\r'); }
constexpr bool is_ascii(char c) noexcept { return static_cast<unsigned char>(c) < 0x80; }
constexpr bool is_control(char c) noexcept { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }
constexpr char to_lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// 0..15, or -1 if `c` is no hexadecimal digit.
constexpr int hex_value(char c) noexcept {
  if (is_digit(c)) return c - '0';
  const char lower = to_lower(c);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// "*" -> "2a".
inline std::string hex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (const char c : bytes) {
    out += kDigits[static_cast<unsigned char>(c) >> 4];
    out += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return out;
}

// Without the blanks around it.
constexpr std::string_view trimmed(std::string_view text) noexcept {
  while (!text.empty() && is_blank(text.front()))
    text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back()))
    text.remove_suffix(1);
  return text;
}

inline std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    c = to_lower(c);
  return lower;
}

// UTF-8 as strict as PostgreSQL's: no overlong forms, no surrogates, nothing above U+10FFFF. Pure; any thread.

// U+FFFD, which stands for bytes that are no character.
inline constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// Length of the well-formed character at the start of `text`; 0 if there is none.
std::size_t utf8_length(std::string_view text) noexcept;

bool is_utf8(std::string_view text) noexcept;

// Valid UTF-8: every offending byte becomes U+FFFD.
std::string repair_utf8(std::string_view text);

struct Character {
  char32_t code{0};      // kReplacement's if the byte is no character
  std::size_t length{0}; // bytes it takes; 1 for such a byte
};
// The first character of a text that is not empty.
Character first_character(std::string_view text) noexcept;

// Returns the UTF-8 of a code point; empty if it is not a character.
std::string utf8_of(char32_t code);

// Returns true for characters that a terminal or browser may act on, or that make a text look like another: C0 (also
// tab and line feed), DEL, C1, and the marks that turn the direction of writing (U+202A..202E, U+2066..2069).
bool is_unprintable(char32_t code) noexcept;

} // namespace holdfast::base
