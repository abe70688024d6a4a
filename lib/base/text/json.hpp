#pragma once
// JSON as text, and untrusted JSON, which may nest too deep. Pure; any thread.

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace holdfast::base {

// On one line; bytes that are not UTF-8 become U+FFFD instead of an exception.
template <class Json>
std::string json_text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Printing JSON recurses, so its depth has to be bounded before it is parsed.
inline bool nests_too_deep(std::string_view text, int most = 64) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char letter = text[at];
    if (in_string) {
      if (letter == '\\') ++at;
      if (letter == '"') in_string = false;
    } else if (letter == '"') {
      in_string = true;
    } else if (letter == '{' || letter == '[') {
      if (++depth > most) return true;
    } else if (letter == '}' || letter == ']') {
      --depth;
    }
  }
  return false;
}

// Discarded, and thus no object, if it is broken or nests too deeply.
template <typename Json = nlohmann::json>
Json strange_json(std::string_view text) {
  return nests_too_deep(text) ? Json(Json::value_t::discarded) : Json::parse(text, nullptr, false);
}

// A member that is a string; else empty. `object`: also one in which members have an order.
template <typename Json>
std::string text_at(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->template get<std::string>() : std::string();
}

} // namespace holdfast::base
