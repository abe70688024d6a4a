#include "lib/base/error.hpp"
#include "lib/base/text/url.hpp"
#include "lib/base/uuid.hpp"
#include "lib/catalog/list.hpp"
#include "lib/catalog/operation.hpp"
#include "services/cli/add/input.hpp"
#include "services/cli/command/fields.hpp"
#include "services/cli/command/verbs.hpp"
#include "services/cli/control/operate.hpp"
#include "services/cli/look/list.hpp"
#include "services/cli/run/serve.hpp"
#include "services/cli/terminal/output.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <memory>

namespace holdfast::cli {

namespace {

struct ShowShelf {
  std::string name;
  std::int64_t limit{50};
};

int show_shelf(Context& context, const ShowShelf& options) {
  auto& collection = context.collection();
  const auto id = collection.find(options.name, store::FindAs::shelf).id;
  const auto query = catalog::ListQuery{"shelves", 1}.by("shelf", id);
  // Rows of holdfast.shelf_entries().
  const auto pages = collection.shelf_pages(id, options.limit);
  if (context.json()) {
    print_records(collection.lines(query), "Shelf");
    print_records(pages.column("json"), "Snapshot");
    return base::kExitSuccess;
  }
  const auto rows = collection.rows(query);
  const auto row = rows.one();
  std::vector<std::pair<std::string, std::string>> fields;
  for (const char* column : {"id", "name", "description", "rule", "pages", "cover", "changed_by"})
    fields.emplace_back(column, printable(row[column].value_or("")));
  fields.emplace_back("changed_at", local_time(row.text("changed_at")));
  print_fields(fields);
  std::cout << "\n";
  print_table(pages, {"id", "status", "outcome?", "title?", "url"});
  std::cout << std::flush;
  return base::kExitSuccess;
}

Action showing_shelf(CLI::App& command) {
  const auto options = std::make_shared<ShowShelf>();
  command.add_option("shelf", options->name, "Its name or id")->required();
  command.add_option("-n,--limit", options->limit, "At most this many pages (50)")
      ->check(number(1, std::optional(1'000'000)));
  return [options](Context& context) { return show_shelf(context, *options); };
}

struct AddShare {
  std::string page, shelf, expires{"30d"};
};

int add_share(Context& context, const AddShare& options) {
  if (options.page.empty() == options.shelf.empty())
    throw base::Error(base::ErrorClass::usage, "name one thing to share: a snapshot, a URL, or --shelf NAME",
                      "holdfast share add 7f3a");
  nlohmann::json body{{"expires", options.expires}};
  if (!options.shelf.empty())
    body["shelf"] = options.shelf;
  else if (const auto url = base::try_parse_url(options.page))
    body["url"] = url->text;
  else
    body["snapshot"] = id_named(context.collection(), options.page, "snapshot");
  const auto made = context.collection().run(catalog::operation("share"), "", base::new_uuid(), body);
  const auto id = made["id"].get<std::string>();
  auto link = made["link"].get<std::string>(); // a server says where it has it
  if (!link.starts_with("http")) link = files_url(context.settings()) + "/" + link + "/";
  if (context.json())
    print_record("Share", {{"id", id}, {"link", link}});
  else
    std::cout << link << "\n  Copy it now. It is not stored and cannot be shown again. It works while holdfast serve "
              << "runs; to end it: holdfast share revoke " << id << std::endl;
  return base::kExitSuccess;
}

Action adding_share(CLI::App& command) {
  const auto options = std::make_shared<AddShare>();
  command.add_option("page", options->page, "A snapshot (its id), or a URL for all of its captures");
  command.add_option("--shelf", options->shelf, "A shelf: its name or id");
  command.add_option("--expires", options->expires, "How long the link is valid, at most 5 years")
      ->capture_default_str();
  return [options](Context& context) { return add_share(context, *options); };
}

} // namespace

Action share_verb(CLI::App& command) {
  Group group(command);
  group.verb("add", "Make a link and print it, once",
             "holdfast share add 7f3a --expires 7d\n"
             "holdfast share add https://example.org/\n"
             "holdfast share add --shelf reading",
             &adding_share);
  list_verb_of(group, "share");
  operation_verb(group, "revoke", "revokeShare", "holdfast share revoke 1f0c22d9");
  return group.action();
}

Action shelf_verb(CLI::App& command) {
  Group group(command);
  operation_verb(group, "add", "addShelf",
                 "holdfast shelf add reading --description 'For the winter'\n"
                 "holdfast shelf add solar --words '\"solar wind\"' --host example.org");
  operation_verb(group, "put", "shelve",
                 "holdfast shelf put reading 7f3a 81bc\n"
                 "holdfast shelf put reading 81bc --place first\n"
                 "holdfast list snapshots --tag later | holdfast shelf put reading -");
  operation_verb(group, "take", "unshelve", "holdfast shelf take reading 7f3a");
  list_verb_of(group, "shelf");
  group.verb("show", "Show a shelf and its pages", "holdfast shelf show reading", &showing_shelf);
  operation_verb(group, "edit", "changeShelf",
                 "holdfast shelf edit reading --name 'For the summer'\n"
                 "holdfast shelf edit solar --host -");
  operation_verb(group, "remove", "removeShelf", "holdfast shelf remove reading");
  return group.action();
}

} // namespace holdfast::cli
