#pragma once
// Compares what the egress proxy received for a page with the records of its WARC files. The proxy decrypts nothing,
// but it counts the bytes of each host for every request, also of workers of a page that no recorder can watch.

#include "lib/archive/captures.hpp"
#include "services/egress/proxy.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace holdfast::worker {

// Returns the bytes received from each host that are in no record. Leaves out what a comparison cannot decide: the
// handshakes of TLS, small differences, films whose pieces a player has dropped, bodies that revisit records do not
// repeat, and messages of WebSockets.
std::map<std::string, std::uint64_t> unrecorded(const egress::Traffic& traffic,
                                                const std::vector<warc::Capture>& records);

} // namespace holdfast::worker
