#include "lib/change/fingerprint.hpp"

#include "lib/base/file.hpp"
#include "lib/base/sha256.hpp"
#include "lib/base/text/encoding.hpp"
#include "lib/base/text/json.hpp"
#include "lib/base/text/text.hpp"
#include "lib/change/block_lines.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>

namespace holdfast::change {

namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostWords = 20'000, kMostBytes = 16u << 20;
constexpr std::array<char32_t, 17> kZeros{0x660, 0x6F0, 0x966, 0x9E6, 0xA66, 0xAE6,  0xB66,  0xBE6, 0xC66,
                                          0xCE6, 0xD66, 0xE50, 0xED0, 0xF20, 0x1040, 0x17E0, 0xFF10};

std::uint32_t hash(std::string_view text) { // FNV-1a
  std::uint32_t value = 2166136261U;
  for (const char letter : text)
    value = (value ^ static_cast<unsigned char>(letter)) * 16777619U;
  return value;
}

using Ranges = std::initializer_list<std::pair<char32_t, char32_t>>;
bool within(char32_t code, Ranges ranges) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [code](const auto& range) { return code >= range.first && code <= range.second; });
}
// Returns true for a character that separates words: of ASCII, Latin-1, punctuation and symbols.
bool separates(char32_t code) {
  if (code < 0x80) return !base::is_alpha(static_cast<char>(code)) && !base::is_digit(static_cast<char>(code));
  return within(code, {{0x80, 0xBF},
                       {0x60C, 0x61F},
                       {0x66A, 0x66D},
                       {0x6D4, 0x6D4},
                       {0x964, 0x965},
                       {0x2000, 0x2BFF},
                       {0x3000, 0x303F},
                       {0x30FB, 0x30FB},
                       {0xFF61, 0xFF65}});
}
// Returns true for a separator that is a word by itself: a currency, a comparison, a mark (as ~~ of words that are
// struck through) or a star. Arrows and signs of numbers go up and down with these.
bool is_sign(char32_t code) {
  return within(code, {{'$', '$'},
                       {'~', '~'},
                       {0xA3, 0xA3},
                       {0xA5, 0xA5},
                       {0x20A0, 0x20BF},
                       {0x2200, 0x2211},
                       {0x2213, 0x22FF},
                       {0x2600, 0x27BF}});
}
// Returns true for a character of a script that has no blanks between words: each is a word.
bool stands_alone(char32_t code) {
  return within(code, {{0xE00, 0xEFF},
                       {0x1000, 0x109F},
                       {0x1780, 0x17FF},
                       {0x3040, 0x30FF},
                       {0x31F0, 0x31FF},
                       {0x3400, 0x9FFF},
                       {0xF900, 0xFAFF},
                       {0xFF66, 0xFF9F},
                       {0x20000, 0x3FFFF}});
}
// Returns the length of the word at the beginning, which does not separate words. "C++" is one, and a number such as
// "12:01:09.5", with a unit of one character that stands alone.
std::size_t length_of_word(std::string_view text) {
  constexpr std::string_view kWithinNumber = ".,:'";
  auto [code, size] = base::first_character(text);
  if (stands_alone(code)) return size;
  while (size < text.size()) {
    const auto [next, length] = base::first_character(text.substr(size));
    const bool after_digit = base::is_digit(text[size - 1]);
    if (stands_alone(next)) return size + (after_digit ? length : 0);
    const bool number = after_digit && kWithinNumber.find(text[size]) != std::string_view::npos &&
                        size + 1 < text.size() && base::is_digit(text[size + 1]);
    if (!number && (next == '+' ? after_digit : separates(next))) break;
    size += length;
  }
  return size;
}
// Returns the text as a reader sees it: without soft hyphens, joiners, marks of direction and other characters of no
// width, and with wide letters and the digits of all scripts as those of ASCII.
std::string visible(std::string_view text) {
  std::string seen;
  for (std::size_t length = 0; !text.empty(); text.remove_prefix(length)) {
    const auto first = base::first_character(text);
    length = first.length;
    const auto code = first.code;
    const auto* zero = std::find_if(kZeros.begin(), kZeros.end(), [&](auto one) {
      return within(code, {{one, one + 9}});
    });
    if (zero != kZeros.end())
      seen += static_cast<char>('0' + (code - *zero));
    else if (within(code, {{0xFF01, 0xFF5E}}))
      seen += static_cast<char>(code - 0xFF01 + '!');
    else if (!within(code, {{0xAD, 0xAD},
                            {0x61C, 0x61C},
                            {0x200B, 0x200F},
                            {0x202A, 0x202E},
                            {0x2060, 0x206F},
                            {0xFE00, 0xFE0F},
                            {0xFEFF, 0xFEFF}}))
      seen += text.substr(0, length);
  }
  return seen;
}
bool is_year(std::string_view word) {
  return word.size() == 4 && std::all_of(word.begin(), word.end(), base::is_digit) &&
         (word.starts_with("19") || word.starts_with("20") || word.starts_with("21"));
}

Word word(std::string_view text) {
  const Word digits = std::any_of(text.begin(), text.end(), base::is_digit) ? kDigits : 0;
  const Word year = is_year(text) ? kYear : 0;
  return std::max(hash(text) & ~(kDigits | kYear), 4U) | digits | year;
}

// The year of a copyright notice moves on by itself.
bool has_notice(std::string_view text) {
  return text.find("\xC2\xA9") != std::string_view::npos ||
         base::lower_case(text).find("copyright") != std::string::npos;
}

std::string without_query(const std::string& url) { return url.substr(0, url.find_first_of("?#")); }

std::optional<std::string> file_of(const std::filesystem::path& attempt, const char* name) {
  const auto path = attempt / name;
  const auto file = base::open_no_links(path, O_RDONLY | O_NONBLOCK);
  if (!file) return std::nullopt;
  struct stat about {};
  if (::fstat(file.get(), &about) != 0 || !S_ISREG(about.st_mode)) return std::nullopt;
  std::string bytes(std::min(static_cast<std::size_t>(about.st_size), kMostBytes), '\0');
  std::size_t done = 0;
  for (ssize_t count = 1; done < bytes.size() && count > 0;
       done += static_cast<std::size_t>(std::max<ssize_t>(count, 0)))
    count = ::read(file.get(), bytes.data() + done, bytes.size() - done);
  bytes.resize(done);
  return bytes;
}

void read_blocks(Shape& shape, const std::string& lines) {
  std::size_t words = 0;
  const auto page = [&](const Json& json) {
    shape.source = json.value("source", "");
    shape.choice = json.value("choice", "");
    shape.title.push_back({place_of("title"), words_of(shape.choice.empty() ? json.value("title", "") : ""), false, 0});
    shape.title.push_back({place_of("url"), words_of(without_query(json.value("url", ""))), false, 0});
  };
  each_block(lines, page, [&](const Json& json) {
    const auto at = place_of(json.value("at", ""));
    const auto text = json.value("text", "");
    auto unit = Unit{at, words_of(text), json.value("pending", false), 0};
    if ((words += unit.words.size()) > kMostWords) unit.words = {word(text)};
    if (!unit.words.empty()) shape.text.push_back(std::move(unit));
    for (const auto& link : json.value("links", std::vector<std::string>()))
      if (shape.links.size() < kMostWords) shape.links.push_back({at, words_of(link), false, 0});
  });
}

void read_look(Shape& shape, const std::string& text) {
  const auto json = base::strange_json(text);
  if (!json.is_object()) return;
  try {
    shape.area = json.value("area", 0.0);
    const auto styles = json.value("styles", Json::object());
    for (const auto& [place, looks] : styles.items()) {
      std::string all;
      double area = 0;
      for (const auto& [look, size] : looks.items()) {
        all += look + "\n";
        area += size.get<double>();
      }
      shape.styles[place_of(place)] = {hash(all), area};
    }
    for (const auto& picture : json.value("pictures", Json::array())) {
      const auto at = picture.value("at", "");
      const auto& box = picture.at("box");
      shape.pictures.push_back({place_of(at), place_of(at + " " + without_query(picture.value("src", ""))),
                                base::base64_decode(picture.value("cells", "")),
                                box.at(2).get<double>() * box.at(3).get<double>()});
    }
  } catch (const Json::exception&) { // not as our hook writes it
  }
}

Json units_json(const std::vector<Unit>& units) {
  auto json = Json::array();
  for (const auto& unit : units)
    json.push_back({unit.place, unit.words, unit.any ? -1 : unit.changes});
  return json;
}
std::vector<Unit> units_from(const Json& json) {
  std::vector<Unit> units;
  for (const auto& unit : json) {
    const int changes = unit.at(2);
    units.push_back({unit.at(0), unit.at(1), changes < 0, std::max(changes, 0)});
  }
  return units;
}

} // namespace

Place place_of(std::string_view text) { return hash(text); }

std::vector<std::string> word_texts(std::string_view text) {
  std::vector<std::string> words;
  const auto all = visible(text);
  for (std::string_view left = all; !left.empty();) {
    const auto [code, length] = base::first_character(left);
    const auto size = separates(code) ? length : length_of_word(left);
    if (!separates(code) || is_sign(code)) words.emplace_back(left.substr(0, size));
    left.remove_prefix(size);
  }
  return words;
}

std::vector<Word> words_of(std::string_view text) {
  std::vector<Word> words;
  const bool notice = has_notice(text);
  for (const auto& one : word_texts(text))
    words.push_back(notice && is_year(one) ? word("2000") : word(one));
  return words;
}

Shape read_shape(const std::filesystem::path& attempt, const std::string& digest, const Digests& data) {
  Shape shape;
  if (const auto lines = file_of(attempt, "text/blocks.jsonl")) read_blocks(shape, *lines);
  if (!shape.choice.empty()) {
    constexpr std::size_t kNameDigits = 12;
    if (shape.text.empty()) shape.text.push_back({place_of("choice"), {word("")}, false, 0});
    shape.source += "#" + base::sha256_hex(shape.choice).substr(0, kNameDigits);
    return shape;
  }
  if (const auto look = file_of(attempt, "screenshot/look.json")) read_look(shape, *look);
  if (shape.source == "browser")
    for (const auto& [url, payload] : data)
      shape.text.push_back({place_of("data " + without_query(url)), {word(payload)}, false, 0});
  if (shape.text.empty() && !digest.empty()) shape.text.push_back({place_of("digest"), {word(digest)}, false, 0});
  if (shape.source.empty()) shape.source = "file";
  return shape;
}

std::string digest_of(const Fingerprint& fingerprint) {
  auto json = Json::array({fingerprint.state});
  for (const auto* units : {&fingerprint.shape.text, &fingerprint.shape.links, &fingerprint.shape.title})
    for (const auto& unit : *units)
      if (!unit.any) json.push_back({unit.place, unit.words});
  const auto bytes = Json::to_cbor(json);
  return base::sha256_hex({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

std::string to_bytes(const Fingerprint& fingerprint) {
  const auto& [shape, mask, state] = fingerprint;
  auto pictures = Json::array(), styles = Json::array();
  for (const auto& picture : shape.pictures)
    pictures.push_back({picture.place, picture.source, Json::binary({picture.cells.begin(), picture.cells.end()}),
                        static_cast<std::int64_t>(picture.area)});
  for (const auto& [place, style] : shape.styles)
    styles.push_back({place, style.first, static_cast<std::int64_t>(style.second)});
  const auto bytes = Json::to_cbor({{"text", units_json(shape.text)},
                                    {"links", units_json(shape.links)},
                                    {"title", units_json(shape.title)},
                                    {"styles", std::move(styles)},
                                    {"pictures", std::move(pictures)},
                                    {"source", shape.source},
                                    {"state", state},
                                    {"mask", {mask.text, mask.order, mask.links, mask.pictures, mask.styles}},
                                    {"known", {units_json(mask.known_text), units_json(mask.known_links)}},
                                    {"learnt", mask.learnt}});
  return {bytes.begin(), bytes.end()};
}

Fingerprint from_bytes(std::string_view bytes) {
  Fingerprint found;
  const auto json = Json::from_cbor(bytes.begin(), bytes.end(), true, false);
  if (!json.is_object()) return found;
  try {
    auto& [shape, mask, state] = found;
    shape.text = units_from(json.at("text"));
    shape.links = units_from(json.at("links"));
    shape.title = units_from(json.at("title"));
    shape.source = json.at("source");
    for (const auto& style : json.at("styles"))
      shape.styles[style.at(0)] = {style.at(1), style.at(2)};
    for (const auto& picture : json.at("pictures")) {
      const auto& cells = picture.at(2).get_binary();
      shape.pictures.push_back({picture.at(0), picture.at(1), {cells.begin(), cells.end()}, picture.at(3)});
    }
    const auto& sets = json.at("mask");
    mask = {sets.at(0),
            sets.at(1),
            sets.at(2),
            sets.at(3),
            sets.at(4),
            units_from(json.at("known").at(0)),
            units_from(json.at("known").at(1)),
            json.at("learnt")};
    state = json.at("state");
  } catch (const Json::exception&) {
    return {};
  }
  return found;
}

} // namespace holdfast::change
