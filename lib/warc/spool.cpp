#include "lib/warc/spool.hpp"

#include "lib/base/file.hpp"
#include "lib/base/text/encoding.hpp"

#include <algorithm>
#include <cstdint>

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

void Spool::clear() {
  memory_.clear();
  file_.reset();
  size_ = 0;
  digest_ = Digest();
}

std::string Spool::payload_digest() const { return Digest(digest_).finish(); }

std::string Spool::head(std::size_t most) const {
  if (!file_) return memory_.substr(0, most);
  std::string bytes(std::min<std::uint64_t>(most, size_), '\0');
  if (base::read_at(file_.get(), bytes.data(), bytes.size(), 0) < 0) cannot("cannot read a spooled body");
  return bytes;
}

void Digest::add(std::string_view bytes) {
  sha1_update(&context_, bytes.size(), reinterpret_cast<const std::uint8_t*>(bytes.data()));
}

std::string Digest::finish() {
  std::string result(SHA1_DIGEST_SIZE, '\0');
  sha1_digest(&context_, result.size(), reinterpret_cast<std::uint8_t*>(result.data()));
  return "sha1:" + base::base32_encode(result);
}

std::string sha1_of(std::string_view bytes) {
  Digest digest;
  digest.add(bytes);
  return digest.finish();
}

} // namespace holdfast::warc
