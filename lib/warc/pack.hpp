#pragma once
// Makes a compressed WARC of a plain one: one gzip member per record. Used from one thread.

#include "lib/warc/headers.hpp"

#include <string>

namespace holdfast::warc {

// Level of zlib for a body of that media type: 0, stored, for what is compressed already. There deflate saves next to
// nothing and takes most of the time.
int gzip_level(const std::string& media_type);

// Writes the records of `from` to `to`, which it replaces, requests without the fields of `omitted`; a record that is
// cut off ends it. Throws std::runtime_error.
void pack(const std::string& from, const std::string& to, const OmittedHeaders& omitted = OmittedHeaders());

} // namespace holdfast::warc
