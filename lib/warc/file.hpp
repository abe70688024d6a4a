#pragma once
// Errors and writes of this module's files.

#include "lib/base/error.hpp"
#include "lib/base/file.hpp"

#include <stdexcept>
#include <string>

namespace holdfast::warc {

// Throws std::runtime_error: what, and the text of errno.
[[noreturn]] inline void cannot(const std::string& what) {
  throw std::runtime_error(what + ": " + base::errno_text(errno));
}
inline void write_all(int file, std::string_view bytes) {
  if (!base::write_all(file, bytes)) cannot("cannot write");
}

} // namespace holdfast::warc
