#include "lib/warc/headers.hpp"

#include "lib/base/characters.hpp"
#include "lib/base/text.hpp"

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

std::string head_without(const Headers& headers, std::initializer_list<std::string_view> dropped) {
  std::string head = "WARC/1.1\r\n";
  for (const auto& [name, value] : headers)
    if (std::find(dropped.begin(), dropped.end(), base::lower_case(name)) == dropped.end())
      head += name + ": " + value + "\r\n";
  return head;
}

OmittedHeaders::OmittedHeaders(std::string_view more) {
  for (const auto& name : base::split(more, ", "))
    names_.insert(base::lower_case(name));
}

bool OmittedHeaders::contain(std::string_view name) const { return names_.contains(base::lower_case(name)); }

} // namespace holdfast::warc
