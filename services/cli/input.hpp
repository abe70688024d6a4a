#pragma once
// What `add` reads: URLs as arguments, lines of a file or of standard input. Stateless.

#include "lib/store/crawl.hpp"

#include <string>
#include <vector>

namespace holdfast::cli {

// An argument is "-" (standard input), an existing file, or a URL. Lines: blank and "#" lines are skipped; a JSON
// object gives its "url", "title" and "tags" (a list, or text with commas); anything else must be a URL, or text that
// holds some (http:// or https://; told on standard error). What gzip has packed is unpacked first. Every unusable line is collected and reported at once, as Error(refused) with "file:line: message" each; nothing is added then.
// A file may also be what other programs export (import.hpp): `parser` is "auto", or says which. There, entries that
// are no web pages (javascript:, place:) are left out with a note on standard error: nobody edits an export.
std::vector<store::Seed> read_seeds(const std::vector<std::string>& inputs, bool allow_private,
                                    const std::string& parser = "auto");

} // namespace holdfast::cli
