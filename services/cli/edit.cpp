#include "lib/base/error.hpp"
#include "lib/base/text.hpp"
#include "lib/store/control.hpp"
#include "lib/store/view.hpp"
#include "services/cli/input.hpp"
#include "services/cli/output.hpp"
#include "services/cli/targets.hpp"
#include "services/cli/verbs.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <iostream>
#include <memory>
#include <optional>

namespace holdfast::cli {

namespace {

struct EditOptions {
  std::vector<std::string> ids, add, remove;
  std::optional<std::string> label, title, notes;
};

// A crawl's label, a snapshot's title; the notes and tags of both.
void print_description(Context& context, pg::Connection& connection, const store::Found& found) {
  const bool crawl = found.kind == "crawl";
  const auto now =
      crawl ? store::crawl_description(connection, found.id) : store::snapshot_description(connection, found.id);
  const auto& name = crawl ? now.label : now.title;
  if (context.json()) {
    std::cout << nlohmann::ordered_json{{"type", "Description"},           {"kind", found.kind}, {"id", found.id},
                                        {crawl ? "label" : "title", name}, {"notes", now.notes}, {"tags", now.tags}}
                     .dump()
              << '\n';
    return;
  }
  std::cout << found.kind << ' ' << found.id << ": "
            << (now.tags.empty() ? "no tags" : "tags " + printable(base::join(now.tags, ", ")))
            << (name.empty() ? "" : std::string(crawl ? "; label " : "; title ") + printable(name))
            << (now.notes.empty() ? "" : "; notes: " + printable(now.notes)) << '\n';
}

int edit(Context& context, const EditOptions& options) {
  auto& connection = context.connection();
  std::vector<store::Found> targets; // all of them before anything is done
  for (const auto& given : read_ids(options.ids)) {
    targets.push_back(store::find(connection, given));
    const auto& kind = targets.back().kind;
    if (kind == "process")
      throw base::Error(base::ErrorClass::usage, given + " is a worker; only crawls and snapshots can be edited");
    if (kind == "snapshot" && options.label)
      throw base::Error(base::ErrorClass::usage, given + " is a snapshot; only crawls have a label",
                        "--title changes the title of a snapshot");
    if (kind == "crawl" && options.title)
      throw base::Error(base::ErrorClass::usage, given + " is a crawl; only snapshots have a title",
                        "--label changes the name of a crawl");
  }
  store::Description description{options.label, options.title, options.notes,
                                 base::split(base::join(options.add, ","), ","), // as add --tag takes them
                                 base::split(base::join(options.remove, ","), ",")};
  const bool changes = options.label || options.title || options.notes || !description.add_tags.empty() ||
                       !description.remove_tags.empty();
  for (const auto& target : targets) {
    bool changed = true;
    if (!changes)
      print_description(context, connection, target);
    else if (target.kind == "crawl")
      store::crawl_describe(connection, target.id, description, user_name());
    else
      changed = store::snapshot_describe(connection, target.id, description, user_name());
    if (changes) print_change(context, "edit", target.kind, target.id, changed);
  }
  std::cout << std::flush;
  return base::kExitSuccess;
}

} // namespace

Action edit_verb(CLI::App& command) {
  const auto options = std::make_shared<EditOptions>();
  command.add_option("ids", options->ids, "Crawls and snapshots; - reads them from standard input")->required();
  command.add_option("-t,--tag", options->add, "Add a tag; a crawl's tags are also those of its snapshots")
      ->allow_extra_args(false);
  command.add_option("--untag", options->remove, "Remove a tag")->allow_extra_args(false);
  command.add_option("--title", options->title, "Title of a snapshot; '' shows that of the page again");
  command.add_option("--label", options->label, "Name of a crawl");
  command.add_option("--notes", options->notes, "Notes on a crawl or snapshot");
  return [options](Context& context) { return edit(context, *options); };
}

} // namespace holdfast::cli
