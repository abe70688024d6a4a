#pragma once
// Makes a compressed WARC of a plain one: one gzip member per record. Used from one thread.

#include "lib/warc/headers.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace holdfast::warc {

// Returns the level of zlib for a body of that media type: 0, stored, for compressed types. There deflate saves next to
// nothing and takes most of the time.
int gzip_level(const std::string& media_type);

// Writes the records of `from` to `to`, which it replaces, requests without the fields of `omitted`; one that is cut is
// mended, or left out if it is a request. Throws std::runtime_error.
void pack(const std::string& from, const std::string& to, const OmittedHeaders& omitted = OmittedHeaders());

// The record of `file` that begins at `offset`, of which something is missing, as a record with the length that it has,
// marked as truncated. `compressed`: in a gzip member. Throws Damaged.
void mend(int file, std::uint64_t offset, std::uint64_t end, bool compressed,
          const std::function<void(std::string_view)>& put);

// ARC files, the older format of web archives (Internet Archive, Heritrix 1). Blocking; any thread.

// Returns true if the file begins as one, unpacked or in gzip members.
bool is_arc(int file, std::uint64_t size);
// The records of an unpacked one as those of a WARC file, to `put`, in pieces. `damaged`: called with what is
// wrong where: a record that is cut is used as far as it goes, and from what is no record the next one is searched.
void arc_to_warc(int file, std::uint64_t size, const std::function<void(std::string_view)>& put,
                 const std::function<void(std::uint64_t offset, const std::string& what)>& damaged);

} // namespace holdfast::warc
