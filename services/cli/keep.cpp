#include "lib/base/duration.hpp"
#include "lib/base/error.hpp"
#include "lib/store/control.hpp"
#include "services/cli/targets.hpp"
#include "services/cli/verbs.hpp"

#include <CLI/CLI.hpp>

#include <memory>
#include <optional>

namespace holdfast::cli {

namespace {

struct KeepOptions {
  std::string time;
  std::vector<std::string> ids;
};

} // namespace

Action keep_verb(CLI::App& command) {
  const auto options = std::make_shared<KeepOptions>();
  command.add_option("time", options->time, "90d, or forever")->required();
  command.add_option("crawls", options->ids, "The crawls; - reads them from standard input")->required();
  return [options](Context& context) {
    auto& connection = context.connection();
    std::optional<std::chrono::milliseconds> time;
    if (options->time != "forever") time = base::parse_duration(options->time);
    for (const auto& id : crawl_ids(connection, options->ids)) {
      store::crawl_keep(connection, id, time);
      print_change(context, "keep", "crawl", id, true);
    }
    return base::kExitSuccess;
  };
}

} // namespace holdfast::cli
