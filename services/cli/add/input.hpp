#pragma once
// Input of verbs: URLs as arguments, lines of a file or of standard input; ids from a pipe. Stateless.

#include "lib/store/expansion.hpp"

#include <string>
#include <vector>

namespace holdfast::cli {

// Options for reading arguments. An argument is "-" (standard input), an existing file, or a URL. Files and standard
// input are lists of any format of lib/formats/list.hpp; `parser` is "auto", or names one. An unusable line of a text
// is left out, counted, and reported on standard error as "file:line: message". It is Error(refused) when `strict` is
// set, when nothing usable is left, and for an argument, which was typed just now. In exports of other programs,
// entries that are not web pages (javascript:, place:) are left out with a note on standard error, because an export is
// not edited by hand.
struct ReadOptions {
  bool allow_private{false}, strict{false};
  std::string parser{"auto"};
};
struct ReadSeeds {
  std::vector<store::Seed> seeds;
  std::size_t left_out{0}; // lines
  std::string problems;    // of read_request: texts for standard error
};
ReadSeeds read_seeds(const std::vector<std::string>& inputs, const ReadOptions& options);
// Reads a request over HTTP in the same way: without files, standard input and reports. `text` and `file` are contents
// of files.
ReadSeeds read_request(const std::vector<std::string>& urls, const std::string& text, const std::string& file,
                       const ReadOptions& options);

// The ids that a verb was given, "-" replaced by what standard input holds: one id a line, or the JSON lines that other
// verbs print, of which a Crawl, Snapshot or Process gives its own id, a result its snapshot's, a Control its target's.
// Each id once, in the order in which they came. Throws Error(refused) with the number of every line that names none;
// nothing has been done by then.
std::vector<std::string> read_ids(const std::vector<std::string>& given);

// The name of a host, given by itself or in a URL: "Example.COM", "https://example.com/x" -> "example.com".
std::string host_name(const std::string& given);

} // namespace holdfast::cli
