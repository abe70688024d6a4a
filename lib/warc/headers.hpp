#pragma once
// Header fields of HTTP and of WARC records. Values only.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::warc {

using Headers = std::vector<std::pair<std::string, std::string>>;

std::string header_of(const Headers& headers, std::string_view name); // the first; empty: none
// A URL without the brackets around it that some writers have: "<http://example.com/>".
std::string url_of(const Headers& headers, std::string_view name);
// "text/html; charset=x" -> "text/html"; empty for what the MIME Sniffing standard takes for no type at all.
std::string media_type(std::string_view content_type);

} // namespace holdfast::warc
