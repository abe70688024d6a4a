#include "lib/base/error.hpp"
#include "lib/base/uuid.hpp"
#include "lib/catalog/operation.hpp"
#include "services/cli/command/fields.hpp"
#include "services/cli/command/verbs.hpp"
#include "services/cli/control/operate.hpp"
#include "services/cli/terminal/output.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <iostream>
#include <memory>

namespace holdfast::cli {

namespace {

struct RetryOptions {
  std::vector<std::string> ids;
  std::shared_ptr<nlohmann::json> body = std::make_shared<nlohmann::json>(nlohmann::json::object());
};

int retry(Context& context, const RetryOptions& options) {
  auto& connection = context.connection();
  auto body = *options.body;
  for (const auto& found : find_all(connection, options.ids)) {
    if (found.kind == "process")
      throw base::Error(base::ErrorClass::usage, found.id + " is a worker, not a crawl or snapshot");
    body["ids"].push_back(found.id);
  }
  if (body.contains("plugins"))
    context.plugin_set()->select(body["plugins"]); // names that do not exist are refused here
  const auto by = user_name(), id = base::new_uuid();
  // A pipe may hold nothing.
  const auto answer = body.contains("ids") ? catalog::operation("retry").run({connection, id, id, body, by})
                                           : nlohmann::ordered_json::object();
  const auto urls = answer.value("seeds", 0);
  if (context.json()) {
    nlohmann::ordered_json json{{"seeds", urls}};
    if (urls > 0) json["id"] = id;
    print_record("Crawl", json);
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
  for (const auto& field : catalog::operation("retry").body)
    if (field.name != "ids") add_field(command, field, options->body);
  return [options](Context& context) { return retry(context, *options); };
}

} // namespace holdfast::cli
