#include "lib/warc/spool.hpp"

#include "lib/base/file.hpp"

#include <algorithm>

namespace holdfast::warc {

namespace {

constexpr std::size_t kInMemory = 1u << 20;

} // namespace

void Spool::add(std::string_view bytes) {
  digest_.add(bytes);
  size_ += bytes.size();
  if (!file_ && size_ <= kInMemory) {
    memory_ += bytes;
    return;
  }
  if (!file_) {
    if (!(file_ = base::unnamed_file("."))) cannot("cannot spool a body");
    write_all(file_.get(), memory_);
    memory_ = {};
  }
  write_all(file_.get(), bytes);
}

std::string Spool::payload_digest() const { return Digest(digest_).finish(); }

std::string Spool::head(std::size_t most) const {
  if (!file_) return memory_.substr(0, most);
  std::string bytes(std::min<std::uint64_t>(most, size_), '\0');
  if (base::read_at(file_.get(), bytes.data(), bytes.size(), 0) < 0) cannot("cannot read a spooled body");
  return bytes;
}

} // namespace holdfast::warc
