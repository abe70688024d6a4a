#include "services/egress/message.hpp"

#include "lib/base/error.hpp"
#include "lib/base/text/number.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/text/url.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>

namespace holdfast::egress {

namespace {

constexpr std::string_view kEnd = "\r\n";

[[noreturn]] void refuse(const std::string& why) { throw base::Error(base::ErrorClass::configuration, why); }

std::string_view next_line(std::string_view& text) {
  const auto end = std::min(text.find(kEnd), text.size());
  const auto line = text.substr(0, end);
  text.remove_prefix(std::min(end + kEnd.size(), text.size()));
  return line;
}

// Servers may end a line with a line feed alone.
std::string_view response_line(std::string_view& text) {
  const auto end = std::min(text.find('\n'), text.size());
  auto line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

std::string_view name_of(std::string_view line) { return line.substr(0, std::min(line.find(':'), line.size())); }

// "host:port", "[::1]:port" or, with a port that goes without saying, "host".
void set_authority(RequestHead& request, std::string_view authority, std::uint16_t otherwise) {
  const auto place = base::split_authority(authority);
  if (place.host.starts_with('[') && !place.host.ends_with(']')) refuse("the address in the request has no \"]\"");
  request.host = base::lower_case(place.bare_host());
  request.port = otherwise;
  const bool sound = !request.host.empty() && request.host.size() <= 255 &&
                     std::all_of(request.host.begin(), request.host.end(),
                                 [](unsigned char c) { return c > ' ' && c != 0x7F && c != '/' && c != '\\'; });
  if (!sound) refuse("the request names no host");
  const auto port = place.port;
  if (port.empty()) {
    if (otherwise == 0) refuse("the request names no port");
    return;
  }
  request.port = base::parse_number<std::uint16_t>(port).value_or(0);
  if (request.port == 0) refuse("the port in the request is not a number from 1 to 65535");
}

// Returns true if a header of this name, in lower case, has `word` in its value.
bool says(std::string_view lower_head, std::string_view name, std::string_view word) {
  for (auto line = next_line(lower_head); !line.empty(); line = next_line(lower_head))
    if (name_of(line) == name && line.find(word, name.size()) != std::string_view::npos) return true;
  return false;
}

bool has_header(std::string_view lower_head, std::string_view name) { return says(lower_head, name, ":"); }

bool of_this_hop(const std::string& name, bool upgrade) {
  return name == "proxy-connection" || name == "proxy-authorization" ||
         (!upgrade && (name == "connection" || name == "keep-alive"));
}

} // namespace

RequestHead parse_request(std::string_view head, bool alone) {
  RequestHead request;
  const auto first = next_line(head);
  const auto space = first.find(' '), last = first.rfind(' ');
  if (space == std::string_view::npos || space == last || !first.substr(last + 1).starts_with("HTTP/1."))
    refuse("not a request of HTTP/1");
  request.method = first.substr(0, space);
  const auto target = first.substr(space + 1, last - space - 1);
  request.tunnel = request.method == "CONNECT";
  if (request.tunnel) {
    set_authority(request, target, 0);
    return request;
  }
  const auto url = base::split_url(target);
  if (base::lower_case(url.scheme) != "http" || !url.has_authority) refuse("a proxy takes CONNECT and http:// URLs");
  set_authority(request, url.authority, 80);
  request.forwarded = request.method + " " + std::string(url.path.empty() ? "/" : url.path) +
                      (url.has_query ? "?" + std::string(url.query) : "") + " HTTP/1.1\r\n";
  // The server gets one name, that of the target, which was checked.
  const auto named = url.authority.substr(url.authority.rfind('@') + 1); // npos + 1 is 0
  std::string lines;
  const auto lower = base::lower_case(head);
  const bool upgrade = has_header(lower, "upgrade");
  request.lasts = alone && !upgrade && (request.method == "GET" || request.method == "HEAD") &&
                  first.ends_with(" HTTP/1.1") && !has_header(lower, "content-length") &&
                  !has_header(lower, "transfer-encoding") && !says(lower, "connection", "close") &&
                  !says(lower, "proxy-connection", "close");
  bool host = false;
  for (auto line = next_line(head); !line.empty(); line = next_line(head)) {
    const auto name = base::lower_case(name_of(line));
    if (of_this_hop(name, upgrade)) continue;
    if (name == "host") {
      if (!host) lines += std::string(line.substr(0, name.size())) + ": " + std::string(named) + "\r\n";
      host = true;
    } else {
      lines += std::string(line) + "\r\n";
    }
  }
  if (!host) request.forwarded += "Host: " + std::string(named) + "\r\n";
  request.forwarded += lines;
  if (!upgrade && !request.lasts) request.forwarded += "Connection: close\r\n";
  request.forwarded += kEnd;
  return request;
}

std::size_t head_length(std::string_view bytes) {
  for (auto end = bytes.find('\n'); end != std::string_view::npos; end = bytes.find('\n', end + 1))
    for (const std::string_view empty : {"\n", "\r\n"})
      if (bytes.substr(end + 1).starts_with(empty)) return end + 1 + empty.size();
  return 0;
}

bool is_interim(std::string_view head) {
  const auto space = head.find(' ');
  return head.starts_with("HTTP/") && space != std::string_view::npos && head.substr(space + 1).starts_with('1') &&
         !head.substr(space + 1).starts_with("101");
}

std::string closing_response(std::string_view head) {
  const auto space = head.find(' ');
  if (!head.starts_with("HTTP/1.") || space == std::string_view::npos || head.substr(space + 1).starts_with('1'))
    return std::string(head);
  std::string result = std::string(response_line(head)) + "\r\n";
  for (auto line = response_line(head); !line.empty(); line = response_line(head))
    if (const auto name = base::lower_case(name_of(line));
        name != "connection" && name != "keep-alive" && name != "proxy-connection")
      result += std::string(line) + "\r\n";
  return result + "Connection: close\r\n\r\n";
}

namespace {

namespace http = boost::beast::http;
using Text = boost::beast::string_view;
using Code = boost::beast::error_code;

} // namespace

// Reads the lengths alone: the bytes are passed on as they came.
class ResponseEnd::Parser : public http::basic_parser<false> {
  void on_request_impl(http::verb, Text, Text, int, Code&) override {}
  void on_response_impl(int, Text, int, Code&) override {}
  void on_field_impl(http::field, Text, Text, Code&) override {}
  void on_header_impl(Code&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>&, Code&) override {}
  std::size_t on_body_impl(Text body, Code&) override { return body.size(); }
  void on_chunk_header_impl(std::uint64_t, Text, Code&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, Text body, Code&) override { return body.size(); }
  void on_finish_impl(Code&) override {}
};

ResponseEnd::ResponseEnd(std::string_view method) : parser_(std::make_unique<Parser>()) {
  parser_->header_limit(std::numeric_limits<std::uint32_t>::max()); // the proxy has its own
  parser_->body_limit(boost::none);
  parser_->eager(true);
  parser_->skip(method == "HEAD");
}

ResponseEnd::~ResponseEnd() = default;

void ResponseEnd::take(std::string_view bytes) {
  std::string joined;
  if (!left_.empty()) {
    joined = std::move(left_);
    joined += bytes;
    bytes = joined;
  }
  while (!unreadable_ && !bytes.empty() && !parser_->is_done()) {
    Code error;
    const auto count = parser_->put(boost::asio::buffer(bytes.data(), bytes.size()), error);
    bytes.remove_prefix(count);
    if (error == http::error::need_more) break;
    unreadable_ = bool(error);
  }
  left_ = bytes;
}

bool ResponseEnd::found() const { return !unreadable_ && parser_->is_done(); }

bool ResponseEnd::leaves_open() const {
  return !unreadable_ && parser_->is_header_done() && !parser_->need_eof() && parser_->keep_alive();
}

} // namespace holdfast::egress
