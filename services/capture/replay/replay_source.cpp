#include "services/capture/replay/replay_source.hpp"

#include "lib/base/file.hpp"
#include "lib/base/inflater.hpp"
#include "lib/base/text/encoding.hpp"
#include "lib/base/text/number.hpp"
#include "lib/base/text/text.hpp"
#include "lib/formats/link.hpp"
#include "lib/warc/coding.hpp"
#include "lib/warc/method_query.hpp"
#include "lib/warc/reader.hpp"
#include "lib/warc/surt.hpp"
#include "services/capture/browser/wire.hpp"

#include <fcntl.h>

#include <algorithm>
#include <fstream>
#include <set>

namespace holdfast::capture {

namespace {

constexpr std::size_t kLargestAnswer = 64u << 20;
const std::set<std::string> kNoFiles{"asp", "aspx", "jsp", "php", "pl", "exe", "dll"};

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

// A key without what players take for chance, as pywb does: numbers that keep caches away, tags of campaigns, the names
// of callbacks.
std::string without_chance(std::string_view key) {
  auto query = key.find('?');
  std::string left(key.substr(0, query));
  while (query < key.size()) {
    const auto end = std::min(key.find('&', query + 1), key.size());
    const auto pair = key.substr(query + 1, end - query - 1);
    query = end;
    const auto equals = std::min(pair.find('='), pair.size());
    const auto name = pair.substr(0, equals), value = pair.substr(std::min(equals + 1, pair.size()));
    const bool number = !value.empty() && value.find_first_not_of("0123456789") == value.npos;
    if ((number && (name == "_" || name == "cb" || name == "uncache")) || name.starts_with("utm_")) continue;
    const bool calls = value.starts_with("jquery") || (name == "callback" && value.starts_with("jsonp"));
    left.append("&").append(calls ? name : pair);
  }
  return left;
}

// A script of JSONP calls the function that its page has named now.
void call_back(std::string& script, std::string_view url) {
  const auto open = script.find('('), at = url.find("callback=");
  if (open == script.npos || open > 200 || at == url.npos || !script.substr(open + 1).starts_with('{')) return;
  const auto name = url.substr(at + 9);
  script.replace(0, open, name.substr(0, name.find('&')));
}

// Returns true for an answer that leads to where it came from, as one that only sets a cookie.
bool leads_back(const ReplaySource::Answer& answer, const std::string& url) {
  const auto to = formats::join_url(url, header_of(answer.headers, "location"));
  return answer.status / 100 == 3 && to && warc::url_key(*to) == warc::url_key(url);
}

// The first and last byte of "bytes=3-9" in a body of this size.
std::optional<std::pair<std::size_t, std::size_t>> range_of(std::string_view asked, std::size_t size) {
  const auto dash = asked.find('-');
  if (!asked.starts_with("bytes=") || dash == asked.npos || size == 0) return std::nullopt;
  const auto first = base::parse_number<std::size_t>(asked.substr(6, dash - 6)),
             last = base::parse_number<std::size_t>(asked.substr(dash + 1));
  if (!first && !last) return std::nullopt;
  if (!first) return std::pair(size - std::min(size, *last), size - 1);
  return *first < size ? std::optional(std::pair(*first, std::min(last.value_or(size), size - 1))) : std::nullopt;
}

} // namespace

ReplaySource::ReplaySource(const Json& records, std::filesystem::path log) : log_(std::move(log)) {
  for (const auto& record : records) {
    Place place{record.value("date", ""), record.at("digest"), record.at("file"), record.at("offset"),
                record.at("length")};
    if (record.at("mime") != "warc/revisit") by_digest_.emplace(place.digest, place);
    const auto key = record.value("key", "");
    if (key.empty()) continue;
    auto& places = by_key_[key];
    const auto later = [](const Place& one, const Place& other) { return one.date < other.date; };
    places.insert(std::upper_bound(places.begin(), places.end(), place, later), place);
  }
}

std::optional<ReplaySource::Answer> ReplaySource::answer(const Json& request) {
  const auto method = request.value("method", "GET"), url = text_at(request, "url");
  const Headers headers = headers_from(request.value("headers", Json::object()));
  const auto body = request_body(request);
  auto key = warc::request_key(url, method, header_of(headers, "content-type"),
                               body ? std::string_view(*body).substr(0, warc::kLargestRequestRead) : "");
  if (!by_key_.contains(key)) key = alike(key);
  std::optional<Answer> found;
  if (const auto known = by_key_.find(key); known != by_key_.end())
    for (const auto& place : known->second) {
      try {
        auto answer = read(place, method);
        if (!answer) continue;
        const bool last = answer->status != kPartialContent && !leads_back(*answer, url);
        if (!found || last) found = std::move(answer);
        if (last) break;
      } catch (const warc::Damaged&) { // it is missing
      }
    }
  std::ofstream(log_, std::ios::app) << (found ? "+ " : "- ") << key << ' ' << url << '\n';
  if (!found) return found;
  call_back(found->body, url);
  if (const auto part =
          found->status == 200 ? range_of(header_of(headers, "range"), found->body.size()) : std::nullopt) {
    const auto [first, last] = *part;
    found->headers.emplace_back("Content-Range", "bytes " + std::to_string(first) + "-" + std::to_string(last) + "/" +
                                                     std::to_string(found->body.size()));
    found->body = found->body.substr(first, last - first + 1);
    found->status = kPartialContent;
    found->reason.clear();
  }
  return found;
}

// A record of the same address with another query: of a file, of another method than GET, or one that differs by
// chance.
std::string ReplaySource::alike(const std::string& key) const {
  const auto path = key.substr(0, key.find('?'));
  const auto dot = path.rfind('.');
  const bool file = dot != path.npos && dot > path.rfind('/') && !kNoFiles.contains(path.substr(dot + 1));
  const auto method = key.find("__wb_method=");
  for (auto one = by_key_.lower_bound(path); one != by_key_.end() && one->first.starts_with(path); ++one) {
    const auto& other = one->first;
    if (other.size() > path.size() && other[path.size()] != '?') continue;
    const bool sent = method != key.npos && other.find("__wb_method=") != other.npos;
    if (file || sent || without_chance(other) == without_chance(key)) return other;
  }
  return key;
}

std::optional<ReplaySource::Answer> ReplaySource::read(const Place& place, const std::string& method) {
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
  // Without a phrase, Chromium answers with a status that it does not know at no time.
  if (const auto& phrase = answer->reason; !phrase.empty() || reason_of(answer->status).empty())
    parameters["responsePhrase"] = phrase.empty() ? "-" : phrase;
  browser.send("Fetch.fulfillRequest", parameters, session);
}

} // namespace holdfast::capture
