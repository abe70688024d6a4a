#include "lib/warc/spool.hpp"

#include "lib/warc/file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

namespace holdfast::warc {

namespace {

constexpr std::size_t kInMemory = 1u << 20;

int unnamed_file() {
  int file = ::open(".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file >= 0) return file;
  char name[] = ".spoolXXXXXX"; // not every file system has files without a name
  file = ::mkostemp(name, O_CLOEXEC);
  if (file < 0) cannot("cannot spool a body");
  ::unlink(name);
  return file;
}

} // namespace

Spool::~Spool() {
  if (file_ >= 0) ::close(file_);
}

void Spool::add(std::string_view bytes) {
  digest_.add(bytes);
  size_ += bytes.size();
  if (file_ < 0 && size_ <= kInMemory) {
    memory_ += bytes;
    return;
  }
  if (file_ < 0) {
    file_ = unnamed_file();
    write_all(file_, memory_);
    memory_ = {};
  }
  write_all(file_, bytes);
}

std::string Spool::payload_digest() const { return Digest(digest_).finish(); }

std::size_t Spool::read_at(std::uint64_t offset, std::string& piece) const {
  const auto count = ::pread(file_, piece.data(), piece.size(), static_cast<off_t>(offset));
  if (count < 0) cannot("cannot read a spooled body");
  return static_cast<std::size_t>(count);
}

std::string Spool::head(std::size_t most) const {
  if (file_ < 0) return memory_.substr(0, most);
  std::string bytes(std::min<std::uint64_t>(most, size_), '\0');
  bytes.resize(read_at(0, bytes));
  return bytes;
}

} // namespace holdfast::warc
