#include "services/capture/replay/replay_source.hpp"

#include "lib/base/file.hpp"
#include "lib/base/inflater.hpp"
#include "lib/base/text/encoding.hpp"
#include "lib/base/text/text.hpp"
#include "lib/warc/coding.hpp"
#include "lib/warc/method_query.hpp"
#include "lib/warc/reader.hpp"
#include "services/capture/browser/wire.hpp"

#include <fcntl.h>

#include <fstream>

namespace holdfast::capture {

namespace {

constexpr std::size_t kLargestAnswer = 64u << 20;

// nullopt: too large.
std::optional<std::string> rest_of(warc::Reader& reader) {
  std::string body;
  reader.read_rest([&](std::string_view piece) {
    if (body.size() <= kLargestAnswer) body += piece;
  });
  return body.size() <= kLargestAnswer ? std::optional(std::move(body)) : std::nullopt;
}

struct OpenRecord {
  base::Fd file;
  std::optional<warc::Reader> reader;
  std::optional<warc::Record> record;
  std::optional<warc::HttpHead> head; // of a response
};

// Throws warc::Damaged.
bool open_record(OpenRecord& open, const std::string& file, std::uint64_t offset, std::uint64_t length) {
  open.file.reset(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!open.file) return false;
  open.reader.emplace(open.file.get(), offset, offset + length);
  open.record = open.reader->next();
  if (!open.record) return false;
  open.head = open.reader->read_http_head();
  return true;
}

// Returns true for a record without a body of a response that had one.
bool lost_body(const warc::Record& record, const Headers& sent) {
  const auto length = header_of(sent, "content-length");
  return !header_of(record.headers, "warc-truncated").empty() || (!length.empty() && length != "0");
}

} // namespace

ReplaySource::ReplaySource(const Json& records, std::filesystem::path log) : log_(std::move(log)) {
  for (const auto& record : records) {
    Place place{record.value("date", ""), record.at("digest"), record.at("file"), record.at("offset"),
                record.at("length")};
    if (record.at("mime") != "warc/revisit") by_digest_.emplace(place.digest, place);
    const auto key = record.value("key", "");
    if (key.empty()) continue;
    if (const auto [known, is_new] = by_key_.emplace(key, place); !is_new && place.date < known->second.date)
      known->second = std::move(place);
  }
}

std::optional<ReplaySource::Answer> ReplaySource::answer(const Json& request) {
  const auto method = request.value("method", "GET"), url = text_at(request, "url");
  const Headers headers = headers_from(request.value("headers", Json::object()));
  const auto body = request_body(request);
  const auto key = warc::request_key(url, method, header_of(headers, "content-type"),
                                     body ? std::string_view(*body).substr(0, warc::kLargestRequestRead) : "");
  std::optional<Answer> found;
  try {
    found = find(key, method);
  } catch (const warc::Damaged&) { // it is missing
  }
  std::ofstream(log_, std::ios::app) << (found ? "+ " : "- ") << key << ' ' << url << '\n';
  return found;
}

std::optional<ReplaySource::Answer> ReplaySource::find(const std::string& key, const std::string& method) {
  const auto known = by_key_.find(key);
  if (known == by_key_.end()) return std::nullopt;
  const auto& place = known->second;
  OpenRecord open;
  if (!open_record(open, place.file, place.offset, place.length)) return std::nullopt;
  Answer answer{200, "OK", "", {}};
  if (open.head) {
    answer.status = open.head->status;
    answer.headers = open.head->headers;
    const auto blank = open.head->first_line.find(' ', open.head->first_line.find(' ') + 1);
    answer.reason = blank == std::string::npos ? "" : open.head->first_line.substr(blank + 1);
  } else {
    answer.headers = {{"Content-Type", header_of(open.record->headers, "content-type")}};
  }
  auto body = rest_of(*open.reader);
  if (body && body->empty() && open.record->type == "response" && method == "GET" && answer.status / 100 != 3 &&
      lost_body(*open.record, answer.headers))
    return std::nullopt;
  if (open.record->type == "revisit") { // its payload is in another record
    const auto original = by_digest_.find(place.digest);
    if (original == by_digest_.end()) return std::nullopt;
    OpenRecord other;
    if (!open_record(other, original->second.file, original->second.offset, original->second.length))
      return std::nullopt;
    body = rest_of(*other.reader);
    auto headers = other.head ? other.head->headers : Headers();
    if (body) body = warc::plain_body(std::move(*body), headers, kLargestAnswer);
    warc::plain_body("", answer.headers, kLargestAnswer);
    if (answer.status == kNotModified) { // the browser had the original's answer
      answer.status = other.head ? other.head->status : 200;
      answer.reason.clear();
      answer.headers = std::move(headers);
    } else if (header_of(answer.headers, "content-type").empty()) {
      answer.headers = std::move(headers);
    }
  } else if (body) {
    body = warc::plain_body(std::move(*body), answer.headers, kLargestAnswer);
  }
  if (!body || answer.status < 100) return std::nullopt;
  answer.body = std::move(*body);
  return answer;
}

void answer_from(ReplaySource& source, DevTools& browser, const Json& paused, const std::string& session) {
  const auto& request = paused["request"];
  const auto answer = source.answer(request);
  if (!answer) {
    browser.send("Fetch.failRequest", {{"requestId", paused["requestId"]}, {"errorReason", "NameNotResolved"}},
                 session);
    return;
  }
  Json headers = Json::array();
  for (const auto& [name, value] : answer->headers)
    headers.push_back({{"name", name}, {"value", value}});
  Json parameters = {{"requestId", paused["requestId"]},
                     {"responseCode", answer->status},
                     {"responseHeaders", headers},
                     {"body", base::base64_encode(answer->body)}};
  if (!answer->reason.empty()) parameters["responsePhrase"] = answer->reason;
  browser.send("Fetch.fulfillRequest", parameters, session);
}

} // namespace holdfast::capture
