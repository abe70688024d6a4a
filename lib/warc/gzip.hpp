#pragma once
// Members of a gzip file, as WARC files and their compressed indexes consist of. Owned by one thread.

#include <zlib.h>

#include <functional>
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

} // namespace holdfast::warc
