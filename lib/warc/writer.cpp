#include "lib/warc/writer.hpp"

#include "lib/base/characters.hpp"
#include "lib/base/uuid.hpp"
#include "lib/warc/file.hpp"
#include "lib/warc/pack.hpp"

#include <fcntl.h>
#include <unistd.h>

namespace holdfast::warc {

namespace {

// A header field cannot hold a line end.
std::string in_header(std::string_view value) {
  std::string result;
  for (const char letter : value)
    result += letter == '\r' || letter == '\n' || letter == '\0' ? ' ' : letter;
  return result;
}

// The body is kept as it was after decoding, so that the headers that described its coding are renamed.
std::string response_head(const Exchange& exchange, std::uint64_t length) {
  std::string head = "HTTP/1.1 " + std::to_string(exchange.status) + " " + in_header(exchange.reason) + "\r\n";
  bool has_length = false;
  for (const auto& [name, value] : exchange.response_headers) {
    const auto lowered = base::lower_case(name);
    if (lowered == "content-length") {
      if (!has_length) head += name + ": " + std::to_string(length) + "\r\n";
      has_length = true;
      continue;
    }
    const bool coding = lowered == "content-encoding" || lowered == "transfer-encoding";
    head += (coding ? "X-Archive-Orig-" : "") + in_header(name) + ": " + in_header(value) + "\r\n";
  }
  return head + "\r\n";
}

std::string request_target(const std::string& url) {
  const auto host = url.find("://");
  const auto path = host == std::string::npos ? host : url.find_first_of("/?", host + 3);
  if (path == std::string::npos) return "/";
  const auto target = url.substr(path, url.find('#', path) - path);
  return target[0] == '?' ? "/" + target : target;
}

std::string host_of(const std::string& url) {
  const auto scheme = url.find("://");
  if (scheme == std::string::npos) return {};
  const auto end = url.find_first_of("/?#", scheme + 3);
  const auto host = url.substr(scheme + 3, end == std::string::npos ? end : end - scheme - 3);
  return host.substr(host.rfind('@') + 1);
}

std::string sha1_of(std::string_view bytes) {
  Digest digest;
  digest.add(bytes);
  return sha1_text(digest.finish());
}

} // namespace

struct Writer::Record {
  std::string type{}, id{}, date{}, url{}, content_type{}, block{}; // block: without the body
  std::vector<std::pair<std::string, std::string>> more{};
  int level{6};
};

Writer::Writer(const std::string& file, const std::map<std::string, std::string>& about, OmittedHeaders omitted)
    : omitted_(std::move(omitted)) {
  file_ = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file_ < 0) cannot("cannot create the WARC");
  Record record{.type = "warcinfo", .id = base::new_uuid(), .content_type = "application/warc-fields"};
  record.date = about.at("date");
  record.more = {{"WARC-Filename", file}};
  for (const auto& [name, value] : about)
    if (name != "date") record.block += name + ": " + in_header(value) + "\r\n";
  info_id_ = record.id;
  write_record(record, nullptr);
}

Writer::~Writer() {
  if (file_ >= 0) ::close(file_);
}

void Writer::put(std::string_view bytes) {
  write_all(file_, bytes);
  written_ += bytes.size();
}

std::string Writer::request_block(const Exchange& exchange) const {
  std::string text = in_header(exchange.method) + " " + request_target(exchange.url) + " HTTP/1.1\r\n";
  bool has_host = false;
  for (const auto& [name, value] : exchange.request_headers) {
    if (name.starts_with(':') || omitted_.contain(name)) continue; // ':': of HTTP/2
    has_host = has_host || base::lower_case(name) == "host";
    text += in_header(name) + ": " + in_header(value) + "\r\n";
  }
  if (!has_host) text += "Host: " + host_of(exchange.url) + "\r\n";
  return text + "\r\n" + exchange.request_body;
}

void Writer::write_record(const Record& record, const Spool* body) {
  Digest block;
  block.add(record.block);
  if (body != nullptr) body->read([&](std::string_view piece) { block.add(piece); });
  const auto length = record.block.size() + (body == nullptr ? 0 : body->size());
  std::string head = "WARC/1.1\r\nWARC-Type: " + record.type + "\r\nWARC-Record-ID: <urn:uuid:" + record.id +
                     ">\r\nWARC-Date: " + record.date + "\r\n";
  if (!record.url.empty()) head += "WARC-Target-URI: " + in_header(record.url) + "\r\n";
  if (record.id != info_id_) head += "WARC-Warcinfo-ID: <urn:uuid:" + info_id_ + ">\r\n";
  for (const auto& [name, value] : record.more)
    head += name + ": " + in_header(value) + "\r\n";
  head += "WARC-Block-Digest: " + sha1_text(block.finish()) + "\r\nContent-Type: " + record.content_type +
          "\r\nContent-Length: " + std::to_string(length) + "\r\n\r\n";
  member_.restart(record.level);
  const auto out = [this](std::string_view bytes) { put(bytes); };
  member_.add(head, out);
  member_.add(record.block, out);
  if (body != nullptr) body->read([&](std::string_view piece) { member_.add(piece, out); });
  member_.add("\r\n\r\n", out, true);
}

void Writer::add(const Exchange& exchange, const Spool& body) {
  const auto response_id = base::new_uuid();
  const auto digest = sha1_text(body.payload_digest());
  const auto known = stored_.find(exchange.url + " " + digest);
  const bool again = known != stored_.end() && body.size() > 0;
  Record response{.type = again ? "revisit" : "response",
                  .id = response_id,
                  .date = exchange.date,
                  .url = exchange.url,
                  .content_type = "application/http;msgtype=response",
                  .block = response_head(exchange, body.size()),
                  .level = gzip_level(media_type(header_of(exchange.response_headers, "content-type")))};
  response.more.emplace_back("WARC-Payload-Digest", digest);
  if (!exchange.remote_address.empty()) response.more.emplace_back("WARC-IP-Address", exchange.remote_address);
  if (!exchange.truncated.empty()) response.more.emplace_back("WARC-Truncated", exchange.truncated);
  if (again) {
    response.more.emplace_back("WARC-Profile", "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest");
    response.more.emplace_back("WARC-Refers-To-Target-URI", exchange.url);
    response.more.emplace_back("WARC-Refers-To-Date", known->second);
  } else if (exchange.truncated.empty()) {
    stored_.emplace(exchange.url + " " + digest, exchange.date);
  }
  write_record(response, again ? nullptr : &body);
  Record request{.type = "request",
                 .id = base::new_uuid(),
                 .date = exchange.date,
                 .url = exchange.url,
                 .content_type = "application/http;msgtype=request",
                 .block = request_block(exchange)};
  request.more.emplace_back("WARC-Concurrent-To", "<urn:uuid:" + response_id + ">");
  if (!exchange.request_body.empty()) request.more.emplace_back("WARC-Payload-Digest", sha1_of(exchange.request_body));
  write_record(request, nullptr);
  ++exchanges_;
}

void Writer::close() {
  if (file_ >= 0 && ::close(std::exchange(file_, -1)) != 0) cannot("cannot write the WARC");
}

} // namespace holdfast::warc
