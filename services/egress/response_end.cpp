#include "services/egress/response_end.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>

#include <cstdint>
#include <limits>

namespace holdfast::egress {

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
