#include "lib/base/text/text.hpp"

#include "lib/base/text/characters.hpp"
#include "lib/base/text/utf8.hpp"

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

} // namespace holdfast::base
