#include "lib/warc/reader.hpp"

#include "lib/base/characters.hpp"
#include "lib/warc/record_bytes.hpp"

#include <algorithm>
#include <charconv>

namespace holdfast::warc {

namespace {

constexpr std::size_t kLongestHead = 256u << 10; // of a record, or of an HTTP message
constexpr std::uint64_t kLongestBlock = std::uint64_t{1} << 40;
constexpr std::size_t kPieceOfBlock = 1u << 16;
constexpr std::size_t kLongestTrailer = 64;

// "Name: value"; a line that begins with a blank continues the value before it. False: this is no header field.
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

struct Reader::Impl {
  Impl(int file, std::uint64_t begin, std::uint64_t end) : bytes(file, begin, end) {}

  RecordBytes bytes;
  std::uint64_t at{0};    // where the next record begins
  std::uint64_t start{0}; // of the record that is open
  std::uint64_t left{0};  // of its block
  std::uint64_t length{0};
  bool open{false}, lost{false}; // lost: the next record is to be searched for
  bool http{false};              // of the record that is open
  bool packed_as_whole{false};
  bool cut{false}; // the record ends before its length does, or its gzip member breaks off
  std::string odd; // what is wrong with the last record, which was used all the same

  [[noreturn]] void damaged(const std::string& what) {
    open = false;
    lost = true;
    at = start;
    throw Damaged(start, what);
  }

  void end_early() {
    cut = true;
    const auto counts = std::to_string(length - left) + " of the " + std::to_string(length) + " bytes";
    odd = bytes.broken().empty() ? "ends after " + counts + " that its Content-Length names"
                                 : bytes.broken() + ", after " + counts;
    left = 0;
  }

  // Calls `work`, whose failure is the record's.
  template <typename Work>
  auto of_record(Work&& work) {
    try {
      return work();
    } catch (const BadBytes& bad) {
      damaged(bad.what());
    }
  }

  // Lines until an empty one, without their ends, and all of it as it is. False: it ends, or is too long, before.
  template <typename Line>
  bool read_head(std::uint64_t most, std::string& text, Line&& take) {
    std::string line;
    while (text.size() < most) {
      const int byte = bytes.get();
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
};

Reader::Reader(int file, std::uint64_t begin, std::uint64_t end) : impl_(std::make_unique<Impl>(file, begin, end)) {}
Reader::~Reader() = default;

std::optional<Record> Reader::next() {
  auto& my = *impl_;
  if (my.open) finish();
  if (!my.odd.empty()) throw Damaged(my.start, std::exchange(my.odd, ""), my.cut);
  if (std::exchange(my.lost, false)) my.at = my.bytes.find_record(my.at + 1);
  my.at = my.bytes.skip_line_ends(my.at);
  if (my.at >= my.bytes.size()) return std::nullopt;
  my.start = my.at;
  my.cut = false;
  return my.of_record([&] {
    my.bytes.open(my.at);
    Record record;
    record.offset = my.at;
    bool first = true;
    std::string text;
    const bool whole = my.read_head(kLongestHead, text, [&](std::string_view line) {
      if (std::exchange(first, false)) return line.starts_with("WARC/");
      return add_field(record.headers, line);
    });
    if (!whole && !my.bytes.broken().empty()) throw BadBytes(my.bytes.broken());
    if (!whole) throw BadBytes("no WARC record begins here, or its header does not end");
    const auto length = header_of(record.headers, "content-length");
    const auto [end, failure] = std::from_chars(length.data(), length.data() + length.size(), record.length);
    if (length.empty() || failure != std::errc{} || end != length.data() + length.size() ||
        record.length > kLongestBlock)
      throw BadBytes("Content-Length is \"" + length.substr(0, 40) + "\", which no file holds");
    record.type = base::lower_case(header_of(record.headers, "warc-type"));
    record.url = url_of(record.headers, "warc-target-uri");
    const auto content = base::lower_case(header_of(record.headers, "content-type"));
    record.http = content.starts_with("application/http") || (content.empty() && record.type != "resource");
    my.http = record.http;
    my.length = my.left = record.length;
    my.open = true;
    if (!my.bytes.compressed() && record.length > my.bytes.size() - my.bytes.position()) my.bytes.end_before_next();
    return std::optional(std::move(record));
  });
}

std::size_t Reader::read(char* out, std::size_t size) {
  auto& my = *impl_;
  if (!my.open || my.left == 0) return 0;
  return my.of_record([&] {
    const auto got = my.bytes.read(out, static_cast<std::size_t>(std::min<std::uint64_t>(size, my.left)));
    if (got == 0) my.end_early();
    my.left -= got;
    return got;
  });
}

void Reader::read_rest(const std::function<void(std::string_view)>& take) {
  std::string piece(kPieceOfBlock, '\0');
  while (const auto got = read(piece.data(), piece.size()))
    take(std::string_view(piece).substr(0, got));
}

std::optional<HttpHead> Reader::read_http_head() {
  auto& my = *impl_;
  if (!my.open || !my.http) return std::nullopt;
  return my.of_record([&]() -> std::optional<HttpHead> {
    HttpHead head;
    bool good = true;
    const auto most = std::min<std::uint64_t>(kLongestHead, my.left);
    const bool whole = my.read_head(most, head.text, [&](std::string_view line) {
      if (!head.first_line.empty()) return add_field(head.headers, line) || true; // servers send odd lines
      head.first_line = line;
      head.status = status_of(line);
      return good = head.status >= 0;
    });
    my.left -= head.text.size();
    if (good && !whole && my.left > 0 && head.text.size() < kLongestHead) my.end_early();
    if (!good || (!whole && my.left > 0) || head.first_line.empty()) return std::nullopt;
    return head;
  });
}

bool Reader::was_cut() const noexcept { return impl_->cut; }

bool Reader::has_members(int file, std::uint64_t size) {
  Reader reader(file, 0, size);
  auto& my = *reader.impl_;
  my.bytes.open(0);
  const bool packed = my.bytes.compressed();
  try { // the second record tells of a member with more than one
    for (int records = 0; records < 2 && reader.next(); ++records)
      reader.finish();
  } catch (const Damaged&) {
  }
  return packed && !my.packed_as_whole;
}

std::uint64_t Reader::finish() {
  auto& my = *impl_;
  if (!my.open) return 0;
  if (!my.bytes.compressed()) {
    const auto there = std::min(my.left, my.bytes.limit() - my.bytes.position());
    my.bytes.skip(there);
    if ((my.left -= there) > 0) my.end_early();
  }
  read_rest([](std::string_view) {});
  return my.of_record([&] {
    if (my.bytes.compressed()) { // to the end of the member, where its checksum is
      std::string trailer;
      int byte = my.bytes.get();
      for (; byte >= 0 && trailer.size() < kLongestTrailer; byte = my.bytes.get())
        trailer += static_cast<char>(byte);
      const auto rest = trailer.find_first_not_of("\r\n");
      my.packed_as_whole = my.packed_as_whole || trailer.find("\nWARC/") != std::string::npos;
      if (rest != std::string::npos && my.packed_as_whole)
        throw BadBytes("is one of several in a gzip member: the file is compressed as a whole");
      if (rest != std::string::npos) my.odd = "is longer than its Content-Length";
      while (byte >= 0)
        byte = my.bytes.get();
      if (!my.cut && !my.bytes.broken().empty()) my.end_early();
    }
    my.open = false;
    const auto end = my.bytes.position();
    if (!my.bytes.broken().empty())
      my.at = my.bytes.find_record(my.start + 1);
    else
      my.at = my.bytes.compressed() ? end : my.bytes.skip_line_ends(end);
    return my.at - my.start;
  });
}

} // namespace holdfast::warc
