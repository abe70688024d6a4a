#pragma once
// Hooks that look at the tab which the browser plugin keeps. See also page_of_tab() in page.hpp.

#include "services/capture/hook.hpp"

#include <string>
#include <vector>

namespace holdfast::capture {

// All that they evaluate in a page: the browser's host passes on nothing else. The first prepares the others.
const std::vector<std::string>& view_expressions();

Result take_screenshot(Job& job);
Result print_pdf(Job& job);
Result save_dom(Job& job);

} // namespace holdfast::capture
