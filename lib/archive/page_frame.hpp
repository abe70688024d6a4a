#pragma once
// Common frame of the pages of a snapshot and of a crawl. Self-contained, so that a page outlives everything else. Pure
// functions.

#include "lib/base/text/facts.hpp"
#include "lib/html/parts.hpp"
#include "lib/html/template.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace holdfast::archive {

// Returns a whole page. `icon`: a link, or empty. Its policy holds should any escaping ever fail: nothing runs, nothing
// is fetched from elsewhere, nothing is sent.
std::string page_frame(std::string_view title, std::string_view icon, const html::Html& body);

// Adds a line for each fact that people look for: here, and on the page of `serve`.
void add_facts(html::Facts& list, const base::Facts& facts);

// Empty if there are none.
html::Html tag_list(const std::vector<std::string>& tags);

} // namespace holdfast::archive
