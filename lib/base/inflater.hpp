#pragma once
// What zlib has packed, piece by piece; several gzip members in a row are one text. Owned by one thread. Who includes
// this links zlib.

#include "lib/base/unpacked.hpp"

#include <zlib.h>

#include <string>
#include <string_view>

namespace holdfast::base {

// What the bytes may be, as inflateInit2() takes it.
inline constexpr int kGzip = 15 + 16, kGzipOrZlib = 15 + 32, kBareDeflate = -15;

class Inflater {
public:
  // `bytes` outlives it.
  Inflater(std::string_view bytes, int format) : good_(::inflateInit2(&stream_, format) == Z_OK) {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream_.avail_in = static_cast<uInt>(bytes.size());
  }
  ~Inflater() {
    if (good_) ::inflateEnd(&stream_);
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // Fills `piece` with the next `got` bytes.
  Step next(std::string& piece, std::size_t& got) {
    got = 0;
    if (!good_) return Step::damaged;
    stream_.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream_.avail_out = static_cast<uInt>(piece.size());
    const int answer = ::inflate(&stream_, Z_NO_FLUSH);
    got = piece.size() - stream_.avail_out;
    if (answer == Z_STREAM_END) { // another member may follow, or zeros that tapes and some servers leave at the end
      const bool another = stream_.avail_in > 1 && stream_.next_in[0] == 0x1f && stream_.next_in[1] == 0x8b;
      return another && ::inflateReset(&stream_) == Z_OK ? Step::more : Step::whole;
    }
    return answer == Z_OK ? Step::more : Step::damaged; // Z_BUF_ERROR: it ends too early
  }

private:
  z_stream stream_{};
  const bool good_;
};

} // namespace holdfast::base
