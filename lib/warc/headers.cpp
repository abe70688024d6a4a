#include "lib/warc/headers.hpp"

#include "lib/base/text/text.hpp"

#include <algorithm>

namespace holdfast::warc {

std::string header_of(const Headers& headers, std::string_view name) {
  for (const auto& [key, value] : headers)
    if (base::lower_case(key) == name) return value;
  return {};
}

std::string url_of(const Headers& headers, std::string_view name) {
  auto url = header_of(headers, name);
  return url.size() > 1 && url.front() == '<' && url.back() == '>' ? url.substr(1, url.size() - 2) : url;
}

std::string media_type(std::string_view content_type) {
  auto type = base::lower_case(base::trimmed(content_type.substr(0, content_type.find(';'))));
  const bool none = type.find('/') == std::string::npos || type == "unknown/unknown" || type == "application/unknown" ||
                    type == "*/*";
  return none ? std::string() : type;
}

std::string in_header(std::string_view value) {
  std::string result;
  for (const char letter : value)
    result += letter == '\r' || letter == '\n' || letter == '\0' ? ' ' : letter;
  return result;
}

std::string record_head(const Headers& headers, std::initializer_list<std::string_view> dropped, const Headers& more,
                        std::uint64_t length) {
  std::string head = "WARC/1.1\r\n";
  const auto add = [&](const auto& field) { head += field.first + ": " + in_header(field.second) + "\r\n"; };
  for (const auto& field : headers)
    if (const auto name = base::lower_case(field.first);
        name != "content-length" && std::find(dropped.begin(), dropped.end(), name) == dropped.end())
      add(field);
  std::for_each(more.begin(), more.end(), add);
  return head + "Content-Length: " + std::to_string(length) + "\r\n\r\n";
}

OmittedHeaders::OmittedHeaders(std::string_view more) {
  for (const auto& name : base::split(more, ", "))
    names_.insert(base::lower_case(name));
}

bool OmittedHeaders::contain(std::string_view name) const { return names_.contains(base::lower_case(name)); }

} // namespace holdfast::warc
