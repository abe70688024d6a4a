#include "lib/warc/record_bytes.hpp"

#include "lib/base/file.hpp"
#include "lib/base/inflater.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

namespace holdfast::warc {

namespace {

constexpr std::size_t kPiece = 1u << 16;
constexpr std::string_view kGzip = "\x1f\x8b\x08";
constexpr std::string_view kRecord = "WARC/", kRecordEnd = "\r\n\r\n";
// Deflate packs at most about 1,032 bytes into one. A page of zeros may come close; much of it does not.
constexpr std::uint64_t kSuspicious = std::uint64_t{1} << 30, kSuspiciousExpansion = 500;

} // namespace

RecordBytes::RecordBytes(int file, std::uint64_t begin, std::uint64_t end)
    : file_(file), begin_(begin), size_(end - begin), input_(kPiece, '\0') {}

RecordBytes::~RecordBytes() {
  if (inflating_) ::inflateEnd(&stream_);
}

std::size_t RecordBytes::fetch(std::uint64_t offset, char* out, std::size_t size) const {
  if (offset >= size_) return 0;
  size = static_cast<std::size_t>(std::min<std::uint64_t>(size, size_ - offset));
  const auto got = base::read_at(file_, out, size, begin_ + offset);
  if (got < 0) throw BadBytes(std::string("cannot be read: ") + std::strerror(errno));
  return static_cast<std::size_t>(got);
}

void RecordBytes::open(std::uint64_t offset) {
  compressed_ = offset + kGzip.size() <= size_ && base::holds_at(file_, begin_ + offset, kGzip);
  ended_ = false;
  broken_.clear();
  fetched_ = offset;
  limit_ = size_;
  inflated_ = deflated_ = 0;
  output_.clear();
  at_ = 0;
  if (std::exchange(inflating_, false)) ::inflateEnd(&stream_);
  if (!compressed_) return;
  stream_ = {};
  if (::inflateInit2(&stream_, 15 + 16) != Z_OK) throw BadBytes("zlib cannot be started");
  inflating_ = true;
}

// Decodes some more. Returns false if the record, or the file, has ended.
bool RecordBytes::fill() {
  if (ended_) return false;
  at_ = 0;
  output_.resize(kPiece);
  if (compressed_) {
    inflate_more();
  } else {
    output_.resize(fetch(fetched_, output_.data(), std::min<std::uint64_t>(output_.size(), limit_ - fetched_)));
    fetched_ += output_.size();
    ended_ = output_.empty();
  }
  return !output_.empty();
}

void RecordBytes::inflate_more() {
  stream_.next_out = reinterpret_cast<Bytef*>(output_.data());
  stream_.avail_out = static_cast<uInt>(output_.size());
  while (stream_.avail_out == output_.size() && !ended_) {
    if (stream_.avail_in == 0) {
      const auto got = fetch(fetched_, input_.data(), input_.size());
      if (got == 0) broken_ = "ends within its gzip data";
      fetched_ += got;
      stream_.next_in = reinterpret_cast<Bytef*>(input_.data());
      stream_.avail_in = static_cast<uInt>(got);
    }
    const auto before = stream_.avail_in;
    const int answer = broken_.empty() ? ::inflate(&stream_, Z_NO_FLUSH) : Z_STREAM_END;
    deflated_ += before - stream_.avail_in;
    if (answer != Z_OK && answer != Z_STREAM_END && answer != Z_BUF_ERROR)
      broken_ = std::string("has wrong gzip data: ") + (stream_.msg == nullptr ? "unexpected" : stream_.msg);
    ended_ = answer == Z_STREAM_END || !broken_.empty();
  }
  output_.resize(output_.size() - stream_.avail_out);
  inflated_ += output_.size();
  if (inflated_ > kSuspicious && inflated_ / std::max<std::uint64_t>(deflated_, 1) > kSuspiciousExpansion)
    throw BadBytes("expands more than " + std::to_string(kSuspiciousExpansion) + "-fold: a zip bomb");
}

int RecordBytes::get() {
  if (at_ == output_.size() && !fill()) return -1;
  return static_cast<unsigned char>(output_[at_++]);
}

std::size_t RecordBytes::read(char* out, std::size_t size) {
  if (at_ == output_.size() && !fill()) return 0;
  const auto count = std::min(size, output_.size() - at_);
  std::copy_n(output_.data() + at_, count, out);
  at_ += count;
  return count;
}

bool RecordBytes::is_end(std::uint64_t offset) const {
  std::array<char, 64> next{};
  const std::string_view text(next.data(), fetch(offset, next.data(), next.size()));
  const auto begin = text.find_first_not_of("\r\n");
  if (begin != std::string_view::npos) return begins_record(offset + begin);
  return offset <= size_ && text.size() < next.size();
}

void RecordBytes::end_before_next() {
  limit_ = find_record(position());
  if (limit_ < size_ && limit_ - position() >= kRecordEnd.size() &&
      base::holds_at(file_, begin_ + limit_ - kRecordEnd.size(), kRecordEnd))
    limit_ -= kRecordEnd.size();
  if (fetched_ <= limit_) return;
  output_.resize(output_.size() - static_cast<std::size_t>(fetched_ - limit_));
  fetched_ = limit_;
}

void RecordBytes::skip(std::uint64_t count) {
  const auto here = std::min<std::uint64_t>(count, output_.size() - at_);
  at_ += static_cast<std::size_t>(here);
  fetched_ += count - here;
}

std::uint64_t RecordBytes::position() const {
  return compressed_ ? fetched_ - stream_.avail_in : fetched_ - (output_.size() - at_);
}

std::uint64_t RecordBytes::skip_line_ends(std::uint64_t offset) {
  char byte = 0;
  while (fetch(offset, &byte, 1) == 1 && (byte == '\r' || byte == '\n'))
    ++offset;
  return offset;
}

// Returns true if what lies there, decompressed if it is gzip, begins as a record does.
bool RecordBytes::begins_record(std::uint64_t offset) const {
  std::array<char, 4096> head{};
  auto got = fetch(offset, head.data(), head.size());
  const std::string_view text(head.data(), got);
  if (!text.starts_with(kGzip)) return text.starts_with(kRecord);
  std::string begin(kRecord.size(), '\0');
  base::Inflater(text, base::kGzip).next(begin, got);
  return got == begin.size() && begin == kRecord;
}

std::uint64_t RecordBytes::find_record(std::uint64_t offset) {
  std::string piece(kPiece, '\0');
  while (offset < size_) {
    const auto got = fetch(offset, piece.data(), piece.size());
    if (got == 0) break;
    const std::string_view text(piece.data(), got);
    for (std::size_t at = text.find_first_of("\x1fW"); at != std::string_view::npos;
         at = text.find_first_of("\x1fW", at + 1)) {
      const auto rest = text.substr(at, kRecord.size());
      const bool likely = rest.size() < kRecord.size() || rest.starts_with(kGzip) || rest == kRecord;
      if (likely && begins_record(offset + at)) return offset + at;
    }
    offset += got;
  }
  return size_;
}

} // namespace holdfast::warc
