#pragma once
// JSON as text. Pure; any thread.

#include <nlohmann/json.hpp>

#include <string>

namespace holdfast::base {

// On one line; bytes that are no UTF-8 become U+FFFD instead of an exception.
template <class Json>
std::string json_text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

} // namespace holdfast::base
