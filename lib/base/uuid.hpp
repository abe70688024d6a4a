#pragma once
// Identifiers. Rows are named by UUID version 7 (RFC 9562): ordered by time, so that new rows land at the right edge of
// an index. Values only; new_uuid() may be called from any thread.

#include <string>
#include <string_view>

namespace holdfast::base {

// A new version 7 UUID in its canonical 36-character form; strictly increasing within a process.
std::string new_uuid();

// At most 256. Throws Error(system).
std::string random_bytes(std::size_t count);

// 32 random hexadecimal digits, for cookies and for the runner file names of the hook contract.
std::string random_hex32();

// Returns true for the canonical 36-character form or 32 hexadecimal digits, in either case.
bool is_uuid(std::string_view text) noexcept;

} // namespace holdfast::base
