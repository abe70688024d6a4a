#pragma once
// URLs as pages write them. lib/base/text/url checks and normalises archived URLs; a page's own spelling is kept here.

#include <optional>
#include <string>
#include <string_view>

namespace holdfast::formats {

// Resolves `reference` on a page at `base` (the URL standard; its escapes stay unchanged); nullopt if it cannot be
// read, or if `base` is longer than URLs are.
std::optional<std::string> join_url(std::string_view base, std::string_view reference);

// Reads an attribute that is a URL as browsers do: without blanks around it, and line ends and tabs in it.
std::string plain_link(std::string_view href);

// The http(s) URL that `href` means on a page at `page`, without a fragment that is no route; nullopt if it means none.
// `encoding`: of the page, as formats::page_encoding() names it; "": UTF-8.
std::optional<std::string> absolute_link(std::string_view page, std::string_view href,
                                         const std::string& encoding = "");

// Returns the URL for a request line: non-ASCII percent-encoded; the host is left to the HTTP client.
std::string request_url(std::string_view url);

} // namespace holdfast::formats
