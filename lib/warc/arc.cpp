#include "lib/warc/arc.hpp"

#include "lib/base/file.hpp"
#include "lib/base/sha256.hpp"
#include "lib/base/text/text.hpp"
#include "lib/warc/capture.hpp"
#include "lib/warc/headers.hpp"
#include "lib/warc/record_bytes.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::warc {

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
