#include "lib/base/error.hpp"
#include "lib/base/text/text.hpp"
#include "lib/catalog/list.hpp"
#include "lib/catalog/operation.hpp"
#include "services/cli/command/fields.hpp"
#include "services/cli/command/verbs.hpp"
#include "services/cli/control/operate.hpp"
#include "services/cli/terminal/output.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iostream>
#include <memory>
#include <set>

namespace holdfast::cli {

namespace {

struct EditOptions {
  std::vector<std::string> ids;
  std::shared_ptr<nlohmann::json> changes = std::make_shared<nlohmann::json>(nlohmann::json::object());
};

// A crawl's label, a snapshot's title; the notes and tags of both.
void print_description(Context& context, Collection& collection, const store::Found& found) {
  const bool crawl = found.kind == "crawl";
  const auto rows = collection.rows(catalog::ListQuery{found.kind + "s", 1}.by(found.kind, found.id));
  const auto now = rows.one();
  const std::string name = now[crawl ? "label" : "title"], notes = now["notes"];
  const std::vector<std::string> tags = now["tags"];
  if (context.json()) {
    print_record(
        "Description",
        {{"kind", found.kind}, {"id", found.id}, {crawl ? "label" : "title", name}, {"notes", notes}, {"tags", tags}});
    return;
  }
  std::cout << found.kind << ' ' << found.id << ": "
            << (tags.empty() ? "no tags" : "tags " + printable(base::join(tags, ", ")))
            << (name.empty() ? "" : std::string(crawl ? "; label " : "; title ") + printable(name))
            << (notes.empty() ? "" : "; notes: " + printable(notes)) << '\n';
}

bool has_field(const std::string& kind, const std::string& name) {
  const auto fields = catalog::operation(kind == "crawl" ? "changeCrawl" : "changeSnapshot").body;
  return std::any_of(fields.begin(), fields.end(), [&](const auto& field) { return field.name == name; });
}

int edit(Context& context, const EditOptions& options) {
  auto& collection = context.collection();
  const auto targets = find_all(collection, options.ids); // before anything is done
  for (const auto& [kind, id, crawl] : targets) {
    if (kind == "process")
      throw base::Error(base::ErrorClass::usage, id + " is a worker; only crawls and snapshots can be edited");
    for (const auto& [name, value] : options.changes->items())
      if (!has_field(kind, name))
        throw base::Error(base::ErrorClass::usage, id + " is a " + kind + "; only " +
                                                       (kind == "crawl" ? "snapshots" : "crawls") + " have a " + name);
  }
  for (const auto& target : targets)
    if (options.changes->empty())
      print_description(context, collection, target);
    else
      operate(context, "change", target.kind, target.id, *options.changes);
  std::cout << std::flush;
  return base::kExitSuccess;
}

} // namespace

Action edit_verb(CLI::App& command) {
  const auto options = std::make_shared<EditOptions>();
  command.add_option("ids", options->ids, "Crawls and snapshots; - reads them from standard input")->required();
  std::set<std::string_view> seen;
  for (const char* const name : {"changeCrawl", "changeSnapshot"})
    for (const auto& field : catalog::operation(name).body)
      if (seen.insert(field.name).second) add_field(command, field, options->changes);
  return [options](Context& context) { return edit(context, *options); };
}

namespace {

struct ScopeOptions {
  std::string crawl, domain;
  std::vector<std::string> allow, deny, undo;
  bool back{false};
};

using Lists = std::map<std::string, std::vector<std::string>>; // "deny" -> patterns

int scope(Context& context, const std::string& given, const Lists& add, const Lists& remove) {
  auto& collection = context.collection();
  const auto id = id_named(collection, given, "crawl");
  const bool changed =
      (!add.empty() || !remove.empty()) &&
      collection.run(catalog::operation("scopeCrawl"), id, "", {{"add", add}, {"remove", remove}})["changed"] == true;
  const auto rows = collection.rows(catalog::ListQuery{"crawls", 1}.by("crawl", id));
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
