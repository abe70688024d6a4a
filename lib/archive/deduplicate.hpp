#pragma once
// Removes payloads that the archive holds already from the WARC files of an attempt, before it is published: a revisit
// record takes the place of each. Blocking file work; any thread. The files come from hooks, which must all have ended.

#include "lib/archive/attempt.hpp"
#include "lib/archive/captures.hpp"
#include "lib/archive/root.hpp"
#include "lib/warc/capture.hpp"

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::archive {

using Payload = std::pair<std::string, std::string>; // URL key and digest

// Records shorter than this are not worth a reference: a revisit record takes half of it.
inline constexpr std::uint64_t kLeastRepeated = 1024;

// The payloads that could be left out of the attempt with these records.
std::vector<Payload> payloads_of(const Captures& captures);

struct Deduplicated {
  std::set<Payload> left_out; // none: no file was written again
  std::uint64_t bytes_saved{0};
};
// `captures`: the records of the attempt; those of files that are written again change. `originals`: records of the
// archive that hold payloads, in files below the root. Each is read first: what has another payload by now, or is not
// there, is not referred to.
Deduplicated deduplicate(const Root& root, const std::filesystem::path& attempt, const Captures& captures,
                         const std::map<Payload, warc::Capture>& originals, const std::atomic<bool>* cancelled);

} // namespace holdfast::archive
