#pragma once
// The hooks that look at the tab which the browser plugin keeps. See also page_of_tab() in page.hpp.

#include "services/capture/hook.hpp"

namespace holdfast::capture {

Result take_screenshot(Job& job);
Result print_pdf(Job& job);
Result save_dom(Job& job);

} // namespace holdfast::capture
