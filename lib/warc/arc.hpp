#pragma once
// ARC files, the older format of web archives (Internet Archive, Heritrix 1). Blocking; any thread.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace holdfast::warc {

// Returns true if the file begins as one, unpacked or in gzip members.
bool is_arc(int file, std::uint64_t size);
// The records of an unpacked one as those of a WARC file, to `put`, in pieces. `damaged`: called with what is
// wrong where: a record that is cut is used as far as it goes, and from what is no record the next one is searched.
void arc_to_warc(int file, std::uint64_t size, const std::function<void(std::string_view)>& put,
                 const std::function<void(std::uint64_t offset, const std::string& what)>& damaged);

} // namespace holdfast::warc
