#pragma once
// Cleans hostile text for users, terminals and a database. Pure functions; any thread.

#include <cstddef>
#include <string>
#include <string_view>

namespace holdfast::hooks {

enum class Lines { one, many };

// Valid UTF-8 without ANSI escape sequences and control characters (NUL above all: PostgreSQL refuses it), trimmed, and
// at most `limit` bytes, cut between characters with an ellipsis. Lines::one joins lines with a blank.
std::string clean_text(std::string_view text, std::size_t limit, Lines lines);

} // namespace holdfast::hooks
