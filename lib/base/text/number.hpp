#pragma once
// Numbers in texts. Pure; any thread.

#include <charconv>
#include <optional>
#include <string_view>

namespace holdfast::base {

// Returns the number that the whole text is; nullopt: it is none, or out of range.
template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

} // namespace holdfast::base
