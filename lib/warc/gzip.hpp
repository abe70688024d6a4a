#pragma once
// Members of a gzip file, as WARC files and their compressed indexes consist of. Owned by one thread.

#include "lib/base/error.hpp"
#include "lib/base/file.hpp"

#include <zlib.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace holdfast::warc {

class GzipMember {
public:
  // `level`: 0 (stored) to 9, of zlib. Throws std::runtime_error.
  explicit GzipMember(int level);
  ~GzipMember();
  GzipMember(const GzipMember&) = delete;
  GzipMember& operator=(const GzipMember&) = delete;
  // Begins the next member, in the same memory.
  void restart(int level);
  // Passes on what is ready; with `last`, the rest.
  void add(std::string_view bytes, const std::function<void(std::string_view)>& put, bool last = false);

private:
  z_stream stream_{};
  std::string buffer_;
};

std::string gzip(std::string_view text, int level = Z_DEFAULT_COMPRESSION);

// Errors and writes of this module's files.

// Throws std::runtime_error: what, and the text of errno.
[[noreturn]] inline void cannot(const std::string& what) {
  throw std::runtime_error(what + ": " + base::errno_text(errno));
}
inline void write_all(int file, std::string_view bytes) {
  if (!base::write_all(file, bytes)) cannot("cannot write");
}

} // namespace holdfast::warc
