#include "lib/warc/redactor.hpp"

#include "lib/base/inflater.hpp"
#include "lib/base/text/text.hpp"
#include "lib/formats/encoding.hpp"
#include "lib/warc/escape.hpp"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

namespace holdfast::warc {

namespace {

constexpr std::size_t kShortest = 4, kLongest = kNear; // of a pattern; longer secrets are looked for in parts
constexpr std::size_t kReach = 16 * kLongest;          // in escapes of escapes
constexpr std::size_t kAtOnce = 1u << 20, kLargestPacked = 64u << 20;
constexpr int kDepth = 3;
constexpr std::size_t kReadings = 100, kReadFreely = 1u << 20; // bytes that are read out of one

std::uint32_t start_of(std::string_view text) {
  std::uint32_t start = 0;
  std::memcpy(&start, text.data(), sizeof start);
  return start;
}
std::size_t slot_of(std::uint32_t start) { return (start * 2654435761u) >> 16; }

std::size_t find_word(std::string_view text, std::string_view word, std::size_t from) { // in any case of letters
  const auto found = std::search(
      text.begin() + static_cast<std::ptrdiff_t>(std::min(from, text.size())), text.end(), word.begin(), word.end(),
      [](char one, char other) { return (one >= 'A' && one <= 'Z' ? static_cast<char>(one | 0x20) : one) == other; });
  return found == text.end() ? std::string_view::npos : static_cast<std::size_t>(found - text.begin());
}

// The value="..." of each <input type=password>.
bool mark_password_fields(std::string& text) {
  bool any = false;
  for (auto at = find_word(text, "<input", 0); at != std::string::npos; at = find_word(text, "<input", at + 6)) {
    const auto longest = std::string_view(text).substr(at, kLongestTag), tag = longest.substr(0, longest.find('>'));
    const auto type = find_word(tag, "type", 0);
    const auto kind = type == std::string_view::npos ? type : tag.find_first_not_of(" \t\r\n=\"'", type + 4);
    if (kind == std::string_view::npos || find_word(tag.substr(kind, 8), "password", 0) != 0) continue;
    const auto value = find_word(tag, "value", 0);
    auto begin = value == std::string_view::npos ? value : tag.find_first_not_of(" \t\r\n=", value + 5);
    if (begin == std::string_view::npos) continue;
    const bool quoted = tag[begin] == '"' || tag[begin] == '\'';
    const auto end =
        std::min(tag.size(), quoted ? tag.find(tag[begin], begin + 1) : tag.find_first_of(" \t\r\n", begin));
    if (quoted) ++begin;
    if (begin >= end) continue;
    mark(text, at + begin, at + end);
    any = true;
  }
  return any;
}

constexpr std::string_view kSecretNames[] = {"password", "passwd", "pwd", "token", "secret", "otp", "totp"};

// Returns true for a secret that may be a word of any page: it is replaced only where secrets stand.
bool is_ordinary(std::string_view secret) {
  constexpr std::size_t kShort = 8, kLongWord = 16;
  const bool word = std::all_of(secret.begin(), secret.end(), [](char letter) {
    return base::is_alpha(letter) || static_cast<unsigned char>(letter) >= 0x80 || letter == ' ' || letter == '-';
  });
  return secret.size() < kShort || (word && secret.size() < kLongWord);
}

// Returns true for bytes among which escapes can be expected.
bool is_textual(std::string_view bytes) {
  const auto plain = std::count_if(bytes.begin(), bytes.end(), [](char byte) {
    return (byte >= ' ' && byte <= '~') || byte == '\n' || byte == '\r' || byte == '\t' || byte == '\0';
  });
  return static_cast<std::size_t>(plain) * 2 >= bytes.size();
}

bool is_packed(std::string_view begin) {
  return begin.starts_with("\x1f\x8b") || begin.starts_with("PK\3\4") || begin.starts_with("%PDF");
}

// Returns where compressed data may begin at `at`, and its format; 0: it does not.
std::pair<std::size_t, int> packed_at(std::string_view text, std::size_t at) {
  constexpr std::size_t kHeader = 30, kMethod = 8, kName = 26, kExtra = 28; // of a file in a ZIP archive
  const auto byte = [&](std::size_t place) { return static_cast<unsigned char>(text[at + place]); };
  const auto rest = text.substr(at);
  if (rest.starts_with("\x1f\x8b\x08")) return {at, base::kGzipOrZlib};
  if (byte(0) == 0x78 && (byte(1) == 0x01 || byte(1) == 0x5E || byte(1) == 0x9C || byte(1) == 0xDA))
    return {at, base::kGzipOrZlib};
  if (!rest.starts_with("PK\3\4") || rest.size() < kHeader || byte(kMethod) != 8) return {0, 0};
  return {at + kHeader + byte(kName) + 256U * byte(kName + 1) + byte(kExtra) + 256U * byte(kExtra + 1),
          base::kBareDeflate};
}

} // namespace

// One search through a text, and through all that can be read out of it.
class Redactor::Search {
public:
  Search(const Redactor& redactor, bool all_places, std::size_t size)
      : redactor_(redactor), all_places_(all_places), left_(kReadFreely + kReadings * size) {}

  void look(const View& view, int depth) {
    find_patterns(view);
    if (all_places_)
      for (const auto& word : redactor_.ordinary_)
        for (auto at = view.text.find(word); at != std::string::npos; at = view.text.find(word, at + word.size()))
          add(view, at, word.size());
    if (packed_ > 0) look_into_packed(view.text, depth);
    if (depth == 0) return;
    for (const auto writing : {Writing::script, Writing::style, Writing::bytes, Writing::tags, Writing::seams})
      if (const auto plain = read(view, writing); spend(plain.text.size())) look(plain, depth - 1);
    each_of_digits(view, redactor_.shortest_, [&](const View& bytes) {
      if (spend(bytes.text.size())) look(bytes, is_textual(bytes.text) ? depth - 1 : 0);
    });
  }

  std::vector<std::pair<std::size_t, std::size_t>> places;
  bool unsure{false};

private:
  void add(const View& view, std::size_t at, std::size_t length) {
    places.emplace_back(view.begin_of(at), view.end_of(at + length - 1));
  }

  void find_patterns(const View& view) {
    const std::string_view text = view.text;
    for (std::size_t at = 0; at + kShortest <= text.size(); ++at) {
      const auto start = start_of(text.substr(at));
      if (!redactor_.starts_.test(slot_of(start))) continue;
      const auto [begin, end] = redactor_.patterns_.equal_range(start);
      for (auto known = begin; known != end; ++known)
        if (text.substr(at).starts_with(known->second)) add(view, at, known->second.size());
    }
  }

  void look_into_packed(std::string_view text, int depth) {
    if (text.starts_with("\x89PNG")) return; // pixels
    for (std::size_t at = 0; at + kShortest < text.size(); ++at) {
      if (text[at] != '\x1f' && text[at] != 'x' && text[at] != 'P') continue;
      const auto [from, format] = packed_at(text, at);
      if (format == 0 || from >= text.size()) continue;
      if (left_ == 0) {
        unsure = true;
        return;
      }
      const auto most = base::most_unpacked(text.size() - from, kLargestPacked);
      base::Inflater inflater(text.substr(from), format);
      auto plain = base::unpack(inflater, most);
      left_ -= std::min(left_, inflater.taken()); // a header may go on to the end of the text
      unsure = unsure || plain.bytes.size() == most;
      if (!spend(plain.bytes.size())) continue;
      Search inner(redactor_, all_places_, 0);
      inner.left_ = left_;
      inner.packed_ = packed_ - 1;
      inner.look({std::move(plain.bytes)}, depth);
      left_ = inner.left_;
      unsure = unsure || inner.unsure || !inner.places.empty();
    }
  }

  // Returns false for an empty text, or if too much was read.
  bool spend(std::size_t size) {
    unsure = unsure || size > left_;
    left_ -= std::min(size, left_);
    return size >= redactor_.shortest_ && left_ > 0;
  }

  const Redactor& redactor_;
  const bool all_places_;
  std::size_t left_;
  int packed_{2}; // how often compressed data may be in compressed data
};

void mark(std::string& text, std::size_t begin, std::size_t end) {
  for (auto at = begin; at < end; ++at) {
    const auto rest = std::string_view(text).substr(at, end - at);
    if (rest[0] == '<') {
      const auto tag = read_escape(rest, Writing::tags).length;
      at += tag > 0 ? tag - 1 : 0;
    } else if (const auto escaped = read_escape(rest, Writing::script).length; escaped > 0) {
      text.replace(at, escaped, escaped, 'x');
    } else if (base::is_digit(text[at])) {
      text[at] = '0';
    } else if (base::is_alpha(text[at]) || static_cast<unsigned char>(text[at]) >= 0x80) {
      text[at] = 'x';
    }
  }
}

bool names_secret(std::string_view name) {
  return std::any_of(std::begin(kSecretNames), std::end(kSecretNames),
                     [&](auto secret) { return find_word(name, secret, 0) != std::string_view::npos; });
}

bool mark_named(std::string& text, const std::set<std::string>* only) {
  constexpr std::size_t kFarthestSign = 25, kLongestOrdinary = 256; // in escapes
  bool any = false;
  for (const auto name : kSecretNames) {
    std::size_t end = 0; // of the value; names within it have the same
    for (auto at = find_word(text, name, 0); at != std::string::npos; at = find_word(text, name, at + name.size())) {
      const auto after = at + name.size();
      const auto sign = std::string_view(text).substr(after, kFarthestSign).find_first_of("=:\r&;, \n");
      if (sign == std::string::npos || std::string_view("=:\r").find(text[after + sign]) == std::string::npos) continue;
      const auto begin = text.find_first_not_of("=: \t\r\n\"", after + sign);
      if (begin == std::string::npos) break;
      if (end <= begin) end = std::min(text.find_first_of("&\"\r\n", begin), text.size());
      if (only != nullptr) {
        const auto value = text.substr(begin, std::min(end - begin, kLongestOrdinary));
        if (!only->contains(value) && !only->contains(read({value}, Writing::script).text)) continue;
      }
      mark(text, begin, end);
      any = true;
    }
  }
  return any;
}

void Redactor::add(std::string_view secret) {
  if (secret.size() < kShortest) return;
  shortest_ = std::min(shortest_, secret.size());
  if (is_ordinary(secret)) {
    ordinary_.emplace(secret);
    return;
  }
  for (std::size_t at = 0; at < secret.size(); at += kLongest) // the last part goes back as far as it must
    add_pattern(secret.substr(secret.size() > kLongest ? std::min(at, secret.size() - kLongest) : 0, kLongest));
}

void Redactor::add_pattern(std::string_view part) {
  const auto put = [this](std::string pattern) {
    if (pattern.size() < kShortest) return;
    const auto start = start_of(pattern);
    const auto [begin, end] = patterns_.equal_range(start);
    if (std::any_of(begin, end, [&](const auto& known) { return known.second == pattern; })) return;
    starts_.set(slot_of(start));
    shortest_ = std::min(shortest_, pattern.size());
    patterns_.emplace(start, std::move(pattern));
  };
  put(std::string(part));
  put(read({std::string(part)}, Writing::script).text); // a site may show it without its escapes
  std::string as_form(part);
  std::replace(as_form.begin(), as_form.end(), ' ', '+');
  put(as_form);
  for (const char* encoding :
       {"UTF-16LE", "UTF-16BE", "UTF-32LE", "UTF-32BE", "ISO-8859-1", "WINDOWS-1252", "WINDOWS-1251", "KOI8-R",
        "ISO-8859-2", "SHIFT_JIS", "EUC-JP", "EUC-KR", "GB18030", "BIG5"})
    put(formats::encode(part, encoding));
}

void Redactor::except(std::string_view text) {
  std::erase_if(ordinary_, [&](const auto& known) { return text.find(known) != std::string_view::npos; });
  std::erase_if(patterns_, [&](const auto& known) { return text.find(known.second) != std::string_view::npos; });
}

FoundSecrets Redactor::apply(std::string& text, bool all_places) const {
  Search search(*this, all_places, text.size());
  if (!empty()) search.look({text}, kDepth);
  for (const auto& [begin, end] : search.places)
    if (begin < end) mark(text, begin, end);
  const bool named = !all_places && !ordinary_.empty() && mark_named(text, &ordinary_);
  return {mark_password_fields(text) || named || !search.places.empty(), search.unsure};
}

void Redactor::Stream::add(std::string_view piece, const std::function<void(std::string_view)>& put, bool last) {
  held_ += piece;
  if (!last && held_.size() < (is_packed(held_) ? kLargestPacked : kAtOnce)) return;
  const auto found = redactor_.apply(held_, all_places_);
  found_ = {found_.any || found.any, found_.unsure || found.unsure};
  const auto kept = last ? 0 : std::min(held_.size(), std::max(kReach, kLongestTag));
  put(std::string_view(held_).substr(0, held_.size() - kept));
  held_.erase(0, held_.size() - kept);
}

} // namespace holdfast::warc
