#include "lib/warc/arc.hpp"

#include "lib/base/read_at.hpp"
#include "lib/base/sha256.hpp"
#include "lib/base/text.hpp"
#include "lib/warc/capture.hpp"
#include "lib/warc/record_bytes.hpp"

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>

namespace holdfast::warc {

namespace {

constexpr std::size_t kLongestLine = 16u << 10, kPiece = 1u << 16;
constexpr std::string_view kFirst = "filedesc:";

std::string bytes_at(int file, std::uint64_t offset, std::uint64_t most) {
  std::string bytes(static_cast<std::size_t>(most), '\0');
  const auto got = base::read_at(file, bytes.data(), bytes.size(), offset);
  bytes.resize(static_cast<std::size_t>(std::max<std::int64_t>(got, 0)));
  return bytes;
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
                 const std::function<void(std::uint64_t offset)>& damaged) {
  bool lost = false;
  for (std::uint64_t at = 0; at < size;) {
    const auto head = bytes_at(file, at, kLongestLine);
    const auto begin = head.find_first_not_of("\r\n");
    if (begin == std::string::npos) return;
    const auto end = std::min(head.find('\n', begin), head.size() - 1);
    // "URL address date type [more] length"
    const auto line = head.substr(begin, end - begin);
    const auto fields = base::split(line, " ");
    std::uint64_t length = size + 1; // unknown
    if (!fields.empty()) std::from_chars(fields.back().data(), fields.back().data() + fields.back().size(), length);
    const auto block = at + end + 1;
    if (fields.size() < 5 || block > size || length > size - block || whole_seconds(fields[2]).empty()) {
      if (!std::exchange(lost, true)) damaged(at);
      at = block;
      continue;
    }
    lost = false;
    at = block + length;
    if (fields[0].starts_with(kFirst)) continue;
    const bool http = bytes_at(file, block, 5) == "HTTP/";
    auto id = base::sha256_hex(line + std::to_string(block)).substr(0, 32);
    for (const std::size_t mark : {8, 13, 18, 23})
      id.insert(mark, 1, '-');
    put("WARC/1.0\r\nWARC-Type: " + std::string(http ? "response" : "resource") +
        "\r\nWARC-Record-ID: <urn:uuid:" + id + ">\r\nWARC-Target-URI: " + fields[0] +
        "\r\nWARC-Date: " + whole_seconds(fields[2]) + "\r\nWARC-IP-Address: " + fields[1] +
        "\r\nContent-Type: " + (http ? "application/http; msgtype=response" : fields[3]) +
        "\r\nContent-Length: " + std::to_string(length) + "\r\n\r\n");
    for (std::uint64_t done = 0; done < length;) {
      const auto piece = bytes_at(file, block + done, std::min<std::uint64_t>(kPiece, length - done));
      if (piece.empty()) return damaged(block); // the file became shorter
      put(piece);
      done += piece.size();
    }
    put("\r\n\r\n");
  }
}

} // namespace holdfast::warc
