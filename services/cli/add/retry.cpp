#include "lib/base/error.hpp"
#include "lib/base/uuid.hpp"
#include "lib/store/catalog/view.hpp"
#include "lib/store/control.hpp"
#include "services/cli/add/input.hpp"
#include "services/cli/command/verbs.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <iostream>
#include <memory>

namespace holdfast::cli {

namespace {

struct RetryOptions {
  std::vector<std::string> ids, plugins;
  bool failed{false};
};

int retry(Context& context, const RetryOptions& options) {
  auto& connection = context.connection();
  std::vector<std::string> ids;
  for (const auto& given : read_ids(options.ids)) {
    const auto found = store::find(connection, given);
    if (found.kind == "process")
      throw base::Error(base::ErrorClass::usage, given + " is a worker, not a crawl or snapshot");
    ids.push_back(found.id);
  }
  std::vector<std::string> plugins = options.plugins;
  if (!plugins.empty()) context.catalog()->select(plugins); // names that do not exist are refused here
  const std::string id = base::new_uuid();
  // A pipe may hold nothing.
  const auto urls = ids.empty() ? 0 : store::crawl_retry(connection, id, ids, options.failed, plugins, user_name());
  if (context.json()) {
    auto json = nlohmann::ordered_json{{"type", "Crawl"}, {"seeds", urls}};
    if (urls > 0) json["id"] = id;
    std::cout << json.dump() << '\n';
  } else if (urls == 0) {
    std::cout << "nothing to try again\n";
  } else {
    std::cout << "crawl " << id << ": " << urls << (urls == 1 ? " URL" : " URLs")
              << " to be tried again; what was sealed stays as it is\n  more: holdfast show " << id << '\n';
    if (context.embedded()) std::cout << "  go on: holdfast run\n";
  }
  return base::kExitSuccess;
}

} // namespace

Action retry_verb(CLI::App& command) {
  const auto options = std::make_shared<RetryOptions>();
  command.add_option("ids", options->ids, "Crawls or snapshots; - reads them from standard input")->required();
  command.add_flag("--failed", options->failed, "Only failed or partial pages");
  command
      .add_option("-p,--plugin,--plugins", options->plugins, "Only this plugin (with --failed: only where it failed)")
      ->allow_extra_args(false);
  return [options](Context& context) { return retry(context, *options); };
}

} // namespace holdfast::cli
