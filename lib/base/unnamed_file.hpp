#pragma once
// A file for work that is under way. Any thread.

#include "lib/base/fd.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace holdfast::base {

// An open file without a name in that directory; none, with errno, if there can be no such file.
inline Fd unnamed_file(const std::string& directory) {
  Fd file(::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (file) return file;
  auto name = directory + "/.spoolXXXXXX"; // not every file system has files without a name
  file.reset(::mkostemp(name.data(), O_CLOEXEC));
  if (file) ::unlink(name.c_str());
  return file;
}

} // namespace holdfast::base
