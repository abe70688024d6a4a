#include "lib/base/text/text.hpp"

#include <algorithm>
#include <numeric>

namespace holdfast::base {

std::vector<std::string> split(std::string_view text, std::string_view separators) {
  constexpr std::string_view kBlanks = " \t\r\n";
  std::vector<std::string> parts;
  for (std::size_t from = 0; from <= text.size();) {
    const auto end = std::min(text.find_first_of(separators, from), text.size());
    const auto part = text.substr(from, end - from);
    if (const auto first = part.find_first_not_of(kBlanks); first != std::string_view::npos)
      parts.emplace_back(part.substr(first, part.find_last_not_of(kBlanks) - first + 1));
    from = end + 1;
  }
  return parts;
}

std::string shell_quoted(std::string_view word) {
  std::string text = "'";
  for (const char c : word)
    if (c == '\'')
      text += "'\\''";
    else
      text += c;
  return text + "'";
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string text;
  for (const auto& part : parts) {
    if (&part != &parts.front()) text += separator;
    text += part;
  }
  return text;
}

std::optional<bool> parse_boolean(std::string_view text) {
  const auto word = lower_case(text);
  if (word == "true" || word == "yes" || word == "on" || word == "1") return true;
  if (word == "false" || word == "no" || word == "off" || word == "0") return false;
  return std::nullopt;
}

std::string clean(std::string_view text) {
  std::string result = base::repair_utf8(text);
  std::erase_if(result, [](char letter) {
    const auto code = static_cast<unsigned char>(letter);
    return (code < 0x20 && code != '\t' && code != '\n' && code != '\r') || code == 0x7f;
  });
  return result;
}

std::string one_line(std::string_view text, std::size_t limit) {
  std::string result;
  std::size_t characters = 0, cut = 0; // cut: where the last character but one of `limit` ends
  bool blank = false;
  for (const char letter : clean(text)) {
    const auto code = static_cast<unsigned char>(letter);
    if (code == ' ' || code == '\t' || code == '\n' || code == '\r') {
      blank = !result.empty();
      continue;
    }
    if ((code & 0xC0) != 0x80) {
      if (blank) {
        if (++characters == limit) cut = result.size();
        result += ' ';
      }
      blank = false;
      if (++characters == limit) cut = result.size();
      if (characters > limit) {
        result.resize(cut);
        while (result.ends_with(' '))
          result.pop_back();
        return result + "…";
      }
    }
    result += letter;
  }
  return result;
}

namespace {

// Edits (insert, delete, replace) that turn one word into the other.
std::size_t edit_distance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= from.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= to.size(); ++j) {
      const std::size_t replaced = diagonal + (from[i - 1] == to[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row.back();
}

} // namespace

std::string nearest(std::string_view word, const std::vector<std::string>& known) {
  std::string best;
  std::size_t smallest = std::max<std::size_t>(2, word.size() / 3) + 1; // farther than that is no misspelling
  for (const auto& candidate : known) {
    const auto distance = edit_distance(word, candidate);
    if (distance >= smallest || distance >= std::max(word.size(), candidate.size())) continue;
    smallest = distance;
    best = candidate;
  }
  return best;
}

std::size_t utf8_length(std::string_view text) noexcept {
  const auto byte = [&](std::size_t at) -> unsigned {
    return at < text.size() ? static_cast<unsigned char>(text[at]) : 0u;
  };
  const auto follows = [&](std::size_t at) { return (byte(at) & 0xC0) == 0x80; };
  if (text.empty()) return 0;
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead < 0xC2 || lead > 0xF4 || !follows(1)) return 0;
  if (lead < 0xE0) return 2;
  if ((lead == 0xE0 && byte(1) < 0xA0) || (lead == 0xED && byte(1) > 0x9F) || !follows(2)) return 0;
  if (lead < 0xF0) return 3;
  if ((lead == 0xF0 && byte(1) < 0x90) || (lead == 0xF4 && byte(1) > 0x8F) || !follows(3)) return 0;
  return 4;
}

bool is_utf8(std::string_view text) noexcept {
  while (!text.empty()) {
    const auto length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string repair_utf8(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  std::size_t begin = 0; // of what is valid
  for (std::size_t at = 0; at < text.size();) {
    const auto length = utf8_length(text.substr(at));
    at += length;
    if (length > 0) continue;
    clean += text.substr(begin, at - begin);
    clean += kReplacement;
    begin = ++at;
  }
  return clean += text.substr(begin);
}

Character first_character(std::string_view text) noexcept {
  const auto length = utf8_length(text);
  if (length == 0) return {U'\uFFFD', 1};
  const auto lead = static_cast<unsigned char>(text[0]);
  char32_t code = length == 1 ? lead : lead & (0xFFu >> (length + 1));
  for (std::size_t at = 1; at < length; ++at)
    code = (code << 6) | (static_cast<unsigned char>(text[at]) & 0x3Fu);
  return {code, length};
}

std::string utf8_of(char32_t code) {
  if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return {};
  const auto tail = [&](unsigned shift) { return static_cast<char>(0x80 | ((code >> shift) & 0x3F)); };
  if (code < 0x80) return {static_cast<char>(code)};
  if (code < 0x800) return {static_cast<char>(0xC0 | (code >> 6)), tail(0)};
  if (code < 0x10000) return {static_cast<char>(0xE0 | (code >> 12)), tail(6), tail(0)};
  return {static_cast<char>(0xF0 | (code >> 18)), tail(12), tail(6), tail(0)};
}

bool is_unprintable(char32_t code) noexcept {
  return code < 0x20 || (code >= 0x7F && code < 0xA0) || (code >= 0x202A && code <= 0x202E) ||
         (code >= 0x2066 && code <= 0x2069);
}

} // namespace holdfast::base
