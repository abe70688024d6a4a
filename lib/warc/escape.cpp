#include "lib/warc/escape.hpp"

#include "lib/base/text/text.hpp"
#include "lib/formats/html.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace holdfast::warc {

namespace {

// Returns the character of a pair of surrogates, at the first of them.
std::string character_of_pair(std::string_view rest, std::uint32_t code) {
  std::uint32_t second = 0;
  const auto digits = rest.starts_with("\\u") || rest.starts_with("%u") ? rest.substr(2, 4) : std::string_view();
  std::from_chars(digits.data(), digits.data() + digits.size(), second, 16);
  if (code >= 0xDC00 || second < 0xDC00 || second > 0xDFFF) return {};
  return base::utf8_of(0x10000 + ((code - 0xD800) << 10) + (second - 0xDC00));
}

// Reads at most `most` digits. Returns how many there are, and what they say.
std::pair<std::size_t, std::uint32_t> number_at(std::string_view digits, std::size_t most, int base) {
  std::uint32_t number = 0;
  digits = digits.substr(0, most);
  const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), number, base).ptr;
  return {static_cast<std::size_t>(end - digits.data()), number};
}

Escape read_coded(std::string_view rest) {
  static constexpr std::pair<std::string_view, std::size_t> kCoded[] = {
      {"%u", 4}, {"%", 2}, {"\\u{", 0}, {"\\u", 4}, {"\\x", 2}}; // 0: as many digits as stand before a "}"
  for (const auto& [begin, count] : kCoded) {
    if (!rest.starts_with(begin)) continue;
    const auto digits = rest.substr(begin.size());
    const auto [read, code] = number_at(digits, count > 0 ? count : 8, 16);
    if (count > 0 ? read != count : read == 0 || !digits.substr(read).starts_with('}')) continue;
    const auto length = begin.size() + read + (count > 0 ? 0 : 1);
    if (code >= 0xD800 && code <= 0xDFFF) return {length, character_of_pair(rest.substr(length), code)};
    return {length, begin == "%" ? std::string(1, static_cast<char>(code)) : base::utf8_of(code)};
  }
  return {};
}

Escape read_reference(std::string_view rest) {
  constexpr std::ptrdiff_t kLongest = 34;                // "&CounterClockwiseContourIntegral;"
  const bool number = rest.size() > 2 && rest[1] == '#'; // browsers also read both without the ";"
  const auto end =
      std::find_if_not(rest.begin() + (number ? 2 : 1), rest.begin() + std::min(std::ssize(rest), kLongest),
                       [](char c) { return base::is_alpha(c) || base::is_digit(c); });
  auto length = static_cast<std::size_t>(end - rest.begin());
  if (rest.substr(length).starts_with(';')) ++length;
  const auto reference = rest.substr(0, length);
  auto value = formats::unescape_html(reference);
  return value.empty() || value == reference ? Escape{} : Escape{length, std::move(value)};
}

// "\" and the digits of a byte, a new line, or a character.
Escape read_backslash(std::string_view rest, Writing writing) {
  if (rest.size() < 2) return {};
  if (rest[1] == '\n' || rest[1] == '\r') return {rest.starts_with("\\\r\n") ? 3U : 2U, ""};
  const bool style = writing == Writing::style;
  const auto [read, code] = number_at(rest.substr(1), style ? 6 : 3, style ? 16 : 8);
  if (read > 0 && style)
    return {1 + read + (rest.size() > read + 1 && base::is_blank(rest[read + 1]) ? 1 : 0), base::utf8_of(code)};
  if (read > 0)
    return {1 + read, writing == Writing::bytes ? std::string(1, static_cast<char>(code)) : base::utf8_of(code)};
  static constexpr std::pair<char, char> kNamed[] = {{'n', '\n'}, {'t', '\t'}, {'r', '\r'}, {'b', '\b'}, {'f', '\f'}};
  const auto* const named =
      std::find_if(std::begin(kNamed), std::end(kNamed), [&](const auto& one) { return one.first == rest[1]; });
  return {2, std::string(1, style || named == std::end(kNamed) ? rest[1] : named->second)};
}

Escape read_byte(std::string_view rest) {
  if (rest.starts_with("=\r\n")) return {3, ""};
  if (rest.starts_with("=\n")) return {2, ""};
  const std::size_t begin = rest[0] == '=' ? 1 : rest.starts_with("\\x") ? 2 : 0;
  if (begin == 0) return rest[0] == '\\' ? read_backslash(rest, Writing::bytes) : Escape{};
  const auto [read, code] = number_at(rest.substr(begin), 2, 16);
  return read == 2 ? Escape{begin + 2, std::string(1, static_cast<char>(code))} : Escape{};
}

Escape read_tag(std::string_view rest) {
  const bool tag = rest.size() > 1 && (base::is_alpha(rest[1]) || rest[1] == '/' || rest[1] == '!');
  const auto end = tag ? rest.substr(0, kLongestTag).find('>') : std::string_view::npos;
  return end == std::string_view::npos ? Escape{} : Escape{end + 1, ""};
}

Escape read_seam(std::string_view rest) {
  for (const std::string_view blank :
       {"\xC2\xAD", "\xE2\x80\x8B", "\xE2\x80\x8C", "\xE2\x80\x8D", "\xE2\x81\xA0", "\xEF\xBB\xBF"})
    if (rest.starts_with(blank)) return {blank.size(), ""};
  if (rest[0] != '"' && rest[0] != '\'') return {};
  constexpr std::string_view kBlank = " \t\r\n";
  const auto sign = rest.find_first_not_of(kBlank, 1);
  if (sign == std::string_view::npos || (rest[sign] != '+' && rest[sign] != '.')) return {};
  const auto next = rest.find_first_not_of(kBlank, sign + 1);
  if (next == std::string_view::npos || (rest[next] != '"' && rest[next] != '\'')) return {};
  return {next + 1, ""};
}

// Returns the letters at which an escape may begin.
const std::array<bool, 256>& begins_of(Writing writing) {
  static const auto kBegins = [] {
    std::array<std::array<bool, 256>, 5> all{};
    constexpr std::array<std::string_view, 5> kLetters{"%\\&", "\\", "=\\", "<", "\"'\xC2\xE2\xEF"};
    for (std::size_t i = 0; i < all.size(); ++i)
      for (const char letter : kLetters[i])
        all[i][static_cast<unsigned char>(letter)] = true;
    return all;
  }();
  return kBegins[static_cast<std::size_t>(writing)];
}

// The value of a digit of so many bits; -1: it is none.
int digit_of(char letter, unsigned bits) {
  const bool lower = letter >= 'a' && letter <= 'z', upper = letter >= 'A' && letter <= 'Z';
  const int in_alphabet = lower ? letter - 'a' : letter - 'A';
  if (bits == 4)
    return base::is_digit(letter) ? letter - '0' : (lower || upper) && in_alphabet < 6 ? 10 + in_alphabet : -1;
  if (bits == 5) return lower || upper ? in_alphabet : letter >= '2' && letter <= '7' ? letter - '2' + 26 : -1;
  if (lower || upper) return in_alphabet + (lower ? 26 : 0);
  if (base::is_digit(letter)) return letter - '0' + 52;
  return letter == '+' || letter == '-' ? 62 : letter == '/' || letter == '_' ? 63 : -1;
}

// Returns true for the end of a line between digits, and for a mark between two bytes.
bool is_between(std::string_view text, std::size_t at, unsigned bits, std::size_t digits) {
  constexpr std::size_t kShortestLine = 40;
  if (digits >= kShortestLine && (text[at] == '\r' || text[at] == '\n')) return true;
  return bits == 4 && digits % 2 == 0 && digits > 0 && digit_of(text[at - 1], bits) >= 0 &&
         (text[at] == ' ' || text[at] == ':' || text[at] == '-');
}

struct Digits {
  std::vector<std::uint8_t> values;
  std::vector<std::uint32_t> at; // in the text
};

// Reads bytes from the bit `phase` on. A digit that has bits of two bytes is of neither.
View bytes_of(const Digits& digits, unsigned bits, std::size_t phase, const View& below) {
  View view;
  std::uint32_t held = 0;
  std::size_t count = 0, first = phase;
  for (std::size_t digit = phase / bits; digit < digits.values.size(); ++digit) {
    held = held << bits | digits.values[digit];
    count += bits;
    if (digit == phase / bits) count -= phase % bits;
    if (count < 8) continue;
    count -= 8;
    view.text += static_cast<char>(held >> count & 0xFF);
    const auto begin = std::min((first + bits - 1) / bits, digit), end = std::max((first + 8) / bits, begin + 1) - 1;
    view.at.push_back(below.begin_of(digits.at[begin]));
    view.to.push_back(below.end_of(digits.at[end]));
    first += 8;
  }
  return view;
}

} // namespace

Escape read_escape(std::string_view rest, Writing writing) {
  if (rest.empty()) return {};
  if (writing == Writing::bytes) return read_byte(rest);
  if (writing == Writing::seams) return read_seam(rest);
  if (writing == Writing::tags) return rest[0] == '<' ? read_tag(rest) : Escape{};
  auto coded = writing == Writing::style ? Escape{} : rest[0] == '&' ? read_reference(rest) : read_coded(rest);
  return coded.length > 0 || rest[0] != '\\' ? coded : read_backslash(rest, writing);
}

View read(const View& below, Writing writing) {
  View view;
  const std::string_view text = below.text;
  const auto& begins = begins_of(writing);
  const auto put = [&](std::string_view value, std::size_t from, std::size_t last) {
    view.text += value;
    view.at.resize(view.text.size(), below.begin_of(from));
    view.to.resize(view.text.size(), below.end_of(last));
  };
  const auto copy = [&](std::size_t from, std::size_t to) {
    view.text += text.substr(from, to - from);
    for (; from < to; ++from) {
      view.at.push_back(below.begin_of(from));
      view.to.push_back(below.end_of(from));
    }
  };
  std::size_t copied = 0; // everything before it was
  for (std::size_t at = 0; at < text.size();) {
    const auto escape = begins[static_cast<unsigned char>(text[at])] ? read_escape(text.substr(at), writing) : Escape{};
    if (escape.length == 0) {
      ++at;
      continue;
    }
    if (at - copied > 2 * kNear) {
      if (copied > 0) copy(copied, copied + kNear);
      put("\n", at - kNear, at - kNear);
      copied = at - kNear;
    }
    copy(copied, at);
    put(escape.value, at, at + escape.length - 1);
    copied = at += escape.length;
  }
  if (copied > 0) copy(copied, std::min(text.size(), copied + kNear));
  return view;
}

void each_of_digits(const View& below, std::size_t least, const std::function<void(const View&)>& take) {
  Digits digits;
  const std::string_view text = below.text;
  for (const unsigned bits : {4U, 5U, 6U})
    for (std::size_t at = 0; at < text.size(); ++at) {
      digits.values.clear();
      digits.at.clear();
      for (; at < text.size(); ++at)
        if (const auto value = digit_of(text[at], bits); value >= 0) {
          digits.values.push_back(static_cast<std::uint8_t>(value));
          digits.at.push_back(static_cast<std::uint32_t>(at));
        } else if (!is_between(text, at, bits, digits.values.size())) {
          break;
        }
      if (digits.values.size() * bits < 8 * least) continue;
      for (std::size_t phase = 0; phase < 8; phase += bits == 5 ? 1 : 8 - bits) // 4: 4; 6: 2
        take(bytes_of(digits, bits, phase, below));
    }
}

} // namespace holdfast::warc
