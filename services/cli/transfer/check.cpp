#include "lib/base/error.hpp"
#include "lib/store/call.hpp"
#include "services/cli/command/verbs.hpp"
#include "services/cli/context/presence.hpp"
#include "services/cli/terminal/output.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <iostream>

namespace holdfast::cli {

namespace {

int check(Context& context) {
  auto& connection = context.diagnosis();
  const Presence presence(context, "command", "check");
  const auto rows = store::call(connection, "check_invariants");
  if (context.json()) {
    for (std::size_t i = 0; i < rows.size(); ++i)
      std::cout << nlohmann::json{{"type", "Violation"},
                                  {"invariant", rows[i].text("invariant")},
                                  {"object_id", rows[i]["object_id"].value_or("")},
                                  {"detail", rows[i]["detail"].value_or("")}}
                       .dump()
                << '\n';
  } else if (rows.empty()) {
    std::cout << "every invariant holds\n";
  } else {
    print_table(rows, {"invariant", "object_id", "detail"});
  }
  std::cout << std::flush;
  return rows.empty() ? base::kExitSuccess : base::kExitFailedWork;
}

} // namespace

Action check_verb(CLI::App&) { return &check; }

} // namespace holdfast::cli
