#include "lib/warc/capture.hpp"

#include "lib/base/file.hpp"
#include "lib/base/text/encoding.hpp"
#include "lib/base/text/json.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/text/time.hpp"
#include "lib/warc/gzip.hpp"
#include "lib/warc/method_query.hpp"
#include "lib/warc/reader.hpp"
#include "lib/warc/spool.hpp"
#include "lib/warc/surt.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <optional>

namespace holdfast::warc {

namespace {

constexpr std::size_t kLongestUrl = 64u << 10;

// A word that a line of the index may hold as it is.
bool is_word(std::string_view text) {
  return !text.empty() && text.size() <= 200 && std::all_of(text.begin(), text.end(), [](char c) {
    return c > ' ' && c != '"' && c != '\\' && base::is_ascii(c);
  });
}

// A media type that the index may hold, or "unk".
std::string mime_of(const Headers& headers) {
  const auto type = media_type(header_of(headers, "content-type"));
  const bool whole = is_word(type) && !type.starts_with('/') && type.find('/') + 1 < type.size();
  return whole ? type : "unk";
}

std::string payload_digest(Reader& reader) {
  Digest digest;
  reader.read_rest([&](std::string_view piece) { digest.add(piece); });
  return digest.finish();
}

// The capture that a record is; nullopt: none. Throws Damaged.
std::optional<Capture> capture_of(Reader& reader, const Record& record) {
  const bool revisit = record.type == "revisit";
  if (!revisit && record.type != "response" && record.type != "resource") return std::nullopt;
  Capture capture;
  capture.date = whole_seconds(header_of(record.headers, "warc-date"));
  if (capture.date.empty()) throw Damaged(record.offset, "has no WARC-Date");
  if (record.url.empty() || record.url.size() > kLongestUrl)
    throw Damaged(record.offset, "has no WARC-Target-URI, or one that is too long");
  capture.url = base::percent_encode(record.url, base::is_graphic); // a URL is plain ASCII
  capture.key = url_key(record.url);
  const auto head = reader.read_http_head();
  if (head) capture.status = head->status <= 999 ? head->status : 0;
  capture.mime = revisit ? "warc/revisit" : mime_of(head ? head->headers : record.headers);
  if (const auto original = url_of(record.headers, "warc-refers-to-target-uri"); revisit && !original.empty())
    if (auto key = url_key(original); key != capture.key) capture.refers_to = std::move(key);
  capture.digest = header_of(record.headers, "warc-payload-digest");
  if (!is_word(capture.digest)) capture.digest = payload_digest(reader);
  capture.offset = record.offset;
  capture.size = record.length;
  return capture;
}

// Reads the method of a request, which follows its response.
// Takes the request of a response, whose record it follows: its method and body are in the key.
void take_request(Reader& reader, Capture& capture) {
  const auto head = reader.read_http_head();
  if (!head) return;
  const auto method = head->first_line.substr(0, head->first_line.find(' '));
  if (method == "GET" || method.size() > 20) return;
  std::string body;
  reader.read_rest([&](std::string_view piece) {
    if (body.size() < kLargestRequestRead) body += piece.substr(0, kLargestRequestRead - body.size());
  });
  const auto type = header_of(head->headers, "content-type");
  capture.key = request_key(capture.url, method, type, body);
  capture.method = method;
  const auto query = method_query(method, type, body);
  capture.request = query.substr(std::min(query.find('&') + 1, query.size()));
  if (query.find('&') == query.npos) capture.request.clear();
}

} // namespace

std::string whole_seconds(std::string_view date) {
  const auto text = base::canonical_timestamp(std::string(base::trimmed(date)));
  return text.empty() ? "" : text.substr(0, text.find('.')) + "Z";
}

std::string timestamp_of(std::string_view date) {
  std::string digits = whole_seconds(date);
  std::erase_if(digits, [](char c) { return !base::is_digit(c); });
  return digits;
}

void each_capture(int file, std::uint64_t begin, std::uint64_t end, const std::function<bool(Capture)>& found,
                  const std::function<void(const Damaged&)>& damaged) {
  Reader reader(file, begin, end);
  std::optional<Capture> waiting; // for its request, which has the method
  std::string waiting_id;
  for (;;) {
    try {
      const auto record = reader.next();
      if (!record) break;
      if (record->type == "request" && waiting && header_of(record->headers, "warc-concurrent-to") == waiting_id) {
        take_request(reader, *waiting);
        reader.finish();
        continue;
      }
      if (waiting && !found(*std::exchange(waiting, std::nullopt))) return;
      auto capture = capture_of(reader, *record);
      const auto length = reader.finish();
      if (!capture) continue;
      capture->length = length;
      waiting_id = header_of(record->headers, "warc-record-id");
      waiting = std::move(capture);
    } catch (const Damaged& damage) {
      if (waiting && !found(*std::exchange(waiting, std::nullopt))) return;
      damaged(damage);
    }
  }
  if (waiting) found(std::move(*waiting));
}

std::string cdxj_object(const Capture& capture, bool whole) {
  nlohmann::ordered_json object;
  if (whole) object = {{"urlkey", capture.key}, {"timestamp", timestamp_of(capture.date)}};
  object["url"] = capture.url;
  object["mime"] = capture.mime;
  if (capture.status > 0) object["status"] = std::to_string(capture.status);
  if (!capture.method.empty()) {
    object["method"] = capture.method;
    object["requestBody"] = capture.request;
  }
  object["digest"] = capture.digest;
  object["length"] = std::to_string(capture.length);
  object["offset"] = std::to_string(capture.offset);
  object["filename"] = capture.file;
  return base::json_text(object);
}

nlohmann::json replay_record(const Capture& capture, const std::string& file) {
  return {{"key", capture.key}, {"date", capture.date},     {"mime", capture.mime},    {"digest", capture.digest},
          {"file", file},       {"offset", capture.offset}, {"length", capture.length}};
}

nlohmann::json replay_record(const Capture& capture, int file) {
  return replay_record(capture, "/proc/self/fd/" + std::to_string(file));
}

std::string cdxj_line(const Capture& capture) {
  return capture.key + " " + timestamp_of(capture.date) + " " + cdxj_object(capture, false);
}

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
