#pragma once
// Verbs that are rows of the table of operations (lib/catalog/operation.hpp). Main thread.

#include "lib/store/find.hpp"
#include "services/cli/command/verbs.hpp"
#include "services/cli/context/collection.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

inline constexpr const char* kIdsHelp = "Crawls, snapshots or workers: ids, or the first or last few digits; - reads "
                                        "them from standard input";

// Registers the row's fields as options, those that it requires as arguments, and what it is about before them; the
// field `ids` is crawls and snapshots. With `only`, this field alone, before what it is about.
Action operation_verb(CLI::App& command, std::string_view operation, std::string_view only = {});
// Registers it as a verb of a group, with the row's summary as its help.
void operation_verb(Group& group, const char* verb, const std::string& operation, const std::string& examples);

// Runs the row of this action for a kind of thing ("pause", "crawl": pauseCrawl), and prints what came of it.
void operate(Context& context, const std::string& action, const std::string& kind, const std::string& id,
             const nlohmann::json& body = nlohmann::json::object());
// "crawl 7f3a: paused", or a line of JSON with more of it. `changed` false: there was nothing to do.
void print_change(Context& context, const std::string& action, const std::string& kind, const std::string& id,
                  bool changed, const nlohmann::ordered_json& more = nlohmann::ordered_json::object());

// Returns the objects that these ids name, in their order; - reads from standard input.
std::vector<store::Found> find_all(Collection& collection, const std::vector<std::string>& given);
// The id of what must be of this kind: crawl or process. Throws Error(usage) if it is something else.
std::string id_named(Collection& collection, const std::string& given, std::string_view kind);

} // namespace holdfast::cli
