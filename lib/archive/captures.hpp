#pragma once
// The index of an attempt's WARC files, for the row of its snapshot. Blocking file work; any thread. The files come
// from hooks: what cannot be read is left out and named.

#include "lib/archive/attempt.hpp"
#include "lib/archive/root.hpp"
#include "lib/archive/verify.hpp"
#include "lib/warc/capture.hpp"

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::archive {

inline constexpr std::size_t kMostCaptures = 20000; // of one attempt

// Returns true if a file of an attempt is one by its name.
bool is_warc(std::string_view path);

struct Captures {
  std::vector<warc::Capture> records; // by file and offset; files relative to the attempt
  std::vector<std::string> problems;  // "browser/x.warc.gz at 1234: ends within its gzip data"
};
// The argument of holdfast.captures_add(): an array.
std::string captures_json(const Captures& captures);

// Reads every *.warc and *.warc.gz of an attempt. `cancelled`: once true, it ends with Error(temporary).
Captures read_captures(const std::filesystem::path& attempt, const std::atomic<bool>* cancelled = nullptr);
// Reads the captures of a published attempt: `directory` is relative to the root.
Captures read_captures(const Root& root, const std::string& directory);

// Copies a record of a WARC file to a file of its own; both relative to the root. Returns false if it does not exist.
bool keep_record(const Root& root, const std::string& from, std::uint64_t offset, std::uint64_t length,
                 const std::string& to);

// Compares the rows of a published attempt, whose files are relative to the root, with its files: "no record" (a row
// without its record), "other record" (the record there is another one) and "not indexed".
std::vector<Defect> verify_captures(const Root& root, const std::string& directory,
                                    const std::vector<warc::Capture>& indexed);

// Removes payloads that the archive holds already from the WARC files of an attempt, before it is published: a revisit
// record takes the place of each. Blocking file work; any thread. The files come from hooks, which must all have ended.
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
