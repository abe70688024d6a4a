#pragma once
// Revisit records that replace responses whose payload is in a record elsewhere. Blocking; any thread.

#include "lib/warc/capture.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace holdfast::warc {

// Returns true if the record at this offset is a whole response with this payload ("sha1:..."): the digest in its
// header is not used. Returns false for anything else, and for unreadable records.
bool holds_payload(int file, std::uint64_t offset, std::uint64_t length, const std::string& digest);

// Makes a revisit record from a response, or from another revisit record: it keeps all but the body, and refers to
// `original`, which has the same payload. nullopt: the record stays unchanged, because it is not of this kind, or does
// not have the payload that its header names.
std::optional<std::string> revisit_of(int file, const Capture& response, const Capture& original);

} // namespace holdfast::warc
