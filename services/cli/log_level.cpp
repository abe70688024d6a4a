#include "lib/base/error.hpp"
#include "lib/store/control.hpp"
#include "lib/store/view.hpp"
#include "services/cli/verbs.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <iostream>
#include <memory>

namespace holdfast::cli {

namespace {

int log_level(Context& context, const std::string& level, const std::string& worker) {
  auto& connection = context.connection();
  const std::string id = worker.empty() ? "" : store::find(connection, worker).id;
  store::log_level_set(connection, id, level == "default" ? "" : level);
  if (context.json())
    std::cout << nlohmann::ordered_json{{"type", "LogLevel"}, {"level", level}, {"worker", id}}.dump() << std::endl;
  else
    std::cout << "log level of " << (id.empty() ? "every worker and runner" : id) << ": " << level << std::endl;
  return base::kExitSuccess;
}

} // namespace

Action log_level_verb(CLI::App& command) {
  const auto level = std::make_shared<std::string>(), worker = std::make_shared<std::string>();
  command.add_option("level", *level, "trace, debug, info, warn, error, off, or default: what each has configured")
      ->required()
      ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error", "off", "default"}));
  command.add_option("--worker", *worker, "Only this one");
  command.footer(
      "The level is kept in the database and applies to later workers, too. SIGUSR1 switches debugging of one process "
      "on and off.");
  return [level, worker](Context& context) { return log_level(context, *level, *worker); };
}

} // namespace holdfast::cli
