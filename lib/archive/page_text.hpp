#pragma once
// Text of pages: the one that a plugin has left, for the search (blocking; any thread); and the parts that the pages of
// snapshots and crawls share (pure functions).

#include "lib/archive/root.hpp"
#include "lib/base/text/facts.hpp"
#include "lib/html/parts.hpp"
#include "lib/html/template.hpp"

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::archive {

// Returns the first of the known text files below the directory of an attempt, at most `limit` bytes of it; "" if there
// is none. The files are a hook's: links are not followed. Throws Error if a file cannot be read.
std::string page_text(const std::filesystem::path& attempt, std::size_t limit);
// Returns the text of a published attempt (a path below the root). Throws Error if a bucket does not answer, too.
std::string page_text(const Root& root, const std::string& directory, std::size_t limit);

// Returns a whole page, self-contained, so that it outlives everything else. `icon`: a link, or empty. Its policy holds
// should any escaping ever fail: nothing runs, nothing is fetched from elsewhere, nothing is sent.
std::string page_frame(std::string_view title, std::string_view icon, const html::Html& body);

// Adds a line for each fact that people look for: here, and on the page of `serve`.
void add_facts(html::Facts& list, const base::Facts& facts);

// Empty if there are none.
html::Html tag_list(const std::vector<std::string>& tags);

} // namespace holdfast::archive
