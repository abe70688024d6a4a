#include "services/serve/http_message.hpp"

#include "lib/base/sha256.hpp"
#include "lib/base/text/encoding.hpp"
#include "lib/base/text/json.hpp"
#include "lib/base/text/number.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/uuid.hpp"
#include "lib/formats/saved_page.hpp"
#include "lib/pg/sqlstate.hpp"
#include "lib/warc/gzip.hpp"
#include "lib/warc/headers.hpp"

#include <spdlog/spdlog.h>

#include <arpa/inet.h>

#include <algorithm>

namespace holdfast::serve {

namespace {

constexpr std::string_view kCompressed = "-gzip"; // at the end of the tag of a compressed answer

bool consists_of(std::string_view text, std::string_view marks) {
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return base::is_alpha(c) || base::is_digit(c) || marks.find(c) != std::string_view::npos;
  });
}

} // namespace

Response plain(unsigned status, std::string text) {
  auto response = content("text/plain; charset=utf-8", std::move(text));
  response.status = status;
  return response;
}

Response content(std::string type, std::string body) {
  Response response;
  response.type = std::move(type);
  response.body = std::move(body);
  return response;
}

Response problem(unsigned status, std::string_view kind, const std::string& detail, const std::string& hint,
                 const Members& more) {
  const auto cut = [](const std::string& text) { // it may repeat what was sent
    constexpr std::size_t kMost = 1000;
    return text.size() > kMost ? base::repair_utf8(std::string_view(text).substr(0, kMost)) + "..." : text;
  };
  nlohmann::ordered_json json{{"type", "urn:holdfast:error:" + std::string(kind)},
                              {"title", kind},
                              {"status", status},
                              {"detail", cut(detail)},
                              {"code", kind},
                              {"request_id", base::new_uuid()}};
  if (!hint.empty()) json["hint"] = cut(hint);
  for (const auto& [name, value] : more)
    json[name] = cut(value);
  spdlog::debug("problem {}: {} (request {})", status, cut(detail), json["request_id"].get<std::string>());
  auto response = content("application/problem+json", base::json_text(json) + "\n");
  response.status = status;
  return response;
}

Response refusal(std::string_view target, unsigned status, std::string_view kind, const std::string& detail) {
  return target.starts_with("/api/") ? problem(status, kind, detail) : plain(status, detail + "\n");
}

std::string outage(const base::Error& error) {
  const auto* told = dynamic_cast<const pg::DatabaseError*>(&error);
  if (told == nullptr || pg::ends_session(told->sqlstate())) return "the database is unreachable; try again";
  return "the database cannot do this now (SQLSTATE " + told->sqlstate() +
         "); try again, or see the log of holdfast serve";
}

Response too_many(std::string_view target, std::chrono::seconds wait) {
  const auto seconds = std::to_string(wait.count());
  return refusal(target, 429, "temporary", "too many requests; try again in " + seconds + " s")
      .with("Retry-After", seconds);
}

std::string tag_of(std::string_view body) { return "\"" + base::sha256_hex(body).substr(0, 32) + "\""; }

bool names_tag(std::string_view list, std::string_view tag) {
  const auto bare = tag.substr(1, tag.size() - 2);
  for (std::string_view one : base::split(list, ",")) {
    if (one == "*") return true;
    if (one.starts_with("W/")) one.remove_prefix(2);
    if (one.size() < 2 || !one.starts_with('"') || !one.ends_with('"')) continue;
    one = one.substr(1, one.size() - 2);
    if (one.ends_with(kCompressed)) one.remove_suffix(kCompressed.size());
    if (one == bare) return true;
  }
  return false;
}

void tag_with_digest(const Request& request, Response& response) {
  const auto tag = tag_of(response.body);
  response.headers.emplace_back("ETag", tag);
  response.headers.emplace_back("Cache-Control", "private, no-cache");
  if (!names_tag(request.if_none_match, tag)) return;
  response.status = 304;
  response.body.clear();
}

namespace {

bool takes_gzip(std::string_view encodings) {
  for (const std::string_view one : base::split(encodings, ",")) {
    if (base::trimmed(one.substr(0, one.find(';'))) != "gzip") continue;
    const auto weight = one.find("q=");
    return weight == std::string_view::npos || one.find_first_of("123456789", weight) != std::string_view::npos;
  }
  return false;
}

bool is_text(std::string_view type) {
  return type.starts_with("text/") || type.find("json") != std::string_view::npos || type.starts_with("image/svg");
}

} // namespace

void compress(const Request& request, Response& response) {
  constexpr std::size_t kLeast = 1024, kMost = 256 << 20;
  if (response.file || response.watch || !is_text(response.type) || response.body.size() > kMost) return;
  const auto vary = std::find_if(response.headers.begin(), response.headers.end(),
                                 [](const auto& header) { return header.first == "Vary"; });
  if (vary == response.headers.end())
    response.headers.emplace_back("Vary", "Accept-Encoding");
  else
    vary->second += ", Accept-Encoding";
  if (response.body.size() < kLeast || !takes_gzip(base::lower_case(request.accept_encoding))) return;
  constexpr int kFast = 1;
  auto small = warc::gzip(response.body, kFast);
  if (small.size() >= response.body.size()) return;
  response.body = std::move(small);
  response.headers.emplace_back("Content-Encoding", "gzip");
  for (auto& [name, value] : response.headers)
    if (name == "ETag") value.insert(value.size() - 1, kCompressed);
}

Response event_stream(std::shared_ptr<Watch> watch) {
  if (!watch) return problem(503, "temporary", "too many clients watch; try again later");
  auto response = content("text/event-stream", "").with("Cache-Control", "no-store").with("X-Accel-Buffering", "no");
  response.watch = std::move(watch);
  return response;
}

std::string Request::here() const {
  std::string text = base::percent_encode(path);
  char mark = '?';
  for (const auto& [name, value] : query) {
    text += mark + base::percent_encode(name) + "=" + base::percent_encode(value);
    mark = '&';
  }
  return text;
}

std::string path_of_target(std::string_view target, std::string& authority) {
  for (const std::string_view scheme : {"http://", "https://"})
    if (base::lower_case(target.substr(0, scheme.size())) == scheme) {
      target.remove_prefix(scheme.size());
      const auto end = std::min(target.find_first_of("/?"), target.size());
      authority = target.substr(0, end);
      target.remove_prefix(end);
      return (target.starts_with('/') ? "" : "/") + std::string(target);
    }
  return std::string(target);
}

std::string with_usual_scheme(std::string_view authorization) {
  for (const std::string_view scheme : {"Bearer ", "Basic "})
    if (base::lower_case(authorization.substr(0, scheme.size())) == base::lower_case(scheme))
      return std::string(scheme) + std::string(authorization.substr(scheme.size()));
  return std::string(authorization);
}

bool read_target(std::string_view target, Request& request) {
  const auto question = target.find('?');
  if (!percent_decode(target.substr(0, question), false, request.path) || !request.path.starts_with('/')) return false;
  if (question == std::string_view::npos) return true;
  Form form;
  if (!read_form(target.substr(question + 1), form)) return false;
  for (auto& [name, value] : form)
    request.query.emplace(name, std::move(value));
  return true;
}

bool read_form(std::string_view text, Form& form) {
  while (!text.empty()) {
    const auto ampersand = std::min(text.find('&'), text.size());
    const auto pair = text.substr(0, ampersand);
    const auto equals = std::min(pair.find('='), pair.size());
    std::string key, value;
    if (!percent_decode(pair.substr(0, equals), true, key)) return false;
    if (equals < pair.size() && !percent_decode(pair.substr(equals + 1), true, value)) return false;
    form.emplace_back(std::move(key), std::move(value));
    text.remove_prefix(std::min(ampersand + 1, text.size()));
  }
  return true;
}

bool read_form(const Request& request, Form& form) {
  if (warc::media_type(request.content_type) != "multipart/form-data") return read_form(request.body, form);
  bool good = true;
  const auto take = [&](const formats::PartFields& head, std::string_view body) {
    const auto name = formats::part_parameter(formats::part_field(head, "content-disposition"), "name=");
    form.emplace_back(name, body);
    return good = !name.empty();
  };
  return formats::each_part(request.body, request.content_type, take) && good;
}

bool read_host(std::string_view host, std::string& out) {
  out = base::lower_case(host.starts_with('[') ? host.substr(0, host.find(']') + 1) : host.substr(0, host.find(':')));
  if (out.ends_with('.')) out.pop_back(); // the same name, from the root
  return consists_of(out, ".-_:[]");
}

bool is_header_value(std::string_view value) {
  return std::none_of(value.begin(), value.end(), [](char c) { return base::is_control(c) && c != '\t'; });
}

bool is_user_name(std::string_view name) {
  constexpr std::size_t kLongest = 200;
  return name.size() <= kLongest && base::is_utf8(name) && base::clean(name) == name && is_header_value(name) &&
         name.find('\t') == std::string_view::npos;
}

ByteRange read_range(std::string_view header, std::uint64_t size) {
  const ByteRange whole{0, size, ByteRange::What::whole}, none{0, 0, ByteRange::What::none};
  constexpr std::string_view kUnit = "bytes=";
  if (base::lower_case(header.substr(0, kUnit.size())) != kUnit) return whole;
  header.remove_prefix(kUnit.size());
  const auto dash = header.find('-');
  if (dash == std::string_view::npos) return whole;
  const auto left = header.substr(0, dash), right = header.substr(dash + 1);
  const auto first = base::parse_number<std::uint64_t>(left), last = base::parse_number<std::uint64_t>(right);
  if ((!left.empty() && !first) || (!right.empty() && !last) || (!first && !last)) return whole;
  if (!first) { // the last so many
    if (*last == 0 || size == 0) return none;
    return {size - std::min(size, *last), size, ByteRange::What::part};
  }
  if (last && *last < *first) return whole;
  if (*first >= size) return none;
  return {*first, last && *last < size ? *last + 1 : size, ByteRange::What::part};
}

bool is_plain_path(std::string_view path) {
  return path.starts_with('/') && path.find("//") == std::string_view::npos && consists_of(path, "/._~-");
}

std::string local_path(const std::string& path) { return is_plain_path(path.substr(0, path.find('?'))) ? path : "/"; }

Response see_other(const std::string& path) { return plain(303, "").with("Location", local_path(path)); }

bool is_named(const std::vector<std::string>& names, const Request& request) {
  if (names.empty() || request.authority.empty()) return true; // of HTTP/1.0, which no browser speaks: a probe
  auto host = base::lower_case(request.host);
  if (std::find(names.begin(), names.end(), host) != names.end()) return true;
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  in6_addr address{};
  return ::inet_pton(AF_INET, host.c_str(), &address) == 1 || ::inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

bool percent_decode(std::string_view text, bool plus_is_space, std::string& out) {
  for (std::size_t at = 0; at < text.size(); ++at)
    if (text[at] == '\0' || (text[at] == '%' && base::percent_decoded(text, at) <= 0)) return false;
  out = plus_is_space ? base::form_decode(std::string(text)) : base::percent_decode(text);
  return true;
}

} // namespace holdfast::serve
