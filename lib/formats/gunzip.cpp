#include "lib/formats/gunzip.hpp"

#include "lib/base/error.hpp"
#include "lib/base/unpacked.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <memory>
#include <new>

namespace holdfast::formats {

bool is_gzip(std::string_view text) { return text.starts_with("\x1f\x8b"); }

std::string gunzip(std::string_view packed, std::size_t limit) {
  z_stream stream{};
  constexpr int kGzipOnly = 16 + MAX_WBITS;
  if (inflateInit2(&stream, kGzipOnly) != Z_OK) throw std::bad_alloc();
  const std::unique_ptr<z_stream, decltype(&inflateEnd)> owner(&stream, &inflateEnd);
  const auto damaged = [] { return base::Error(base::ErrorClass::refused, "it is packed, and damaged or cut off"); };

  limit = base::most_unpacked(packed.size(), limit);
  std::string text;
  std::array<char, 65536> room;
  std::size_t given = 0;
  bool complete = false;
  while (!complete || given < packed.size()) {
    if (complete) {                              // the next member
      if (!is_gzip(packed.substr(given))) break; // zeros that tapes and some servers leave at the end
      inflateReset(&stream);
    }
    const std::size_t piece = std::min(packed.size() - given, std::size_t{1} << 20);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data() + given));
    stream.avail_in = static_cast<uInt>(piece);
    stream.next_out = reinterpret_cast<Bytef*>(room.data());
    stream.avail_out = static_cast<uInt>(room.size());
    const int answer = inflate(&stream, Z_NO_FLUSH);
    given += piece - stream.avail_in;
    text.append(room.data(), room.size() - stream.avail_out);
    complete = answer == Z_STREAM_END;
    if (answer != Z_OK && !complete) throw damaged(); // also when nothing is left to read
    if (text.size() > limit)
      throw base::Error(base::ErrorClass::refused,
                        "it is packed, and unpacks to more than " + std::to_string(limit >> 20) + " MiB");
  }
  return text;
}

} // namespace holdfast::formats
