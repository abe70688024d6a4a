#pragma once
// Codings of HTTP bodies: chunks, gzip, deflate, br and zstd. Pure functions, any thread. The bytes come from the web.

#include "lib/base/inflater.hpp"
#include "lib/warc/headers.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::warc {

// Undoes what Content-Encoding and Transfer-Encoding name, the last coding first, as far as it can, and to at most
// base::most_unpacked() of `most`. An unknown one: no bytes, not whole.
base::Unpacked decode_body(std::string bytes, std::string_view codings, std::size_t most);
// Returns the body of an HTTP message without its codings, and takes their fields out of its headers. Archives keep
// headers over bodies that are decoded already, and lose them over bodies that are not: the bytes count more than the
// header. A broken body is used as far as it goes, as browsers do. nullopt: it is larger than `most`.
std::optional<std::string> plain_body(std::string body, Headers& headers, std::size_t most);
// "1a\r\n...": the bytes themselves, as far as they can be read; bytes that are not in chunks, as they are.
std::string without_chunks(std::string_view bytes);

} // namespace holdfast::warc
