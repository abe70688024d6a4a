#include "lib/base/error.hpp"
#include "lib/catalog/list.hpp"
#include "lib/catalog/operation.hpp"
#include "services/cli/command/verbs.hpp"
#include "services/cli/control/operate.hpp"
#include "services/cli/terminal/output.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <iostream>
#include <memory>

namespace holdfast::cli {

namespace {

struct ScopeOptions {
  std::string crawl, domain;
  std::vector<std::string> allow, deny, undo;
  bool back{false};
};

using Lists = std::map<std::string, std::vector<std::string>>; // "deny" -> patterns

int scope(Context& context, const std::string& given, const Lists& add, const Lists& remove) {
  auto& connection = context.connection();
  const auto id = id_named(connection, given, "crawl");
  const bool changed = (!add.empty() || !remove.empty()) &&
                       catalog::command(connection, "scopeCrawl", id, user_name(), {{"add", add}, {"remove", remove}});
  const auto rows = catalog::list(connection, catalog::ListQuery{"crawls", 1}.by("crawl", id));
  const auto now = rows.one();
  const auto lists = nlohmann::json::parse(now.text("scope"));
  if (context.json()) {
    print_record("Scope", {{"crawl_id", id},
                           {"changed", changed},
                           {"scope", lists},
                           {"excluded", now.integer("excluded")},
                           {"refused", now.integer("refused")}});
    return base::kExitSuccess;
  }
  if (lists.empty()) std::cout << "everything belongs to this crawl\n";
  for (const auto& [name, values] : lists.items())
    for (const auto& value : values)
      std::cout << name << "  " << printable(value.get<std::string>()) << '\n';
  std::cout << now.text("excluded") << " open snapshots wait outside it, " << now.text("refused")
            << " URLs were left out\n";
  return base::kExitSuccess;
}

} // namespace

Action scope_verb(CLI::App& command) {
  const auto options = std::make_shared<ScopeOptions>();
  command.add_option("crawl", options->crawl, "The crawl")->required();
  command.add_option("--allow", options->allow, "Only URLs that fit this, or another --allow")->allow_extra_args(false);
  command.add_option("--deny", options->deny, "No URLs that fit this")->allow_extra_args(false);
  command.add_option("--undo", options->undo, "Remove this pattern from both lists")->allow_extra_args(false);
  return [options](Context& context) {
    Lists add, remove;
    if (!options->allow.empty()) add["allow"] = options->allow;
    if (!options->deny.empty()) add["deny"] = options->deny;
    if (!options->undo.empty()) remove = {{"allow", options->undo}, {"deny", options->undo}};
    return scope(context, options->crawl, add, remove);
  };
}

Action exclude_verb(CLI::App& command) {
  const auto options = std::make_shared<ScopeOptions>();
  command.add_option("domain", options->domain, "example.com, *.example.com, or a regular expression")->required();
  command.add_option("crawl", options->crawl, "The crawl")->required();
  command.add_flag("--undo", options->back, "Include the host again");
  return [options](Context& context) {
    const Lists lists{{"deny", {options->domain}}};
    return options->back ? scope(context, options->crawl, {}, lists) : scope(context, options->crawl, lists, {});
  };
}

} // namespace holdfast::cli
