#pragma once
// Revisit records that take the place of responses whose payload a record elsewhere holds. Blocking; any thread.

#include "lib/warc/capture.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace holdfast::warc {

// Returns true if the record at this place is a whole response with this payload ("sha1:..."): what its header says
// does not count. Of anything else, and of what cannot be read: false.
bool holds_payload(int file, std::uint64_t offset, std::uint64_t length, const std::string& digest);

// A revisit record in the place of a response, or of another revisit record: it keeps all but the body, and refers to
// `original`, which has the same payload. nullopt: it stays as it is, because it is not such a record, or does not have
// the payload that its header names.
std::optional<std::string> revisit_of(int file, const Capture& response, const Capture& original);

} // namespace holdfast::warc
