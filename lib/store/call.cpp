#include "lib/store/call.hpp"

#include "lib/base/text/json.hpp"
#include "lib/pg/result.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace holdfast::store {

pg::Result call_with(pg::Connection& connection, std::string_view function, const pg::Params& arguments) {
  std::string list;
  for (std::size_t i = 1; i <= arguments.values().size(); ++i)
    list += (i > 1 ? ", $" : "$") + std::to_string(i);
  return connection.call("select * from holdfast." + std::string(function) + "(" + list + ")", arguments);
}

namespace {

bool has_nul(const std::string& text) { return text.find('\0') != std::string::npos; }

// JSON can contain NUL ("\u0000"), jsonb cannot.
void replace_nuls(nlohmann::json& json) {
  if (json.is_string()) {
    if (auto& text = json.get_ref<std::string&>(); has_nul(text)) text = pg::wire_text(text);
    return;
  }
  if (!json.is_structured()) return;
  for (auto& value : json)
    replace_nuls(value);
  if (!json.is_object()) return;
  auto& members = json.get_ref<nlohmann::json::object_t&>();
  if (std::none_of(members.begin(), members.end(), [](const auto& member) { return has_nul(member.first); })) return;
  nlohmann::json::object_t clean;
  for (auto& [key, value] : members)
    clean[pg::wire_text(key)] = std::move(value);
  members = std::move(clean);
}

} // namespace

std::map<std::string, std::string> texts_of(const nlohmann::json& object) {
  std::map<std::string, std::string> texts;
  for (const auto& [key, value] : object.items())
    texts[key] = value.is_string() ? value.get<std::string>() : value.dump();
  return texts;
}

std::string json_text(nlohmann::json json) {
  replace_nuls(json);
  return base::json_text(json);
}

} // namespace holdfast::store
