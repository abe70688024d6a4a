#pragma once
// Decompresses untrusted bytes, with a limit for the result. A user of this header links zlib.

#include <zlib.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace holdfast::base {

// Deflate can make a thousand bytes of one; lists and pages that mean no harm become ten or fifty times as large.
inline constexpr std::size_t kUnpackedFreely = std::size_t{16} << 20, kMostExpansion = 200;

// The most that `packed` bytes may unpack to, where `limit` bytes would be too many in any case.
constexpr std::size_t most_unpacked(std::size_t packed, std::size_t limit) {
  return std::min(limit, std::max(kUnpackedFreely, packed > limit / kMostExpansion ? limit : packed * kMostExpansion));
}

struct Unpacked {
  std::string bytes;
  bool whole{false}; // nothing is missing
};
enum class Step { more, whole, damaged };

// Reads what a decoder returns, as far as it can be read, up to a limit. next(piece, got) fills `piece` with the next
// `got` bytes.
template <typename Decoder>
Unpacked unpack(Decoder&& decoder, std::size_t most) {
  Unpacked result;
  std::string piece(1u << 16, '\0');
  for (;;) {
    std::size_t got = 0;
    const auto step = decoder.next(piece, got);
    const auto room = most - result.bytes.size();
    result.bytes.append(piece, 0, std::min(got, room));
    if (step == Step::more && got <= room) continue;
    result.whole = step == Step::whole && got <= room;
    return result;
  }
}

inline constexpr int kGzip = 15 + 16, kGzipOrZlib = 15 + 32, kBareDeflate = -15;

// Decodes zlib data piece by piece; several gzip members in a row are one text. Owned by one thread.
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

  std::size_t taken() const noexcept { return stream_.total_in; } // bytes of the member that was read last

private:
  z_stream stream_{};
  const bool good_;
};

} // namespace holdfast::base
