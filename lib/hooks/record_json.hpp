#pragma once
// JSON of hooks and plugins: hostile input. Pure; any thread.

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace holdfast::hooks {

// Returns the object on a line that a hook printed; null if it is none, or is nested too deeply. Characters that
// databases reject (NUL, lone surrogates, bytes that are not UTF-8) are replaced.
nlohmann::json parse_record_line(std::string_view line);

std::string environment_text(const nlohmann::json& value);

} // namespace holdfast::hooks
