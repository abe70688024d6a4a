#include "lib/base/error.hpp"
#include "lib/store/catalog/view.hpp"
#include "services/cli/command/verbs.hpp"
#include "services/cli/control/operate.hpp"
#include "services/cli/terminal/output.hpp"

#include <CLI/CLI.hpp>

namespace holdfast::cli {

namespace {

int list_hosts(Context& context) {
  const store::ListQuery query{"hosts", 100000};
  auto& connection = context.connection();
  if (context.json())
    print_records(store::list_json(connection, query), "Host");
  else
    print_table(store::list(connection, query), {"name", "min_delay", "max_parallel", "held", "robots_delay", "last_at",
                                                 "backoff_until", "paused", "reason"});
  return base::kExitSuccess;
}

} // namespace

Action host_verb(CLI::App& command) {
  Group group(command);
  operation_verb(group, "set", "setHost", "holdfast host set example.org --delay 5s --parallel 1");
  operation_verb(group, "forget", "forgetHost", "holdfast host forget example.org");
  group.verb("list", "Hosts with limits, delays and pauses",
             "holdfast host list\n"
             "holdfast host list --json | jq 'select(.paused)'",
             [](CLI::App&) { return &list_hosts; });
  return group.action();
}

} // namespace holdfast::cli
