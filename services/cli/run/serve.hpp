#pragma once

#include "services/cli/context/context.hpp"
#include "services/serve/api/api.hpp"

namespace holdfast::cli {

// Returns the origin of archived files of `holdfast serve` with these settings.
std::string files_url(const config::Settings& settings);

// Plans the crawl of a request: as `holdfast add` with the same options, but it reads no files of this machine. Any
// thread, one at a time.

// Loads the plugins first, on this thread. `context` must outlive what is returned.
std::function<store::PlannedCrawl(const nlohmann::json& body)> plan_of_requests(Context& context);

} // namespace holdfast::cli
