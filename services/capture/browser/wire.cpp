#include "services/capture/browser/wire.hpp"

#include "lib/base/text/encoding.hpp"
#include "lib/base/text/json.hpp"
#include "lib/base/text/text.hpp"
#include "lib/formats/encoding.hpp"

#include <boost/beast/http/status.hpp>

#include <algorithm>
#include <charconv>
#include <iterator>

namespace holdfast::capture {

using base::text_at;

namespace {

// DevTools reads the bytes of a header as windows-1252: the bytes that such a text stands for.
std::string bytes_of(std::string_view text) {
  constexpr auto& kHigh = formats::kWindows1252;
  std::string bytes;
  for (auto rest = text; !rest.empty();) {
    const auto character = base::first_character(rest);
    const auto high = std::find(kHigh.begin(), kHigh.end(), character.code);
    if (high != kHigh.end())
      bytes.push_back(static_cast<char>(0x80 + (high - kHigh.begin())));
    else if (character.code <= 0xFF)
      bytes.push_back(static_cast<char>(character.code));
    else
      return std::string(text); // it was decoded in another way
    rest.remove_prefix(character.length);
  }
  return bytes;
}

} // namespace

Headers headers_from(const Json& object) {
  Headers headers;
  for (const auto& [name, value] : object.items()) {
    if (!value.is_string()) continue;
    const auto& all = value.get_ref<const std::string&>();
    for (std::size_t begin = 0; begin <= all.size();) {
      const auto end = std::min(all.find('\n', begin), all.size());
      headers.emplace_back(name, all.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  return headers;
}

Headers as_sent(Headers headers) {
  for (auto& [name, value] : headers)
    value = bytes_of(value);
  return headers;
}

Headers headers_from_list(const Json& list) {
  Headers headers;
  for (const auto& item : list)
    headers.emplace_back(text_at(item, "name"), text_at(item, "value"));
  return headers;
}

Headers in_order_of(std::string_view text, Headers fields) {
  Headers ordered;
  for (const auto& line : base::split(text, "\r\n")) {
    const auto next = std::find_if(fields.begin(), fields.end(), [&line](const auto& field) {
      return line.starts_with(field.first) && line.substr(field.first.size(), 1) == ":";
    });
    if (next == fields.end()) continue;
    ordered.push_back(std::move(*next));
    fields.erase(next);
  }
  std::move(fields.begin(), fields.end(), std::back_inserter(ordered));
  return ordered;
}

SentResponse sent_response(const Json& extra) {
  const auto text = text_at(extra, "headersText");
  SentResponse response{extra.value("statusCode", 0), "", in_order_of(text, as_sent(headers_from(extra["headers"])))};
  const auto line = text.substr(0, text.find('\r'));
  const auto words = line.find(' ', line.find(' ') + 1); // "HTTP/1.1 200 OK"
  if (words != std::string::npos) response.reason = bytes_of(std::string_view(line).substr(words + 1));
  return response;
}

std::optional<std::string> request_body(const Json& request) {
  if (!request.value("hasPostData", false)) return "";
  std::string bytes;
  const auto parts = request.find("postDataEntries");
  if (parts == request.end() || parts->empty()) return std::nullopt;
  for (const auto& part : *parts) {
    if (!part.contains("bytes")) return std::nullopt; // a file
    bytes += base::base64_decode(text_at(part, "bytes"));
  }
  return bytes;
}

std::string reason_of(int status) {
  using namespace boost::beast::http;
  const auto known = int_to_status(static_cast<unsigned>(status));
  return known == boost::beast::http::status::unknown ? "" : std::string(obsolete_reason(known));
}

Length compared(const warc::Exchange& exchange, std::uint64_t size) {
  if (exchange.method == "HEAD" || exchange.status == 204 || exchange.status == 304) return Length::right;
  if (!header_of(exchange.response_headers, "content-encoding").empty()) return Length::unknown;
  const auto length = header_of(exchange.response_headers, "content-length");
  std::uint64_t announced = 0; // what is no number is none for Chromium either
  const auto [end, error] = std::from_chars(length.data(), length.data() + length.size(), announced);
  if (error != std::errc() || end != length.data() + length.size()) return Length::unknown;
  return announced == size ? Length::right : Length::wrong;
}

} // namespace holdfast::capture
