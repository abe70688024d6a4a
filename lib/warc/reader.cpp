#include "lib/warc/reader.hpp"

#include "lib/base/text/number.hpp"
#include "lib/base/text/text.hpp"

#include <algorithm>
#include <charconv>

namespace holdfast::warc {

namespace {

constexpr std::size_t kLongestHead = 256u << 10; // of a record, or of an HTTP message
constexpr std::uint64_t kLongestBlock = std::uint64_t{1} << 40;
constexpr std::size_t kPieceOfBlock = 1u << 16;
constexpr std::size_t kLongestTrailer = 64;
// How much is read for heads that are none: some may hold the beginning of many others. More is no damage.
constexpr std::uint64_t kWastedFreely = 1u << 20, kMostWasted = 4; // kMostWasted: times the size of the file

// Adds "Name: value"; a line that begins with a blank continues the value before it. Returns false if it is not a
// header field.
bool add_field(Headers& headers, std::string_view line) {
  if (base::is_blank(line.front())) {
    if (headers.empty()) return false;
    headers.back().second += " " + std::string(base::trimmed(line));
    return true;
  }
  const auto colon = line.find(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  headers.emplace_back(base::trimmed(line.substr(0, colon)), base::trimmed(line.substr(colon + 1)));
  return true;
}

// Status of "HTTP/1.1 200 OK"; 0 of "GET / HTTP/1.1"; -1 of anything else.
int status_of(std::string_view line) {
  if (!line.starts_with("HTTP/")) return line.find(" HTTP/") == std::string_view::npos ? -1 : 0;
  const auto blank = line.find(' ');
  int status = 0;
  if (blank == std::string_view::npos || blank + 4 > line.size()) return -1;
  const auto [end, failure] = std::from_chars(line.data() + blank + 1, line.data() + blank + 4, status);
  return failure == std::errc{} && status >= 100 && status <= 999 ? status : -1;
}

} // namespace

Reader::Reader(int file, std::uint64_t begin, std::uint64_t end, Digests digests)
    : bytes_(file, begin, end), compares_(digests == Digests::compare) {}

void Reader::damaged(const std::string& what) {
  open_ = false;
  digests_.reset();
  lost_ = true;
  at_ = start_;
  wasted_ += std::exchange(head_, 0);
  if (wasted_ > kWastedFreely + kMostWasted * bytes_.size()) {
    at_ = bytes_.size();
    throw Damaged(start_, what + ", as so many before it that nothing behind it is read");
  }
  throw Damaged(start_, what);
}

void Reader::end_early() {
  cut_ = true;
  const auto counts = std::to_string(length_ - left_) + " of the " + std::to_string(length_) + " bytes";
  odd_ = bytes_.broken().empty() ? "ends after " + counts + " that its Content-Length names"
                                 : bytes_.broken() + ", after " + counts;
  left_ = 0;
}

template <typename Work>
auto Reader::of_record(Work&& work) {
  try {
    return work();
  } catch (const BadBytes& bad) {
    damaged(bad.what());
  }
}

template <typename Line>
bool Reader::read_head(std::uint64_t most, std::string& text, Line&& take) {
  std::string line;
  while (text.size() < most) {
    const int byte = bytes_.get();
    if (byte < 0) return false;
    text += static_cast<char>(byte);
    if (byte != '\n') {
      line += static_cast<char>(byte);
      continue;
    }
    while (line.ends_with('\r')) // several, if a tool has changed line ends
      line.pop_back();
    if (line.empty()) return true;
    if (!take(std::string_view(line))) return false;
    line.clear();
  }
  return false;
}

std::optional<Record> Reader::next() {
  if (open_) finish();
  if (!odd_.empty())
    throw Damaged(start_, std::exchange(odd_, ""), cut_ ? Damaged::Used::in_part : Damaged::Used::whole);
  if (std::exchange(lost_, false)) at_ = bytes_.find_record(at_ + 1);
  at_ = bytes_.skip_line_ends(at_);
  if (at_ >= bytes_.size()) return std::nullopt;
  start_ = at_;
  cut_ = false;
  return of_record([&] {
    bytes_.open(at_);
    Record record;
    record.offset = at_;
    bool first = true;
    std::string text;
    const bool whole = read_head(kLongestHead, text, [&](std::string_view line) {
      if (std::exchange(first, false)) return line.starts_with("WARC/");
      return add_field(record.headers, line);
    });
    head_ = text.size();
    if (!whole && !bytes_.broken().empty()) throw BadBytes(bytes_.broken());
    if (!whole) throw BadBytes("no WARC record begins here, or its header does not end");
    const auto length = header_of(record.headers, "content-length");
    record.length = base::parse_number<std::uint64_t>(length).value_or(kLongestBlock + 1);
    if (record.length > kLongestBlock)
      throw BadBytes("Content-Length is \"" + length.substr(0, 40) + "\", which no file holds");
    record.type = base::lower_case(header_of(record.headers, "warc-type"));
    record.url = url_of(record.headers, "warc-target-uri");
    const auto content = base::lower_case(header_of(record.headers, "content-type"));
    record.http = content.starts_with("application/http") || (content.empty() && record.type != "resource");
    http_ = record.http;
    length_ = left_ = record.length;
    open_ = true;
    if (compares_) digests_.emplace(record.headers, http_);
    if (!bytes_.compressed() && !bytes_.is_end(bytes_.position() + record.length)) bytes_.end_before_next();
    return std::optional(std::move(record));
  });
}

std::size_t Reader::read(char* out, std::size_t size) {
  if (!open_ || left_ == 0) return 0;
  return of_record([&] {
    const auto got = bytes_.read(out, static_cast<std::size_t>(std::min<std::uint64_t>(size, left_)));
    if (got == 0) end_early();
    if (digests_) digests_->add({out, got});
    left_ -= got;
    return got;
  });
}

void Reader::read_rest(const std::function<void(std::string_view)>& take) {
  std::string piece(kPieceOfBlock, '\0');
  while (const auto got = read(piece.data(), piece.size()))
    take(std::string_view(piece).substr(0, got));
}

std::optional<HttpHead> Reader::read_http_head() {
  if (!open_ || !http_) return std::nullopt;
  return of_record([&]() -> std::optional<HttpHead> {
    HttpHead head;
    bool good = true;
    const auto most = std::min<std::uint64_t>(kLongestHead, left_);
    const bool whole = read_head(most, head.text, [&](std::string_view line) {
      if (!head.first_line.empty()) return add_field(head.headers, line) || true; // servers send odd lines
      head.first_line = line;
      head.status = status_of(line);
      return good = head.status >= 0;
    });
    left_ -= head.text.size();
    if (digests_) digests_->add(head.text);
    if (good && !whole && left_ > 0 && head.text.size() < kLongestHead) end_early();
    if (!good || (!whole && left_ > 0) || head.first_line.empty()) return std::nullopt;
    if (digests_) digests_->begin_payload(head.headers);
    return head;
  });
}

bool Reader::has_members(int file, std::uint64_t size) {
  Reader reader(file, 0, size);
  reader.bytes_.open(0);
  const bool packed = reader.bytes_.compressed();
  try { // the second record shows a member with more than one
    for (int records = 0; records < 2 && reader.next(); ++records)
      reader.finish();
  } catch (const Damaged&) {
  }
  return packed && !reader.packed_as_whole_;
}

std::uint64_t Reader::finish() {
  if (!open_) return 0;
  if (!bytes_.compressed() && !digests_) {
    const auto there = std::min(left_, bytes_.limit() - bytes_.position());
    bytes_.skip(there);
    if ((left_ -= there) > 0) end_early();
  }
  read_rest([](std::string_view) {});
  return of_record([&] {
    if (bytes_.compressed()) { // to the end of the member, where its checksum is
      std::string trailer;
      int byte = bytes_.get();
      for (; byte >= 0 && trailer.size() < kLongestTrailer; byte = bytes_.get())
        trailer += static_cast<char>(byte);
      const auto rest = trailer.find_first_not_of("\r\n");
      packed_as_whole_ = packed_as_whole_ || trailer.find("\nWARC/") != std::string::npos;
      if (rest != std::string::npos && packed_as_whole_)
        throw BadBytes("is one of several in a gzip member: the file is compressed as a whole");
      if (rest != std::string::npos) odd_ = "is longer than its Content-Length";
      while (byte >= 0)
        byte = bytes_.get();
      if (!cut_ && !bytes_.broken().empty()) end_early();
    }
    open_ = false;
    if (digests_ && !cut_ && odd_.empty())
      if (const auto differs = digests_->differs(); !differs.empty())
        odd_ = std::string(differs) + " is of other bytes";
    digests_.reset();
    const auto end = bytes_.position();
    if (!bytes_.broken().empty())
      at_ = bytes_.find_record(start_ + 1);
    else
      at_ = bytes_.compressed() ? end : bytes_.skip_line_ends(end);
    return at_ - start_;
  });
}

} // namespace holdfast::warc
