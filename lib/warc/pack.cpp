#include "lib/warc/pack.hpp"

#include "lib/base/fd.hpp"
#include "lib/warc/file.hpp"
#include "lib/warc/gzip.hpp"
#include "lib/warc/reader.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <initializer_list>
#include <string_view>

namespace holdfast::warc {

namespace {

constexpr int kStored = 0, kFast = 1, kUsual = 6;

// Of a record as wget and browsers write it. Bodies may still be in the coding that the server sent.
int level_of(Reader& reader, const Record& record) {
  if (record.type != "response") return kUsual;
  const auto head = reader.read_http_head();
  if (!head) return kUsual;
  const bool coded = !header_of(head->headers, "content-encoding").empty();
  return coded ? kStored : gzip_level(media_type(header_of(head->headers, "content-type")));
}

// Copies records, one member each.
class Packer {
public:
  Packer(int from, int to) : from_(from), to_(to) {}

  void copy(std::uint64_t offset, std::uint64_t length, int level) {
    member_.restart(level);
    const auto out = [this](std::string_view bytes) { write_all(to_, bytes); };
    while (length > 0) {
      const auto most = std::min<std::uint64_t>(length, piece_.size());
      const auto got = ::pread(from_, piece_.data(), most, static_cast<off_t>(offset));
      if (got <= 0) cannot("cannot read the WARC");
      member_.add(std::string_view(piece_).substr(0, static_cast<std::size_t>(got)), out);
      offset += static_cast<std::uint64_t>(got);
      length -= static_cast<std::uint64_t>(got);
    }
    member_.add("", out, true);
  }

private:
  int from_, to_;
  GzipMember member_{kUsual};
  std::string piece_ = std::string(1u << 16, '\0');
};

} // namespace

int gzip_level(const std::string& type) {
  const auto one_of = [&](std::initializer_list<std::string_view> types) {
    return std::find(types.begin(), types.end(), type) != types.end();
  };
  if (one_of({"image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "font/woff", "font/woff2",
              "application/font-woff", "application/zip", "application/gzip", "application/x-gzip", "audio/mpeg",
              "audio/mp4", "audio/ogg", "audio/webm", "audio/aac"}) ||
      type.starts_with("video/"))
    return kStored;
  const bool dense = (type.starts_with("image/") && type != "image/svg+xml") || type.starts_with("audio/") ||
                     type.starts_with("font/") || one_of({"application/octet-stream", "application/pdf"});
  return dense ? kFast : kUsual;
}

void pack(const std::string& from, const std::string& to) {
  const base::Fd source(::open(from.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat about {};
  if (!source || ::fstat(source.get(), &about) != 0) cannot("cannot read the WARC");
  const base::Fd target(::open(to.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!target) cannot("cannot create the WARC");
  Reader reader(source.get(), 0, static_cast<std::uint64_t>(about.st_size));
  Packer packer(source.get(), target.get());
  try {
    while (const auto record = reader.next()) {
      const int level = level_of(reader, *record);
      packer.copy(record->offset, reader.finish(), level);
    }
  } catch (const Damaged&) {
    // Its writer was ended within a record.
  }
}

} // namespace holdfast::warc
