#include "lib/base/text/facts.hpp"

#include "lib/base/text/json.hpp"
#include "lib/base/uuid.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace holdfast::base {

namespace {

constexpr std::size_t kLongestName = 63;
constexpr std::size_t kLongestValue = 8u << 10;
constexpr std::size_t kMostFacts = 64;
constexpr std::size_t kMostBytes = 64u << 10; // of all
constexpr double kLargest = 9007199254740992; // to which a double has each integer
constexpr double kSmallest = 1e-6;            // but 0, of a number within a value
constexpr int kDeepest = 16;

bool is_name(std::string_view name) {
  return !name.empty() && name.size() <= kLongestName && name.front() >= 'a' && name.front() <= 'z' &&
         std::all_of(name.begin(), name.end(), [](char letter) {
           return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') || letter == '_';
         });
}

bool is_count(const nlohmann::json& value) { return value.is_number_integer() && value >= 0; }
bool is_number(const nlohmann::json& value) { return value.is_number(); }
bool is_share(const nlohmann::json& value) { return value.is_number() && value >= 0; }
bool is_text(const nlohmann::json& value) { return value.is_string(); }
bool is_status(const nlohmann::json& value) { return is_count(value) && value >= 100 && value <= 999; }
bool is_id(const nlohmann::json& value) { return value.is_string() && is_uuid(value.get<std::string>()); }
bool is_object(const nlohmann::json& value) { return value.is_object(); }
bool is_list(const nlohmann::json& value) { return value.is_array(); }

// Facts that queries compute with, or that a record Facts may not have.
struct Known {
  std::string_view name;
  FactSource source;
  bool (*fits)(const nlohmann::json&);
};
constexpr Known kKnown[] = {
    {"number", FactSource::hook, &is_number},
    {"found", FactSource::hook, &is_list},
    {"http_status", FactSource::record, &is_status},
    {"mime", FactSource::record, &is_text},
    {"resources", FactSource::record, &is_count},
    {"resources_missing", FactSource::record, &is_count},
    {"missing_reasons", FactSource::record, &is_object},
    {"digest", FactSource::files, &is_text},
    {"unrecorded", FactSource::files, &is_object},
    {"bytes_saved", FactSource::attempt, &is_count},
    {"change", FactSource::attempt, &is_text},
    {"change_from", FactSource::attempt, &is_id},
    {"change_learnt", FactSource::attempt, nullptr},
    {"change_share", FactSource::attempt, &is_share},
    {"files_from", FactSource::attempt, &is_id},
    {"links_added", FactSource::attempt, &is_count},
    {"links_removed", FactSource::attempt, &is_count},
    {"look_share", FactSource::attempt, &is_share},
    {"replay", FactSource::attempt, &is_share},
    {"received_bytes", FactSource::attempt, &is_count},
    {"requests", FactSource::attempt, &is_count},
    {"requests_refused", FactSource::attempt, &is_count},
    {"words_added", FactSource::attempt, &is_count},
    {"words_moved", FactSource::attempt, &is_count},
    {"words_removed", FactSource::attempt, &is_count},
};

const Known* known(std::string_view name) {
  const auto* const found =
      std::find_if(std::begin(kKnown), std::end(kKnown), [&](const auto& row) { return row.name == name; });
  return found == std::end(kKnown) ? nullptr : found;
}

// The database writes numbers without an exponent: [1e300] would take 300 bytes. A file has the value within others.
bool is_writable(const nlohmann::json& value, int depth = 0) {
  if (value.is_structured())
    return depth < kDeepest &&
           std::all_of(value.begin(), value.end(), [&](const auto& one) { return is_writable(one, depth + 1); });
  const auto size = value.is_number() ? std::abs(value.get<double>()) : 0;
  return size <= kLargest && (depth == 0 || size == 0 || size >= kSmallest);
}

nlohmann::json value_of(const Facts& facts, const std::string& name) {
  const auto found = facts.find(name);
  return found == facts.end() ? nlohmann::json() : strange_json(found->second);
}

} // namespace

FactSource fact_source(std::string_view name) {
  const auto* const row = known(name);
  return row == nullptr ? FactSource::hook : row->source;
}

std::optional<Facts> read_facts(const nlohmann::json& object) {
  Facts facts;
  if (!object.is_object()) return std::nullopt;
  for (const auto& [name, value] : object.items()) {
    auto text = json_text(value);
    if (!is_name(name) || text.size() > kLongestValue || !is_writable(value)) return std::nullopt;
    if (const auto* const row = known(name); row != nullptr && row->fits != nullptr && !row->fits(value))
      return std::nullopt;
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
