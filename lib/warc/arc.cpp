#include "lib/warc/arc.hpp"

#include "lib/base/read_at.hpp"
#include "lib/base/sha256.hpp"
#include "lib/base/text.hpp"
#include "lib/warc/capture.hpp"
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
constexpr std::string_view kFirst = "filedesc:";

std::string bytes_at(int file, std::uint64_t offset, std::uint64_t most) {
  std::string bytes(static_cast<std::size_t>(most), '\0');
  const auto got = base::read_at(file, bytes.data(), bytes.size(), offset);
  bytes.resize(static_cast<std::size_t>(std::max<std::int64_t>(got, 0)));
  return bytes;
}

// "URL address date type [more] length": the line that begins a record, or a line that does not (not `good`).
struct Head {
  std::string line;
  std::vector<std::string> fields{};
  std::uint64_t length{0}, block{0}; // block: where the line has ended
  bool good{false};
};

// nullopt: only empty lines are left.
std::optional<Head> head_at(int file, std::uint64_t size, std::uint64_t& at) {
  const auto text = at < size ? bytes_at(file, at, kLongestLine) : std::string();
  const auto begin = text.find_first_not_of("\r\n");
  if (begin == std::string::npos) return at = std::max(at, size), std::nullopt;
  const auto end = std::min(text.find('\n', begin), text.size() - 1);
  Head head{text.substr(begin, end - begin)};
  head.block = at + end + 1;
  head.fields = base::split(head.line, " ");
  if (head.fields.size() < 5) return head;
  const auto& number = head.fields.back();
  head.good = head.fields[0].find(':') != std::string::npos && head.fields[2].size() >= kShortestDate &&
              std::from_chars(number.data(), number.data() + number.size(), head.length).ec == std::errc{} &&
              !whole_seconds(head.fields[2]).empty();
  return head;
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
  bool lost = false;
  std::uint64_t at = 0;
  for (auto head = head_at(file, size, at); head; head = head_at(file, size, at)) {
    if (!head->good) {
      if (!std::exchange(lost, true)) damaged(at, "no ARC record begins here");
      at = head->block;
      continue;
    }
    lost = false;
    auto length = head->length;
    if (length > size - head->block) { // it ends with the file, or where the next one begins
      auto next = head->block;
      for (auto other = head_at(file, size, next); other && !other->good; other = head_at(file, size, next))
        next = other->block;
      length = next - head->block;
      damaged(at, "ends after " + std::to_string(length) + " of its " + std::to_string(head->length) + " bytes");
    }
    at = head->block + length;
    const auto& fields = head->fields;
    if (fields[0].starts_with(kFirst)) continue;
    const bool http = bytes_at(file, head->block, 5) == "HTTP/";
    auto id = base::sha256_hex(head->line + std::to_string(head->block)).substr(0, 32);
    for (const std::size_t mark : {8, 13, 18, 23})
      id.insert(mark, 1, '-');
    put("WARC/1.0\r\nWARC-Type: " + std::string(http ? "response" : "resource") + "\r\nWARC-Record-ID: <urn:uuid:" +
        id + ">\r\nWARC-Target-URI: " + fields[0] + "\r\nWARC-Date: " + whole_seconds(fields[2]) +
        "\r\nWARC-IP-Address: " + fields[1] + (length < head->length ? "\r\nWARC-Truncated: unspecified" : "") +
        "\r\nContent-Type: " + (http ? "application/http; msgtype=response" : fields[3]) +
        "\r\nContent-Length: " + std::to_string(length) + "\r\n\r\n");
    if (base::each_piece(file, head->block, at, put) < static_cast<std::int64_t>(length))
      return damaged(head->block, "the file became shorter");
    put("\r\n\r\n");
  }
}

} // namespace holdfast::warc
