#pragma once
// What `add` reads: URLs as arguments, lines of a file or of standard input. Stateless.

#include "lib/store/crawl.hpp"

#include <string>
#include <vector>

namespace holdfast::cli {

// An argument is "-" (standard input), an existing file, or a URL. Lines: blank and "#" lines are skipped; a JSON
// object gives its "url", "title" and "tags" (a list, or text with commas); anything else must be a URL. Every unusable
// line is collected and reported at once, as Error(refused) with "file:line: message" each; nothing is added then.
std::vector<store::Seed> read_seeds(const std::vector<std::string>& inputs, bool allow_private);

} // namespace holdfast::cli
