#include "lib/base/text/facts.hpp"

#include "lib/base/text/json.hpp"

#include <algorithm>
#include <cmath>

namespace holdfast::base {

namespace {

constexpr std::size_t kLongestName = 63;
constexpr std::size_t kLongestValue = 8u << 10;
constexpr std::size_t kMostFacts = 64;
constexpr std::size_t kMostBytes = 64u << 10; // of all
constexpr double kLargest = 9007199254740992; // to which a double has each integer

bool is_name(std::string_view name) {
  return !name.empty() && name.size() <= kLongestName && name.front() >= 'a' && name.front() <= 'z' &&
         std::all_of(name.begin(), name.end(), [](char letter) {
           return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') || letter == '_';
         });
}

nlohmann::json value_of(const Facts& facts, const std::string& name) {
  const auto found = facts.find(name);
  return found == facts.end() ? nlohmann::json() : strange_json(found->second);
}

} // namespace

std::optional<Facts> read_facts(const nlohmann::json& object) {
  Facts facts;
  if (!object.is_object()) return std::nullopt;
  for (const auto& [name, value] : object.items()) {
    auto text = json_text(value);
    const bool countable = !value.is_number() || std::abs(value.get<double>()) <= kLargest;
    if (!is_name(name) || text.size() > kLongestValue || !countable) return std::nullopt;
    facts.emplace(name, std::move(text));
  }
  return facts;
}

void merge_facts(Facts& into, const Facts& more) {
  std::size_t bytes = 0;
  for (const auto& [name, value] : into)
    bytes += name.size() + value.size();
  for (const auto& [name, value] : more) {
    const auto found = into.find(name);
    const auto before = found == into.end() ? 0 : name.size() + found->second.size();
    const auto after = bytes - before + name.size() + value.size();
    if (after > kMostBytes || (found == into.end() && into.size() >= kMostFacts)) continue;
    into.insert_or_assign(name, value);
    bytes = after;
  }
}

std::string fact_value(std::string_view text) { return json_text(nlohmann::json(text)); }

std::int64_t fact_number(const Facts& facts, const std::string& name) {
  const auto value = value_of(facts, name);
  return value.is_number() && std::abs(value.get<double>()) <= kLargest ? value.get<std::int64_t>() : 0;
}

std::string fact_text(const Facts& facts, const std::string& name) {
  const auto value = value_of(facts, name);
  return value.is_string() ? value.get<std::string>() : std::string();
}

nlohmann::json facts_json(const Facts& facts) {
  auto object = nlohmann::json::object();
  for (const auto& [name, value] : facts)
    if (auto parsed = strange_json(value); !parsed.is_discarded()) object[name] = std::move(parsed);
  return object;
}

} // namespace holdfast::base
