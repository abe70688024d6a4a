#include "lib/store/host.hpp"

#include "lib/base/duration.hpp"
#include "lib/base/error.hpp"
#include "lib/store/view.hpp"
#include "services/cli/checks.hpp"
#include "services/cli/input.hpp"
#include "services/cli/output.hpp"
#include "services/cli/targets.hpp"
#include "services/cli/verbs.hpp"

#include <CLI/CLI.hpp>

#include <iostream>
#include <memory>

namespace holdfast::cli {

namespace {

struct HostOptions {
  std::string host, delay;
  int parallel{-1};
};

int set_host(Context& context, const HostOptions& options) {
  auto& connection = context.connection(true);
  store::HostLimits limits;
  if (!options.delay.empty()) limits.delay = base::parse_duration(options.delay);
  if (options.parallel >= 0) limits.parallel = options.parallel;
  if (!limits.delay && !limits.parallel)
    throw base::Error(base::ErrorClass::usage, "nothing to set: give a delay or a cap",
                      "holdfast host set HOST --delay 5s --parallel 1");
  const auto host = host_name(options.host);
  store::host_set(connection, host, limits, user_name());
  store::ListQuery query;
  query.view = "hosts";
  query.url_contains = host;
  const auto rows = store::list(connection, query);
  if (context.json()) {
    print_records(store::list_json(connection, query), "Host");
  } else {
    print_table(rows, {"name", "min_delay", "max_parallel", "held", "backoff_until", "reason"});
  }
  return base::kExitSuccess;
}

int list_hosts(Context& context) {
  store::ListQuery query;
  query.view = "hosts";
  query.limit = 100000;
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
  const auto options = std::make_shared<HostOptions>();
  Group group(command);
  group.verb("set", "Set the delay and cap of a host; applies to the next claim", [&](CLI::App& set) {
    set.add_option("host", options->host, "Its name")->required();
    set.add_option("--delay", options->delay, "Minimum time between two of its pages: 5s");
    set.add_option("--parallel", options->parallel, "Maximum number of its pages at once; 0: no cap")->check(number(0));
    return [options](Context& context) { return set_host(context, *options); };
  });
  group.verb("forget", "Remove all limits of a host", [&](CLI::App& forget) {
    forget.add_option("host", options->host, "Its name")->required();
    return [options](Context& context) {
      const auto name = host_name(options->host);
      print_change(context, "forget", "host", name, store::host_forget(context.connection(), name, user_name()));
      return base::kExitSuccess;
    };
  });
  group.verb("list", "Hosts with limits, delays and pauses", [](CLI::App&) { return &list_hosts; });
  return group.action();
}

} // namespace holdfast::cli
