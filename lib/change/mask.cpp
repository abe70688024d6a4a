#include "lib/change/mask.hpp"

#include "lib/base/text/json.hpp"
#include "lib/change/block_lines.hpp"
#include "lib/change/sequence.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace holdfast::change {

namespace {

constexpr std::size_t kLongestAny = 6; // words that kAny stands for

bool has_digits(Word word) { return word == kAnyNumber || (!is_mask(word) && (word & kDigits) != 0); }
bool is_year(Word word) { return !is_mask(word) && (word & kYear) != 0; }

// The words of a pattern that may vary with a number beside them: its unit; the other parts of a date and time, which
// are numbers one after the other, with a name between two of them if one is a year.
std::vector<bool> soft_words(const std::vector<Word>& pattern) {
  std::vector<bool> soft(pattern.size());
  const auto size = pattern.size();
  for (std::size_t i = 0; i < size; ++i) {
    if (pattern[i] != kAnyNumber) continue;
    std::size_t begin = i, end = i + 1;
    bool dated = false;
    const auto grow = [&] {
      while (begin > 0 && has_digits(pattern[begin - 1]))
        dated = is_year(pattern[--begin]) || dated;
      while (end < size && has_digits(pattern[end]))
        dated = is_year(pattern[end++]) || dated;
    };
    grow();
    // A name stands between two numbers, beside a year: 28 Nov 2026.
    if (begin > 1 && has_digits(pattern[begin - 2]) && (dated || is_year(pattern[begin - 2]))) --begin;
    if (end + 1 < size && has_digits(pattern[end + 1]) && (dated || is_year(pattern[end + 1]))) ++end;
    grow();
    for (auto j = begin; j < end; ++j)
      soft[j] = true;
    if (begin > 0 && (dated || begin == i)) soft[begin - 1] = true;
    if (end < size && (dated || end == i + 1)) soft[end] = true;
  }
  return soft;
}

// Tries whether words fit a pattern, within a bounded number of steps.
class Fit {
public:
  Fit(const std::vector<Word>& pattern, const std::vector<Word>& words, bool soft)
      : pattern_(pattern), words_(words), soft_(soft ? soft_words(pattern) : std::vector<bool>(pattern.size())),
        spare_(spare(pattern)), named_(std::find(pattern.begin(), pattern.end(), kAny) != pattern.end()) {}
  bool from(std::size_t i, std::size_t at) {
    if (--left_ < 0) return false;
    if (i == pattern_.size()) return at == words_.size();
    if (is_mask(pattern_[i])) {
      for (std::size_t count = 0; count <= kLongestAny && at + count <= words_.size(); ++count)
        if (from(i + 1, at + count)) return true;
      return false;
    }
    if (at >= words_.size()) return false;
    if (pattern_[i] == words_[at] || soft_[i]) return from(i + 1, at + 1);
    // A block that varies in several places is a readout: another of its names may vary, too, and if names do, numbers.
    if (spare_ == 0 || (!named_ && ((pattern_[i] | words_[at]) & kDigits) != 0)) return false;
    --spare_;
    const bool fits = from(i + 1, at + 1);
    ++spare_;
    return fits;
  }

private:
  static int spare(const std::vector<Word>& pattern) {
    const auto masks = static_cast<int>(std::count_if(pattern.begin(), pattern.end(), is_mask));
    return masks > 1 ? std::min(masks, 3) : 0;
  }
  const std::vector<Word>& pattern_;
  const std::vector<Word>& words_;
  const std::vector<bool> soft_;
  int spare_;
  const bool named_;
  int left_{20'000};
};

} // namespace

bool is_mask(Word word) { return word == kAny || word == kAnyNumber; }

std::size_t fixed_words(const std::vector<Word>& words) {
  return static_cast<std::size_t>(std::count_if(words.begin(), words.end(), [](Word word) { return !is_mask(word); }));
}

Pairs pairs_of(const std::vector<Word>& a, const std::vector<Word>& b) {
  return common(a.size(), b.size(), [&](std::size_t i, std::size_t j) { return a[i] == b[j]; });
}

bool fits(const std::vector<Word>& pattern, const std::vector<Word>& words, bool soft) {
  return 2 * pairs_of(pattern, words).size() >= fixed_words(pattern) && Fit(pattern, words, soft).from(0, 0);
}

bool is_pattern(const std::vector<Word>& words) {
  return std::any_of(words.begin(), words.end(), is_mask) && 2 * fixed_words(words) >= words.size();
}

std::vector<Word> carried(const std::vector<Word>& earlier, const std::vector<Word>& later, bool learn) {
  std::vector<Word> words;
  std::size_t i = 0, j = 0;
  const auto gap = [&](std::size_t end_a, std::size_t end_b) {
    const bool masked = std::any_of(earlier.begin() + static_cast<std::ptrdiff_t>(i),
                                    earlier.begin() + static_cast<std::ptrdiff_t>(end_a), is_mask);
    bool number = false;
    for (auto x = i; x < end_a; ++x)
      number = number || has_digits(earlier[x]);
    for (auto y = j; y < end_b; ++y)
      number = number || has_digits(later[y]);
    if (i == end_a && j == end_b) return;
    if (learn || masked)
      words.push_back(number ? kAnyNumber : kAny);
    else
      words.insert(words.end(), later.begin() + static_cast<std::ptrdiff_t>(j),
                   later.begin() + static_cast<std::ptrdiff_t>(end_b));
  };
  for (const auto& [x, y] : pairs_of(earlier, later)) {
    gap(x, y);
    words.push_back(later[y]);
    i = x + 1;
    j = y + 1;
  }
  gap(earlier.size(), later.size());
  return words;
}

namespace {

// Writes the words of a text, with … for those that the pattern leaves open.
std::string shown(const std::vector<Word>& pattern, std::string_view text) {
  const auto words = word_texts(text);
  const auto pairs = pairs_of(pattern, words_of(text));
  std::string line;
  std::size_t next = 0; // pair
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool fixed = next < pairs.size() && pairs[next].second == i;
    if (fixed) ++next;
    if (!fixed && line.ends_with("…")) continue;
    line += (line.empty() ? "" : " ") + (fixed ? std::string(words[i]) : "…");
  }
  return line;
}

} // namespace

std::vector<std::string> noise(const Fingerprint& fingerprint, std::string_view blocks, std::string_view look) {
  constexpr std::size_t kMostLines = 200;
  const auto& [shape, mask, state] = fingerprint;
  std::vector<std::string> lines;
  const auto add = [&](const std::string& line) {
    if (lines.size() < kMostLines && std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(line);
  };
  each_block(
      blocks, [](const nlohmann::json&) {},
      [&](const nlohmann::json& json) {
        const auto at = json.value("at", ""), text = json.value("text", "");
        const auto place = place_of(at);
        const auto words = words_of(text);
        if (mask.text.contains(place)) add(at + ": any text");
        if (mask.order.contains(place)) add(at + ": any order");
        if (mask.links.contains(place)) add(at + ": any links");
        for (const auto* units : {&shape.text, &mask.known_text})
          for (const auto& unit : *units)
            if (unit.place == place && std::any_of(unit.words.begin(), unit.words.end(), is_mask) &&
                fits(unit.words, words))
              add(at + ": " + shown(unit.words, text));
      });
  const auto json = base::strange_json(look);
  try {
    const auto styles = json.at("styles"), pictures = json.at("pictures");
    for (const auto& [place, looks] : styles.items())
      if (mask.styles.contains(place_of(place))) add(place + ": any style");
    for (const auto& picture : pictures) {
      const std::string at = picture.at("at"), source = picture.at("src");
      if (mask.pictures.contains(place_of(at)) ||
          mask.pictures.contains(place_of(at + " " + source.substr(0, source.find_first_of("?#")))))
        add(at + ": any picture");
    }
  } catch (const nlohmann::json::exception&) { // not as our hook writes it, or there is none
  }
  return lines;
}

} // namespace holdfast::change
