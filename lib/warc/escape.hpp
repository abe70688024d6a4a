#pragma once
// Reads the ways in which pages and protocols write a string: escapes, what stands between the parts of a string, and
// digits. Thread-safe: values only.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::warc {

enum class Writing {
  script, // %41 %u0041 \x41 \u0041 \u{41} \101 &#65; &amp; as URLs, JSON, JavaScript and HTML have it; of characters
  style,  // \41 with a blank, as CSS has it
  bytes,  // =41 of quoted-printable, \x41 and \101 of logs; of bytes
  tags,   // which divide a string, and are no part of it
  seams,  // soft hyphens, blanks without width, "a" + "b", likewise
};

// An escape and what it stands for; length 0: there is none.
struct Escape {
  std::size_t length{0};
  std::string value;
};
// Reads the escape at the beginning of `rest`.
Escape read_escape(std::string_view rest, Writing writing);

// A text that was read out of another one, and where the characters for each of its bytes begin and end there.
struct View {
  std::string text;
  std::vector<std::uint32_t> at{}, to{}; // empty: it is the other one itself

  std::uint32_t begin_of(std::size_t byte) const { return at.empty() ? static_cast<std::uint32_t>(byte) : at[byte]; }
  std::uint32_t end_of(std::size_t byte) const { return to.empty() ? static_cast<std::uint32_t>(byte + 1) : to[byte]; }
};

inline constexpr std::size_t kNear = 256;        // bytes around an escape that a view has
inline constexpr std::size_t kLongestTag = 4096; // that is read as one

// Reads the escapes of `below`. The view has the text around them only, in pieces; empty: there are none.
View read(const View& below, Writing writing);
// Calls take(view) for each run of hexadecimal, base32 or base64 digits that is long enough for so many bytes,
// beginning at each bit at which the bytes may begin.
void each_of_digits(const View& below, std::size_t least, const std::function<void(const View&)>& take);

} // namespace holdfast::warc
