#pragma once
// The options that say how far and how fast a crawl may go: on the command line, and as part of a crawl. Stateless.

#include "lib/config/settings.hpp"
#include "lib/store/crawl.hpp"
#include "services/cli/plan.hpp"

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace holdfast::cli {

// `options` must live until the command line has been parsed.
void add_limit_options(CLI::App& command, LimitOptions& options);

// Throws Error(usage) naming the option that makes no sense. Politeness comes from the settings unless given.
void apply_limits(const LimitOptions& options, const config::Settings& settings, const std::vector<store::Seed>& seeds,
                  store::NewCrawl& crawl);

// "news.example.co.uk" -> "example.co.uk": the part of a host name that can be registered.
std::string registrable_domain(const std::string& host);

} // namespace holdfast::cli
