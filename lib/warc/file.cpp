#include "lib/warc/file.hpp"

#include "lib/base/write_all.hpp"

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>

namespace holdfast::warc {

void cannot(const char* what) { throw std::runtime_error(std::string(what) + ": " + std::strerror(errno)); }

void write_all(int file, std::string_view bytes) {
  if (!base::write_all(file, bytes)) cannot("cannot write");
}

} // namespace holdfast::warc
