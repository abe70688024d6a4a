#pragma once
// URL keys by the SURT rules that CDX indexes use: "https://www.Example.com:443/a?b" -> "com,example)/a?b". Pure.

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace holdfast::warc {

inline constexpr std::size_t kLongestKey = 2000; // a longer one is cut there, and ends in its digest

// The key of any URL; one without "http" or "https" is its own.
std::string url_key(std::string_view url);
// Returns the key whole, as other programs write it and look it up.
std::string whole_url_key(std::string_view url);

enum class Match { exact, prefix, host, domain };
std::optional<Match> match_named(std::string_view name);

// The keys k with first <= k < second, in the order of bytes.
std::pair<std::string, std::string> key_range(std::string_view url, Match match);

} // namespace holdfast::warc
