#pragma once
// Small work on text that several modules need. Pure but for tail_of; any thread; nothing is owned.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::base {

// "a, b,,c" at "," -> {"a", "b", "c"}: any of `separators` ends a part; blanks around it go, empty parts are left out.
std::vector<std::string> split(std::string_view text, std::string_view separators);

std::string join(const std::vector<std::string>& parts, std::string_view separator);

// One word for a POSIX shell, in single quotes, whatever it holds.
std::string shell_quoted(std::string_view word);

// true/false, yes/no, on/off, 1/0 in any case; nullopt: none of these.
std::optional<bool> parse_boolean(std::string_view text);

// Valid UTF-8 without control characters other than tab and line ends.
std::string clean(std::string_view text);
// Valid UTF-8 without control characters; blanks collapsed; at most `limit` characters.
std::string one_line(std::string_view text, std::size_t limit);

// At most the last `bytes` of a file; empty if it cannot be read.
std::string tail_of(const std::filesystem::path& file, std::size_t bytes);

// "2026-01-31T23:59:59Z", now.
std::string utc_timestamp();

// A time as PostgreSQL writes it in UTC, "2026-01-31 23:59:59.5+00", in that form; shorter texts as they are.
std::string iso_time(std::string_view utc);

// The one of `known` that `word` is most likely a misspelling of; empty if none is near.
std::string nearest(std::string_view word, const std::vector<std::string>& known);

} // namespace holdfast::base
