#include "lib/warc/pack.hpp"

#include "lib/base/file.hpp"
#include "lib/base/sha256.hpp"
#include "lib/base/text/text.hpp"
#include "lib/warc/capture.hpp"
#include "lib/warc/gzip.hpp"
#include "lib/warc/headers.hpp"
#include "lib/warc/reader.hpp"
#include "lib/warc/record_bytes.hpp"
#include "lib/warc/spool.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::warc {

namespace {

constexpr int kStored = 0, kFast = 1, kUsual = 6;

// Returns the level for a record as wget and browsers write it. Bodies may still have the coding of the server.
int level_of(const Record& record, const std::optional<HttpHead>& head) {
  if (record.type != "response" || !head) return kUsual;
  const bool coded = !header_of(head->headers, "content-encoding").empty();
  return coded ? kStored : gzip_level(media_type(header_of(head->headers, "content-type")));
}

// The lines of a head but for the fields that `dropped` names.
std::string lines_without(std::string_view head, const std::function<bool(std::string_view)>& dropped) {
  std::string kept;
  bool dropping = false;
  while (!head.empty()) {
    const auto line = head.substr(0, std::min(head.find('\n'), head.size() - 1) + 1);
    head.remove_prefix(line.size());
    if (line[0] != ' ' && line[0] != '\t') // those continue the field before
      dropping = dropped(base::trimmed(line.substr(0, line.find(':'))));
    if (!dropping) kept += line;
  }
  return kept;
}

// A request record without those fields of its HTTP head; empty: it has none of them.
std::string request_without(Reader& reader, const Record& record, const HttpHead& head, const OmittedHeaders& omitted) {
  auto block = lines_without(head.text, [&](auto name) { return omitted.contain(name); });
  if (block.size() == head.text.size()) return {};
  reader.read_rest([&](std::string_view piece) { block += piece; }); // wget's have no body: it fits into memory
  return record_head(record.headers, {"warc-block-digest"}, {{"WARC-Block-Digest", sha1_of(block)}}, block.size()) +
         block + "\r\n\r\n";
}

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

void pack(const std::string& from, const std::string& to, const OmittedHeaders& omitted) {
  const base::Fd source(::open(from.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat about {};
  if (!source || ::fstat(source.get(), &about) != 0) cannot("cannot read the WARC");
  const base::Fd target(::open(to.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!target) cannot("cannot create the WARC");
  const auto size = static_cast<std::uint64_t>(about.st_size);
  Reader reader(source.get(), 0, size);
  GzipMember member(kUsual);
  const auto put = [&](std::string_view bytes) { write_all(target.get(), bytes); };
  try {
    while (const auto record = reader.next()) {
      const auto head = reader.read_http_head();
      const bool request = record->type == "request";
      const auto changed = request && head ? request_without(reader, *record, *head, omitted) : std::string();
      const auto end = record->offset + reader.finish();
      if (request && (!head || reader.was_cut())) continue; // it may still name the client
      if (reader.was_cut()) {
        mend(source.get(), record->offset, size, true, put);
        continue;
      }
      member.restart(level_of(*record, head));
      const auto add = [&](std::string_view bytes) { member.add(bytes, put); };
      if (changed.empty() &&
          base::each_piece(source.get(), record->offset, end, add) < static_cast<std::int64_t>(end - record->offset))
        cannot("cannot read the WARC");
      member.add(changed, put, true);
    }
  } catch (const Damaged&) {
    // The writer was ended within a record.
  }
}

void mend(int file, std::uint64_t offset, std::uint64_t end, bool compressed,
          const std::function<void(std::string_view)>& put) {
  GzipMember member(kUsual);
  const auto add = [&](std::string_view bytes, bool last = false) {
    compressed ? member.add(bytes, put, last) : put(bytes);
  };
  std::uint64_t length = 0;
  for (const bool counting : {true, false}) {
    Reader reader(file, offset, end);
    const auto record = reader.next();
    if (!record) throw Damaged(offset, "is gone");
    if (!counting)
      add(record_head(record->headers, {"warc-truncated", "warc-block-digest", "warc-payload-digest"},
                      {{"WARC-Truncated", "unspecified"}}, length));
    reader.read_rest([&](std::string_view piece) { counting ? void(length += piece.size()) : add(piece); });
  }
  add("\r\n\r\n", true);
}

namespace {

constexpr std::size_t kLongestLine = 16u << 10, kShortestDate = std::string_view("202601312359").size();
constexpr std::string_view kFirst = "filedesc:", kHttp = "HTTP/";

// The line that begins a record: "URL address date type [more] length".
struct Head {
  std::uint64_t at{0}, length{0};
  std::string line;
  std::vector<std::string> fields;

  bool read(std::string text) {
    line = std::move(text);
    fields = base::split(line, " ");
    if (fields.size() < 5 || line.size() >= kLongestLine) return false;
    const auto& number = fields.back();
    return fields[0].find(':') != std::string::npos && fields[2].size() >= kShortestDate &&
           std::from_chars(number.data(), number.data() + number.size(), length).ec == std::errc{} &&
           !whole_seconds(fields[2]).empty();
  }
};

// Finds the next head, behind which the bytes go on. `lost`: called with the offset of the first other line before it.
std::optional<Head> next_head(RecordBytes& bytes, const std::function<void(std::uint64_t at)>& lost) {
  Head head;
  bool told = false;
  for (int byte = 0; byte >= 0;) {
    std::string line;
    head.at = bytes.position();
    for (byte = bytes.get(); byte >= 0 && byte != '\n'; byte = bytes.get())
      if (line.size() < kLongestLine) line += static_cast<char>(byte);
    while (line.ends_with('\r'))
      line.pop_back();
    const bool blank = line.empty();
    if (head.read(std::move(line))) return head;
    if (!blank && !std::exchange(told, true)) lost(head.at);
  }
  return std::nullopt;
}

// Returns the length of a record that the file is too short for: it ends with the file, or where the next one begins.
std::uint64_t length_of_cut(int file, std::uint64_t size, const Head& head, std::uint64_t block) {
  RecordBytes bytes(file, head.at, size);
  bytes.open(0);
  next_head(bytes, [](auto) {}); // itself
  const auto next = next_head(bytes, [](auto) {});
  return (next ? head.at + next->at : size) - block;
}

} // namespace

bool is_arc(int file, std::uint64_t size) {
  std::string begin(kFirst.size(), '\0');
  try {
    RecordBytes bytes(file, 0, size);
    bytes.open(0);
    begin.resize(bytes.read(begin.data(), begin.size()));
  } catch (const BadBytes&) {
    return false;
  }
  return begin == kFirst;
}

void arc_to_warc(int file, std::uint64_t size, const std::function<void(std::string_view)>& put,
                 const std::function<void(std::uint64_t offset, const std::string& what)>& damaged) {
  RecordBytes bytes(file, 0, size);
  bytes.open(0);
  const auto lost = [&](std::uint64_t at) { damaged(at, "no ARC record begins here"); };
  while (const auto head = next_head(bytes, lost)) {
    const auto block = bytes.position();
    const bool cut = head->length > size - block;
    const auto length = cut ? length_of_cut(file, size, *head, block) : head->length;
    if (cut)
      damaged(head->at, "ends after " + std::to_string(length) + " of its " + std::to_string(head->length) + " bytes");
    bytes.skip(length);
    const auto& fields = head->fields;
    if (fields[0].starts_with(kFirst)) continue;
    const bool http = length >= kHttp.size() && base::holds_at(file, block, kHttp);
    auto id = base::sha256_hex(head->line + std::to_string(block)).substr(0, 32);
    for (const std::size_t mark : {8, 13, 18, 23})
      id.insert(mark, 1, '-');
    Headers more{{"WARC-Type", http ? "response" : "resource"},
                 {"WARC-Record-ID", "<urn:uuid:" + id + ">"},
                 {"WARC-Target-URI", fields[0]},
                 {"WARC-Date", whole_seconds(fields[2])},
                 {"WARC-IP-Address", fields[1]},
                 {"Content-Type", http ? "application/http; msgtype=response" : fields[3]}};
    if (cut) more.emplace_back("WARC-Truncated", "unspecified");
    put(record_head({}, {}, more, length));
    if (base::each_piece(file, block, block + length, put) < static_cast<std::int64_t>(length))
      return damaged(block, "the file became shorter");
    put("\r\n\r\n");
  }
}

} // namespace holdfast::warc
