#pragma once
// URL keys by the SURT rules that CDX indexes use: "https://www.Example.com:443/a?b" -> "com,example)/a?b". Pure.

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace holdfast::warc {

// The key of any URL; one without "http" or "https" is its own. At most 2,000 bytes: a longer one ends in its digest.
std::string url_key(std::string_view url);

enum class Match { exact, prefix, host, domain };
std::optional<Match> match_named(std::string_view name);

// The keys k with first <= k < second, in the order of bytes.
std::pair<std::string, std::string> key_range(std::string_view url, Match match);

} // namespace holdfast::warc
