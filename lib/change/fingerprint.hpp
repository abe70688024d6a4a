#pragma once
// The fingerprint of a page: its words, links, styles and pictures by their places, as hashes, with the mask of what is
// noise in it. It is all that the next capture of the URL needs to know what has changed. Values; pure but for
// read_shape().

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::change {

// A word: its hash, with two bits that tell whether it has digits, and whether it is a year.
using Word = std::uint32_t;
inline constexpr Word kAny = 0, kAnyNumber = 1; // of a mask: any words, or any with a number
inline constexpr Word kDigits = 1, kYear = 2;
using Place = std::uint32_t;

// A block of text, or a link.
struct Unit {
  Place place{0};
  std::vector<Word> words;
  bool any{false}; // of a mask: any number of units of this place
  int changes{0};  // captures in a row in which it had other words
  friend bool operator==(const Unit&, const Unit&) = default;
};

struct Picture {
  Place place{0}, source{0}; // of the place alone; of the place and the path of its URL
  std::string cells;
  double area{0};
};

struct Shape {
  std::vector<Unit> text, links, title;            // title: one unit, and one of the final URL
  std::map<Place, std::pair<Word, double>> styles; // with their area
  std::vector<Picture> pictures;
  double area{0};
  std::string source; // "browser" or "file"; with a choice also "#" and its digest
  std::string choice; // the part of the page that counts (option TEXT_SELECT, TEXT_IGNORE); empty: all of it
  bool empty() const { return text.empty() && pictures.empty(); }
};

// The noise of a URL, beside the words and units that are a mask themselves.
struct Mask {
  std::set<Place> text, order, links, pictures, styles; // any units, or any order of them
  std::vector<Unit> known_text, known_links;            // masks of units that are not on the page now
  bool learnt{false};
};

struct Fingerprint {
  Shape shape;
  Mask mask;
  std::string state; // "page", or why it was none: "gone", "status 403"
};

// Splits text into words. Years beside a copyright notice are all alike.
std::vector<Word> words_of(std::string_view text);
std::vector<std::string> word_texts(std::string_view text);
Place place_of(std::string_view text);

// Reads what the hooks of an attempt left (text/blocks.jsonl, screenshot/look.json). `digest`: of the main resource,
// which stands for a page without words. `data`: URLs and digests of what scripts have fetched as JSON, which a page
// may show only in part.
using Digests = std::set<std::pair<std::string, std::string>>;
Shape read_shape(const std::filesystem::path& attempt, const std::string& digest, const Digests& data);

// Digest of what is compared exactly, in hexadecimal digits: words, links and title, without what is noise.
std::string digest_of(const Fingerprint& fingerprint);

// Bytes for the database. from_bytes() returns an empty fingerprint for bytes that are none.
std::string to_bytes(const Fingerprint& fingerprint);
Fingerprint from_bytes(std::string_view bytes);

} // namespace holdfast::change
