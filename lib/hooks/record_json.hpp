#pragma once
// One line that a hook printed, as JSON that can be stored: hostile input. Pure; any thread.

#include <nlohmann/json.hpp>

#include <string_view>

namespace holdfast::hooks {

// The object on a line; null if it is none, or is nested too deeply. What no database takes in its texts (NUL, lone
// surrogates, bytes that are not UTF-8) is replaced.
nlohmann::json parse_record_line(std::string_view line);

} // namespace holdfast::hooks
