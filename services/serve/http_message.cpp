#include "services/serve/http_message.hpp"

#include "lib/base/characters.hpp"
#include "lib/base/json_text.hpp"
#include "lib/base/sha256.hpp"

#include <algorithm>
#include <charconv>

namespace holdfast::serve {

namespace {

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

Response problem(unsigned status, std::string_view kind, const std::string& detail, const std::string& hint) {
  nlohmann::ordered_json json{
      {"type", "urn:holdfast:error:" + std::string(kind)}, {"title", kind}, {"status", status}, {"detail", detail}};
  if (!hint.empty()) json["hint"] = hint;
  auto response = content("application/problem+json", base::json_text(json) + "\n");
  response.status = status;
  return response;
}

Response refusal(std::string_view target, unsigned status, std::string_view kind, const std::string& detail) {
  return target.starts_with("/api/") ? problem(status, kind, detail) : plain(status, detail + "\n");
}

Response event_stream(std::shared_ptr<Watch> watch) {
  if (!watch) return problem(503, "temporary", "too many clients watch; try again later");
  auto response = content("text/event-stream", "");
  response.headers = {{"Cache-Control", "no-store"}, {"X-Accel-Buffering", "no"}};
  response.watch = std::move(watch);
  return response;
}

std::string Request::here() const {
  const auto encoded = [](const std::string& text) {
    constexpr std::string_view kHex = "0123456789ABCDEF";
    std::string out;
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      if (consists_of({&c, 1}, "-._~/"))
        out += c;
      else
        (out += '%') += {kHex[byte >> 4], kHex[byte & 15]};
    }
    return out;
  };
  std::string text = encoded(path);
  char mark = '?';
  for (const auto& [name, value] : query) {
    text += mark + encoded(name) + "=" + encoded(value);
    mark = '&';
  }
  return text;
}

bool read_target(std::string_view target, Request& request) {
  const auto question = target.find('?');
  if (!percent_decode(target.substr(0, question), false, request.path) || !request.path.starts_with('/')) return false;
  if (question == std::string_view::npos) return true;
  Form form;
  if (!read_form(target.substr(question + 1), form)) return false;
  for (auto& [name, value] : form)
    request.query[name] = std::move(value);
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

bool read_host(std::string_view host, std::string& out) {
  out = host.starts_with('[') ? host.substr(0, host.find(']') + 1) : host.substr(0, host.find(':'));
  return consists_of(out, ".-_:[]");
}

bool is_header_value(std::string_view value) {
  return std::none_of(value.begin(), value.end(), [](char c) { return base::is_control(c) && c != '\t'; });
}

ByteRange read_range(std::string_view header, std::uint64_t size) {
  const ByteRange whole{0, size, ByteRange::What::whole}, none{0, 0, ByteRange::What::none};
  constexpr std::string_view kUnit = "bytes=";
  if (!header.starts_with(kUnit)) return whole;
  header.remove_prefix(kUnit.size());
  const auto dash = header.find('-');
  if (dash == std::string_view::npos) return whole;
  const auto number = [](std::string_view text, std::uint64_t& value) {
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
    return failure == std::errc{} && end == text.data() + text.size();
  };
  std::uint64_t first = 0, last = 0;
  const auto left = header.substr(0, dash), right = header.substr(dash + 1);
  if ((!left.empty() && !number(left, first)) || (!right.empty() && !number(right, last)) ||
      (left.empty() && right.empty()))
    return whole;
  if (left.empty()) { // the last so many
    if (last == 0 || size == 0) return none;
    return {size - std::min(size, last), size, ByteRange::What::part};
  }
  if (!right.empty() && last < first) return whole;
  if (first >= size) return none;
  return {first, right.empty() ? size : std::min(size, last + 1 == 0 ? size : last + 1), ByteRange::What::part};
}

bool is_plain_path(std::string_view path) {
  return path.starts_with('/') && path.find("//") == std::string_view::npos && consists_of(path, "/._~-");
}

Response see_other(const std::string& path) {
  auto response = plain(303, "");
  response.headers = {{"Location", is_plain_path(path.substr(0, path.find('?'))) ? path : "/"}};
  return response;
}

bool is_named(const std::vector<std::string>& names, const Request& request) {
  return names.empty() || std::find(names.begin(), names.end(), request.host) != names.end();
}

bool percent_decode(std::string_view text, bool plus_is_space, std::string& out) {
  out.clear();
  for (std::size_t at = 0; at < text.size(); ++at) {
    char character = text[at];
    if (character == '%') {
      const int byte = base::percent_decoded(text, at);
      if (byte < 0) return false;
      character = static_cast<char>(byte);
      at += 2;
    } else if (character == '+' && plus_is_space) {
      character = ' ';
    }
    if (character == '\0') return false;
    out += character;
  }
  return true;
}

bool is_same_secret(std::string_view left, std::string_view right) {
  return base::sha256_hex(left) == base::sha256_hex(right);
}

} // namespace holdfast::serve
