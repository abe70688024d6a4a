#include "lib/warc/revisit.hpp"

#include "lib/base/file.hpp"
#include "lib/base/text/text.hpp"
#include "lib/warc/digest.hpp"
#include "lib/warc/gzip.hpp"
#include "lib/warc/reader.hpp"

namespace holdfast::warc {

namespace {

constexpr const char* kProfile = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest";

struct Message {
  std::string head, digest; // as it is, with its empty line; of what follows
};

// Reads a record that holds all of an HTTP message; else nullopt. Throws Damaged.
std::optional<Message> read_message(Reader& reader, const Record& record) {
  if (!header_of(record.headers, "warc-truncated").empty() || !header_of(record.headers, "warc-segment-number").empty())
    return std::nullopt;
  auto head = reader.read_http_head();
  if (!head) return std::nullopt;
  Digest digest;
  reader.read_rest([&](std::string_view piece) { digest.add(piece); });
  reader.finish();
  return Message{std::move(head->text), digest.finish()};
}

} // namespace

bool holds_payload(int file, std::uint64_t offset, std::uint64_t length, const std::string& digest) {
  try {
    Reader reader(file, offset, offset + length);
    const auto record = reader.next();
    const auto message = record && record->type == "response" ? read_message(reader, *record) : std::nullopt;
    return message && message->digest == digest;
  } catch (const Damaged&) {
    return false;
  }
}

std::optional<std::string> revisit_of(int file, const Capture& response, const Capture& original) {
  std::optional<Record> record;
  std::optional<Message> message;
  try {
    Reader reader(file, response.offset, response.offset + response.length);
    if ((record = reader.next())) message = read_message(reader, *record);
  } catch (const Damaged&) {
    return std::nullopt;
  }
  if (!message || (record->type == "response" ? message->digest != original.digest : record->type != "revisit"))
    return std::nullopt;
  const auto text = record_head(record->headers,
                                {"warc-type", "warc-profile", "warc-refers-to", "warc-refers-to-target-uri",
                                 "warc-refers-to-date", "warc-payload-digest", "warc-block-digest"},
                                {{"WARC-Type", "revisit"},
                                 {"WARC-Payload-Digest", original.digest},
                                 {"WARC-Block-Digest", sha1_of(message->head)},
                                 {"WARC-Profile", kProfile},
                                 {"WARC-Refers-To-Target-URI", original.url},
                                 {"WARC-Refers-To-Date", original.date}},
                                message->head.size()) +
                    message->head + "\r\n\r\n";
  return base::holds_at(file, response.offset, "\x1f\x8b") ? gzip(text) : text;
}

} // namespace holdfast::warc
