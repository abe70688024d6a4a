#pragma once
// Content codings of HTTP bodies: gzip, deflate, br and zstd. Pure functions, any thread. The bytes come from the web.

#include <cstddef>
#include <string>
#include <string_view>

namespace holdfast::capture {

struct DecodedBody {
  std::string bytes; // as far as it can be decoded, at most base::most_unpacked() of what was asked for
  bool whole{false}; // nothing is missing
};

// Undoes what a Content-Encoding header names, the last coding first. An unknown one: no bytes, not whole.
DecodedBody decode_body(std::string bytes, std::string_view codings, std::size_t most);

} // namespace holdfast::capture
