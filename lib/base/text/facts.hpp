#pragma once
// Facts of a page: all that is known of it and does not decide what becomes of it. Hooks print facts, the worker adds
// its own, and the document is stored whole in snapshot_sealed.facts and in index.jsonl. Pure; any thread.

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::base {

using Facts = std::map<std::string, std::string>; // name, value as JSON

// Names who states a fact: hooks in a record Facts; hooks in another record, which is checked by itself; the worker, of
// the files; the worker, of this attempt (not taken over when the files are shown again).
enum class FactSource { hook, record, files, attempt };
FactSource fact_source(std::string_view name);
// Returns the members of an object, or nullopt if one of them cannot be a fact. A name is like "http_status". A value
// has at most 8 KiB; a number is between -2^53 and 2^53; facts that queries compute with have a type.
// holdfast.is_facts() has the same rules.
std::optional<Facts> read_facts(const nlohmann::json& object);
// Adds facts, in place of those with the same name. Leaves out those with which there would be more than 64 facts, or
// more than 64 KiB.
void merge_facts(Facts& into, const Facts& more);

std::string fact_value(std::string_view text); // as JSON
// Returns 0 or "" for a fact that is not there, or of another type.
std::int64_t fact_number(const Facts& facts, const std::string& name);
std::string fact_text(const Facts& facts, const std::string& name);
nlohmann::json facts_json(const Facts& facts);

} // namespace holdfast::base
