#pragma once
// The difference of two captures as HTML, for `holdfast diff --html` and the web interface. Blocking file work.

#include "lib/base/file.hpp"
#include "lib/change/diff.hpp"
#include "lib/html/template.hpp"

#include <functional>
#include <string>
#include <vector>

namespace holdfast::archive {

// Opens a file of the archive for reading; empty: there is none.
using OpenFile = std::function<base::Fd(const std::string& path)>;

// Compares the text of two attempts; directories relative to the root. Throws Error(refused) for one without any.
change::Difference difference(const OpenFile& open, const std::string& before, const std::string& now);
// Returns what is noise on a page, for people: of a row of noise_of() in the database, with its fingerprint as Base64.
std::vector<std::string> noise(const OpenFile& open, const std::string& fingerprint, const std::string& directory);
// Returns the screenshot of an attempt, relative to the root; empty: it has none.
std::string screenshot_of(const OpenFile& open, const std::string& directory);
// Returns the small picture of an attempt, JPEG of at most 256 KiB; empty: it has none.
std::string thumbnail_of(const OpenFile& open, const std::string& directory);

// `picture_before`, `picture`: where the screenshots are shown; empty: none.
html::Html difference_html(const change::Difference& difference, const std::string& picture_before,
                           const std::string& picture);

} // namespace holdfast::archive
