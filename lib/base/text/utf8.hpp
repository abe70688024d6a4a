#pragma once
// UTF-8 as strict as PostgreSQL's: no overlong forms, no surrogates, nothing above U+10FFFF. Pure; any thread.

#include <cstddef>
#include <string>
#include <string_view>

namespace holdfast::base {

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
