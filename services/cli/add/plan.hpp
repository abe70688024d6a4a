#pragma once
// The crawl that the options of `add` describe, checked against the settings and plugins of this machine. Main thread.

#include "lib/store/crawl.hpp"
#include "services/cli/add/input.hpp"
#include "services/cli/context/context.hpp"

#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace holdfast::cli {

struct AddOptions {
  std::vector<std::string> inputs; // URLs, files, "-" for standard input
  std::shared_ptr<nlohmann::json> crawl = std::make_shared<nlohmann::json>(nlohmann::json::object());
};
// `options` must live until the command line has been parsed.
void add_crawl_options(CLI::App& command, AddOptions& options);

// Reads the URLs of the command line, of files and standard input.
ReadSeeds read_inputs(const Context& context, const AddOptions& options);
// `given`: options by name (lib/catalog/crawl_options.hpp), each of which fits its schema.
store::PlannedCrawl plan_crawl(Context& context, const nlohmann::json& given, ReadSeeds read);
ReadOptions reading_of(const Context& context, const nlohmann::json& given);

// "news.example.co.uk" -> "example.co.uk": the part of a host name that can be registered.
std::string registrable_domain(const std::string& host);

} // namespace holdfast::cli
