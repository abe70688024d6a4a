#pragma once
// The options of a crawl: on the command line (add, schedule add), in a request and a form, and as columns. Immutable;
// any thread.

#include "lib/catalog/field.hpp"
#include "lib/store/crawl.hpp"

#include <chrono>
#include <span>

namespace holdfast::catalog {

// Groups of options in the help: identity; limits of size and time; reading of input.
enum class CrawlOptionKind { identity, limit, reading };
struct CrawlOption : Field {
  CrawlOptionKind kind{CrawlOptionKind::identity};
  bool column{true};       // stored under its name; services/cli/add/plan.cpp turns the others into columns
  std::string_view hook{}; // the option of hooks that it sets
};
std::span<const CrawlOption> crawl_options();

// Returns the columns of a crawl that these options set, each of which fits its schema.
nlohmann::json crawl_columns(const nlohmann::json& given);
// The schedule of a request (every, time_zone, fields of a watch) that adds a planned crawl. Throws Error(usage).
store::NewSchedule schedule_of(const nlohmann::json& body, store::PlannedCrawl planned);
// A time as a column takes it; null: none.
nlohmann::json interval(std::chrono::milliseconds time);

} // namespace holdfast::catalog
