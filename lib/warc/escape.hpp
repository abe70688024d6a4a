#pragma once
// Reads the escapes in which URLs, JSON, JavaScript and HTML write characters. Thread-safe: values only.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::warc {

// An escape and what it stands for; length 0: there is none.
struct Escape {
  std::size_t length{0};
  std::string value;
};
// Reads the escape at the beginning of `rest`.
Escape read_escape(std::string_view rest);

// A text without its escapes, and where each of its bytes stood.
struct Decoded {
  std::string text;
  std::vector<std::uint32_t> at; // and where it ends
};
// `below`: where the bytes of `text` stood, if it is a decoded one itself; or null.
Decoded decode(const std::string& text, const std::vector<std::uint32_t>* below);

} // namespace holdfast::warc
