#include "lib/warc/revisit.hpp"

#include "lib/base/characters.hpp"
#include "lib/base/read_at.hpp"
#include "lib/warc/digest.hpp"
#include "lib/warc/gzip.hpp"
#include "lib/warc/reader.hpp"

#include <array>

namespace holdfast::warc {

namespace {

constexpr std::size_t kLongestHttpHead = 256u << 10; // of an HTTP message
constexpr const char* kProfile = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest";

struct Block {
  std::string head, digest; // the HTTP head with its empty line; the digest of what follows
};

// Where the head of an HTTP message ends: after its first empty line.
std::size_t end_of_head(const std::string& text) {
  for (auto at = text.find('\n'); at != std::string::npos; at = text.find('\n', at + 1)) {
    const auto next = text.compare(at + 1, 1, "\r") == 0 ? at + 2 : at + 1;
    if (next < text.size() && text[next] == '\n') return next + 1;
  }
  return std::string::npos;
}

// Of the record that is open; nullopt: it is no HTTP message. Throws Damaged.
std::optional<Block> read_block(Reader& reader) {
  std::string text, piece(1u << 16, '\0');
  auto end = std::string::npos;
  while (end == std::string::npos) {
    const auto got = reader.read(piece.data(), piece.size());
    if (got == 0 || text.size() > kLongestHttpHead) return std::nullopt;
    text.append(piece, 0, got);
    end = end_of_head(text);
  }
  Digest digest;
  digest.add(std::string_view(text).substr(end));
  while (const auto got = reader.read(piece.data(), piece.size()))
    digest.add(std::string_view(piece).substr(0, got));
  text.resize(end);
  return Block{std::move(text), sha1_text(digest.finish())};
}

bool is_whole_http(const Record& record) {
  return header_of(record.headers, "warc-truncated").empty() &&
         header_of(record.headers, "warc-segment-number").empty() &&
         base::lower_case(header_of(record.headers, "content-type")).starts_with("application/http");
}

bool is_compressed(int file, std::uint64_t offset) {
  std::array<char, 2> head{};
  return base::read_at(file, head.data(), head.size(), offset) == 2 && head[0] == '\x1f' && head[1] == '\x8b';
}

} // namespace

bool holds_payload(int file, std::uint64_t offset, std::uint64_t length, const std::string& digest) {
  try {
    Reader reader(file, offset, offset + length);
    const auto record = reader.next();
    if (!record || record->type != "response" || !is_whole_http(*record)) return false;
    const auto block = read_block(reader);
    return block && block->digest == digest;
  } catch (const Damaged&) {
    return false;
  }
}

std::optional<std::string> revisit_of(int file, const Capture& response, const Capture& original) {
  std::optional<Record> record;
  std::optional<Block> block;
  try {
    Reader reader(file, response.offset, response.offset + response.length);
    record = reader.next();
    if (!record || !is_whole_http(*record)) return std::nullopt;
    block = read_block(reader);
    reader.finish();
  } catch (const Damaged&) {
    return std::nullopt;
  }
  if (!block || (record->type == "response" ? block->digest != original.digest : record->type != "revisit"))
    return std::nullopt;
  Digest digest;
  digest.add(block->head);
  const auto kept = head_without(record->headers,
                                 {"warc-type", "warc-profile", "warc-refers-to", "warc-refers-to-target-uri",
                                  "warc-refers-to-date", "warc-payload-digest", "warc-block-digest", "content-length"});
  const auto text = kept + "WARC-Type: revisit\r\nWARC-Payload-Digest: " + original.digest +
                    "\r\nWARC-Block-Digest: " + sha1_text(digest.finish()) + "\r\nWARC-Profile: " + kProfile +
                    "\r\nWARC-Refers-To-Target-URI: " + original.url + "\r\nWARC-Refers-To-Date: " + original.date +
                    "\r\nContent-Length: " + std::to_string(block->head.size()) + "\r\n\r\n" + block->head + "\r\n\r\n";
  return is_compressed(file, response.offset) ? gzip(text) : text;
}

} // namespace holdfast::warc
