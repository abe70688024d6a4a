#include "lib/warc/gzip.hpp"

#include <stdexcept>

namespace holdfast::warc {

GzipMember::GzipMember(int level) : buffer_(1u << 16, '\0') {
  if (::deflateInit2(&stream_, level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::runtime_error("zlib cannot be started");
}

GzipMember::~GzipMember() { ::deflateEnd(&stream_); }

void GzipMember::restart(int level) {
  if (::deflateReset(&stream_) != Z_OK || ::deflateParams(&stream_, level, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::runtime_error("zlib cannot be started");
}

void GzipMember::add(std::string_view bytes, const std::function<void(std::string_view)>& put, bool last) {
  stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream_.avail_in = static_cast<uInt>(bytes.size());
  int answer = Z_OK;
  do {
    stream_.next_out = reinterpret_cast<Bytef*>(buffer_.data());
    stream_.avail_out = static_cast<uInt>(buffer_.size());
    answer = ::deflate(&stream_, last ? Z_FINISH : Z_NO_FLUSH);
    put(std::string_view(buffer_).substr(0, buffer_.size() - stream_.avail_out));
  } while (stream_.avail_out == 0 || (last && answer != Z_STREAM_END));
}

std::string gzip(std::string_view text, int level) {
  std::string packed;
  GzipMember(level).add(
      text, [&](std::string_view piece) { packed += piece; }, true);
  return packed;
}

} // namespace holdfast::warc
