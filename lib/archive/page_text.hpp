#pragma once
// The readable text of a page, as a plugin for text has left it. Blocking; any thread.

#include "lib/archive/root.hpp"

#include <cstddef>
#include <filesystem>
#include <string>

namespace holdfast::archive {

// Returns the first of the known text files below the directory of an attempt, at most `limit` bytes of it; "" if there
// is none. The files are a hook's: links are not followed. Throws Error if a file cannot be read.
std::string page_text(const std::filesystem::path& attempt, std::size_t limit);
// Returns the text of a published attempt (a path below the root). Throws Error if a bucket does not answer, too.
std::string page_text(const Root& root, const std::string& directory, std::size_t limit);

} // namespace holdfast::archive
