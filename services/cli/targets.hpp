#pragma once
// What verbs that give commands have in common: whom they name, and what they print. Main thread.

#include "lib/store/control.hpp"
#include "services/cli/context.hpp"

#include <string>
#include <vector>

namespace holdfast::cli {

inline constexpr const char* kIdsHelp = "Crawls, snapshots or workers: ids, or the first or last few digits; - reads "
                                        "them from standard input";

// "crawl 7f3a: paused", or a line of JSON. `changed` false: there was nothing to do.
void print_change(Context& context, const std::string& action, const std::string& kind, const std::string& id,
                  bool changed);

// The one that a (possibly shortened) id names; throw Error(usage) if it is something else.
std::string worker_id(pg::Connection& connection, const std::string& given);
std::string crawl_id(pg::Connection& connection, const std::string& given);
// All of them, before anything is done to one; - reads from standard input.
std::vector<std::string> crawl_ids(pg::Connection& connection, const std::vector<std::string>& given);

} // namespace holdfast::cli
