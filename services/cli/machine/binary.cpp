#include "lib/store/binary.hpp"

#include "lib/base/error.hpp"
#include "lib/store/call.hpp"
#include "services/cli/command/verbs.hpp"
#include "services/cli/look/list.hpp"
#include "services/cli/terminal/output.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <iostream>
#include <memory>

namespace holdfast::cli {

namespace {

int recheck_binaries(Context& context, const std::string& name, const std::string& host) {
  const auto count = store::call_for<std::int64_t>(context.connection(), "binary_recheck", name, host);
  if (count == 0 && !name.empty())
    throw base::Error(base::ErrorClass::refused,
                      "no hook has asked for the binary " + name + (host.empty() ? "" : " on " + host),
                      "holdfast binary list shows them");
  if (context.json())
    print_record("Recheck", {{"count", count}});
  else
    std::cout << count << (count == 1 ? " binary" : " binaries") << " will be looked for again within a minute"
              << std::endl;
  return base::kExitSuccess;
}

} // namespace

Action binary_verb(CLI::App& command) {
  Group group(command);
  group.verb("list", "List all binaries",
             "holdfast binary list\n"
             "holdfast binary list --name chrom",
             [](CLI::App& all) {
               const auto listing = std::make_shared<ListOptions>();
               listing->what = "binaries";
               listing->limit = 1000;
               all.add_option("--status", listing->filters["status"], "Only those: installed, or queued (not found)")
                   ->check(CLI::IsMember({"installed", "queued"}));
               all.add_option("--name", listing->filters["url"], "Only names that contain this");
               return [listing](Context& context) { return list(context, *listing); };
             });
  group.verb("recheck", "Check binaries again now, for example after an installation",
             "holdfast binary recheck\n"
             "holdfast binary recheck wget --host archive-3",
             [](CLI::App& recheck) {
               const auto name = std::make_shared<std::string>(), host = std::make_shared<std::string>();
               recheck.add_option("name", *name, "Only this one");
               recheck.add_option("--host", *host, "Only on this machine");
               return [name, host](Context& context) { return recheck_binaries(context, *name, *host); };
             });
  return group.action();
}

} // namespace holdfast::cli
