#pragma once
// JSON as a parameter of a query. Pure; any thread.

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace holdfast::store {

// Text that the server's jsonb accepts, whatever bytes a hook has printed: invalid UTF-8 and NUL characters are
// replaced by U+FFFD.
std::string json_text(nlohmann::json json);

} // namespace holdfast::store
