#pragma once
// Cleans hostile text for users, terminals and a database. Pure functions; any thread.

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace holdfast::hooks {

enum class Lines { one, many };

// Valid UTF-8 without ANSI escape sequences and control characters (NUL above all: PostgreSQL refuses it), trimmed, and
// at most `limit` bytes, cut between characters with an ellipsis. Lines::one joins lines with a blank.
std::string clean_text(std::string_view text, std::size_t limit, Lines lines);

// JSON of hooks and plugins: hostile input. Pure; any thread.

// Returns the object on a line that a hook printed; null if it is none, or is nested too deeply. Characters that
// databases reject (NUL, lone surrogates, bytes that are not UTF-8) are replaced.
nlohmann::json parse_record_line(std::string_view line);

std::string environment_text(const nlohmann::json& value);

} // namespace holdfast::hooks
