#include "lib/warc/file.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>

namespace holdfast::warc {

void cannot(const char* what) { throw std::runtime_error(std::string(what) + ": " + std::strerror(errno)); }

void write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto count = ::write(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) cannot("cannot write");
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

} // namespace holdfast::warc
