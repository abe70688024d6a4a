#pragma once
// Small work on text that several modules need. Pure; any thread.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::base {

// "a, b,,c" at "," -> {"a", "b", "c"}: any of `separators` ends a part; blanks around it go, empty parts are left out.
std::vector<std::string> split(std::string_view text, std::string_view separators);

std::string join(const std::vector<std::string>& parts, std::string_view separator);

std::string shell_quoted(std::string_view word);

// true/false, yes/no, on/off, 1/0 in any case; nullopt: none of these.
std::optional<bool> parse_boolean(std::string_view text);

// Valid UTF-8 without control characters other than tab and line ends.
std::string clean(std::string_view text);
// Valid UTF-8 without control characters; blanks collapsed; at most `limit` characters.
std::string one_line(std::string_view text, std::size_t limit);

// Returns the one of `known` that `word` most likely misspells; empty if none is near.
std::string nearest(std::string_view word, const std::vector<std::string>& known);

} // namespace holdfast::base
