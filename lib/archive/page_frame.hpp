#pragma once
// What the pages of a snapshot and of a crawl have in common. Self-contained, so that a page outlives everything else.
// Pure functions.

#include "lib/html/template.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace holdfast::archive {

// A whole page. `icon`: a link, or empty. Its policy holds should any escaping ever fail: nothing runs, nothing is
// fetched from elsewhere, nothing is sent.
std::string page_frame(std::string_view title, std::string_view icon, const html::Html& body);

// Empty if there are none.
html::Html tag_list(const std::vector<std::string>& tags);

} // namespace holdfast::archive
