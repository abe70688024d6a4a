#include "lib/warc/escape.hpp"

#include "lib/base/text/text.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace holdfast::warc {

namespace {

// Returns the character of a pair of surrogates, at the first of them.
std::string character_of_pair(std::string_view rest, std::uint32_t code) {
  std::uint32_t second = 0;
  const auto digits = rest.starts_with("\\u") ? rest.substr(2, 4) : std::string_view();
  std::from_chars(digits.data(), digits.data() + digits.size(), second, 16);
  if (code >= 0xDC00 || second < 0xDC00 || second > 0xDFFF) return {};
  return base::utf8_of(0x10000 + ((code - 0xD800) << 10) + (second - 0xDC00));
}

} // namespace

Escape read_escape(std::string_view rest) {
  struct Coded {
    std::string_view begin;
    std::size_t digits; // 0: as many as stand before a ";" or "}"
    int base;
  };
  static constexpr Coded kCoded[] = {{"%", 2, 16},   {"\\u{", 0, 16}, {"\\u", 4, 16}, {"\\x", 2, 16},
                                     {"&#x", 0, 16}, {"&#X", 0, 16},  {"&#", 0, 10}};
  for (const auto& [begin, count, base] : kCoded) {
    if (!rest.starts_with(begin)) continue;
    const auto digits = rest.substr(begin.size(), count > 0 ? count : 8);
    std::uint32_t code = 0;
    const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), code, base);
    const auto read = static_cast<std::size_t>(end - digits.data());
    const bool whole = count > 0 ? read == count : read < digits.size() && *end == (begin.back() == '{' ? '}' : ';');
    if (failure != std::errc() || !whole) return {};
    const bool half = code >= 0xD800 && code <= 0xDFFF;
    const auto value = begin == "%" ? std::string(1, static_cast<char>(code))
                       : half       ? character_of_pair(rest.substr(begin.size() + read), code)
                                    : base::utf8_of(code);
    return {begin.size() + read + (count > 0 ? 0 : 1), value};
  }
  static constexpr std::pair<std::string_view, char> kNamed[] = {
      {"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}, {"\\n", '\n'}, {"\\t", '\t'}};
  for (const auto& [name, letter] : kNamed)
    if (rest.starts_with(name)) return {name.size(), std::string(1, letter)};
  if (rest.starts_with('\\') && rest.size() > 1) return {2, std::string(1, rest[1])};
  return {};
}

Decoded decode(const std::string& text, const std::vector<std::uint32_t>* below) {
  Decoded decoded;
  decoded.text.reserve(text.size());
  decoded.at.reserve(text.size() + 1);
  const auto place = [&](std::size_t at) { return below ? (*below)[at] : static_cast<std::uint32_t>(at); };
  for (std::size_t at = 0; at < text.size();) {
    const bool may = text[at] == '%' || text[at] == '\\' || text[at] == '&';
    const auto escape = may ? read_escape(std::string_view(text).substr(at, 12)) : Escape{};
    decoded.text += escape.length > 0 ? escape.value : std::string(1, text[at]);
    decoded.at.resize(decoded.text.size(), place(at));
    at += std::max<std::size_t>(escape.length, 1);
  }
  decoded.at.push_back(place(text.size()));
  return decoded;
}

} // namespace holdfast::warc
