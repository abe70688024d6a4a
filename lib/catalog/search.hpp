#pragma once
// The search: its fields as parameters of the API and options of the command line. Immutable; any thread.

#include "lib/catalog/list.hpp"
#include "lib/store/text.hpp"

namespace holdfast::catalog {

// Fields of a search; `q` is its words.
std::span<const Field> search_fields();

// Reads such fields, each of which fits its schema. Throws Error(usage) for an outcome that no snapshot has.
store::SearchQuery search_query(const nlohmann::json& given);

// Returns the value of a filter as rows have it: a host in lower case and ASCII, a time in UTC. Throws Error(usage) as
// check_filter().
std::string filter_value(const List& list, std::string_view filter, const std::string& value);

} // namespace holdfast::catalog
