#include "lib/base/error.hpp"
#include "lib/store/control.hpp"
#include "services/cli/targets.hpp"
#include "services/cli/verbs.hpp"

#include <CLI/CLI.hpp>

#include <memory>

namespace holdfast::cli {

namespace {

struct PriorityOptions {
  int priority{0};
  std::vector<std::string> ids;
};

} // namespace

Action priority_verb(CLI::App& command) {
  const auto options = std::make_shared<PriorityOptions>();
  command.add_option("number", options->priority, "Above 0: before other crawls; below 0: after them")->required();
  command.add_option("crawls", options->ids, "The crawls; - reads them from standard input")->required();
  return [options](Context& context) {
    auto& connection = context.connection();
    for (const auto& id : crawl_ids(connection, options->ids))
      print_change(context, "prioritise", "crawl", id,
                   store::crawl_priority(connection, id, options->priority, user_name()));
    return base::kExitSuccess;
  };
}

} // namespace holdfast::cli
