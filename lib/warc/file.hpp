#pragma once
// Errors and writes of this module's files.

#include <string_view>

namespace holdfast::warc {

// Throws std::runtime_error: what, and the text of errno.
[[noreturn]] void cannot(const char* what);
void write_all(int file, std::string_view bytes);

} // namespace holdfast::warc
