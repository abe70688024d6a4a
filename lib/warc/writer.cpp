#include "lib/warc/writer.hpp"

#include "lib/base/text/text.hpp"
#include "lib/base/text/url.hpp"
#include "lib/base/uuid.hpp"
#include "lib/warc/gzip.hpp"
#include "lib/warc/pack.hpp"

#include <fcntl.h>
#include <unistd.h>

namespace holdfast::warc {

namespace {

constexpr int kNotModified = 304;
constexpr const char* kSame = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest";
constexpr const char* kUnchanged = "http://netpreserve.org/warc/1.1/revisit/server-not-modified";

// The body is kept as it was after decoding, so that the headers that described its coding are renamed.
std::string response_head(const Exchange& exchange, std::uint64_t length) {
  std::string head = "HTTP/1.1 " + std::to_string(exchange.status) + " " + in_header(exchange.reason) + "\r\n";
  bool has_length = false;
  for (const auto& [name, value] : exchange.response_headers) {
    const auto lowered = base::lower_case(name);
    if (lowered == "content-length" && exchange.status != kNotModified) { // the announced length stays, apart
      const auto came = std::to_string(length);
      if (!has_length) head += name + ": " + came + "\r\n";
      if (value != came) head += "X-Archive-Orig-" + name + ": " + in_header(value) + "\r\n";
      has_length = true;
      continue;
    }
    const bool coding = lowered == "content-encoding" || lowered == "transfer-encoding";
    head += (coding ? "X-Archive-Orig-" : "") + in_header(name) + ": " + in_header(value) + "\r\n";
  }
  return head + "\r\n";
}

} // namespace

struct Writer::Record {
  std::string type{}, id{}, date{}, url{}, content_type{}, block{}; // block: without the body
  Headers more{};
  int level{6};
};

Writer::Writer(const std::string& file, const std::map<std::string, std::string>& about, OmittedHeaders omitted)
    : omitted_(std::move(omitted)), file_(::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) {
  if (!file_) cannot("cannot create the WARC");
  Record record{.type = "warcinfo", .id = base::new_uuid(), .content_type = "application/warc-fields"};
  record.date = about.at("date");
  record.more = {{"WARC-Filename", file}};
  for (const auto& [name, value] : about)
    if (name != "date") record.block += name + ": " + in_header(value) + "\r\n";
  info_id_ = record.id;
  write_record(record, nullptr);
}

void Writer::put(std::string_view bytes) {
  write_all(file_.get(), bytes);
  written_ += bytes.size();
}

std::string Writer::request_block(const Exchange& exchange) const {
  const auto url = base::split_url(exchange.url);
  const auto target = (url.path.empty() ? "/" : std::string(url.path)) + (url.has_query ? "?" : "");
  std::string text = in_header(exchange.method) + " " + target + std::string(url.query) + " HTTP/1.1\r\n";
  bool has_host = false;
  for (const auto& [name, value] : exchange.request_headers) {
    if (name.starts_with(':') || omitted_.contain(name)) continue; // ':': of HTTP/2
    has_host = has_host || base::lower_case(name) == "host";
    text += in_header(name) + ": " + in_header(value) + "\r\n";
  }
  if (!has_host) text += "Host: " + std::string(url.authority.substr(url.authority.rfind('@') + 1)) + "\r\n";
  return text + "\r\n" + exchange.request_body;
}

void Writer::write_record(const Record& record, const Spool* body) {
  Digest block;
  block.add(record.block);
  if (body != nullptr) body->read([&](std::string_view piece) { block.add(piece); });
  const auto length = record.block.size() + (body == nullptr ? 0 : body->size());
  Headers fields{
      {"WARC-Type", record.type}, {"WARC-Record-ID", "<urn:uuid:" + record.id + ">"}, {"WARC-Date", record.date}};
  if (!record.url.empty()) fields.emplace_back("WARC-Target-URI", record.url);
  if (record.id != info_id_) fields.emplace_back("WARC-Warcinfo-ID", "<urn:uuid:" + info_id_ + ">");
  fields.insert(fields.end(), record.more.begin(), record.more.end());
  fields.emplace_back("WARC-Block-Digest", block.finish());
  fields.emplace_back("Content-Type", record.content_type);
  member_.restart(record.level);
  const auto out = [this](std::string_view bytes) { put(bytes); };
  member_.add(record_head({}, {}, fields, length), out);
  member_.add(record.block, out);
  if (body != nullptr) body->read([&](std::string_view piece) { member_.add(piece, out); });
  member_.add("\r\n\r\n", out, true);
}

std::string Writer::add(const Exchange& exchange, const Spool& body) {
  const bool unchanged = exchange.status == kNotModified;
  const auto digest = body.payload_digest();
  const auto known = stored_.find(unchanged ? exchange.url : exchange.url + " " + digest);
  if (known != stored_.end() && (body.size() > 0 || unchanged))
    return add(exchange, &known->second, known->second.digest, body.size(), nullptr);
  if (exchange.truncated.empty()) {
    stored_.emplace(exchange.url + " " + digest, Stored{exchange.date, digest});
    if (exchange.status == 200) stored_.emplace(exchange.url, Stored{exchange.date, digest});
  }
  return add(exchange, nullptr, digest, body.size(), &body);
}

std::string Writer::add_revisit(const Exchange& exchange, const Stored& original, std::uint64_t length) {
  return add(exchange, &original, original.digest, length, nullptr);
}

// `original`: holds the body, which is left out; null: `body` is stored.
std::string Writer::add(const Exchange& exchange, const Stored* original, const std::string& digest,
                        std::uint64_t length, const Spool* body) {
  const auto response_id = base::new_uuid();
  Record response{.type = original != nullptr ? "revisit" : "response",
                  .id = response_id,
                  .date = exchange.date,
                  .url = exchange.url,
                  .content_type = "application/http;msgtype=response",
                  .block = response_head(exchange, length),
                  .level = gzip_level(media_type(header_of(exchange.response_headers, "content-type")))};
  response.more.emplace_back("WARC-Payload-Digest", digest);
  if (!exchange.remote_address.empty()) response.more.emplace_back("WARC-IP-Address", exchange.remote_address);
  if (!exchange.protocol.empty()) response.more.emplace_back("WARC-Protocol", exchange.protocol);
  if (!exchange.truncated.empty()) response.more.emplace_back("WARC-Truncated", exchange.truncated);
  if (original != nullptr) {
    response.more.emplace_back("WARC-Profile", exchange.status == kNotModified ? kUnchanged : kSame);
    response.more.emplace_back("WARC-Refers-To-Target-URI", exchange.url);
    response.more.emplace_back("WARC-Refers-To-Date", original->date);
  }
  write_record(response, body);
  Record request{.type = "request",
                 .id = base::new_uuid(),
                 .date = exchange.date,
                 .url = exchange.url,
                 .content_type = "application/http;msgtype=request",
                 .block = request_block(exchange)};
  request.more.emplace_back("WARC-Concurrent-To", "<urn:uuid:" + response_id + ">");
  if (exchange.request_cut) request.more.emplace_back("WARC-Truncated", "unspecified");
  if (!exchange.request_body.empty()) request.more.emplace_back("WARC-Payload-Digest", sha1_of(exchange.request_body));
  write_record(request, nullptr);
  ++exchanges_;
  return response_id;
}

void Writer::add_about(const Exchange& exchange, const std::string& response_id, const std::string& content_type,
                       const Spool& body, const std::string& truncated) {
  Record record{.type = "metadata",
                .id = base::new_uuid(),
                .date = exchange.date,
                .url = exchange.url,
                .content_type = content_type,
                .more = {{"WARC-Concurrent-To", "<urn:uuid:" + response_id + ">"}}};
  if (!truncated.empty()) record.more.emplace_back("WARC-Truncated", truncated);
  write_record(record, &body);
}

void Writer::close() {
  if (file_ && ::close(file_.release()) != 0) cannot("cannot write the WARC");
}

} // namespace holdfast::warc
