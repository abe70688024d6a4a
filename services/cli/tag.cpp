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

namespace holdfast::cli {

namespace {

struct TagOptions {
  std::vector<std::string> ids, add, remove;
  std::string label, notes;
};

// A crawl's label, notes and tags, or a snapshot's tags.
void print_description(Context& context, pg::Connection& connection, const store::Found& found) {
  const bool crawl = found.kind == "crawl";
  const auto now = crawl ? store::crawl_description(connection, found.id)
                         : store::Described{"", "", store::snapshot_tags(connection, found.id)};
  const auto& tags = now.tags;
  if (context.json()) {
    nlohmann::ordered_json line{{"type", "Tags"}, {"kind", found.kind}, {"id", found.id}, {"tags", tags}};
    if (crawl) line.update({{"label", now.label}, {"notes", now.notes}});
    std::cout << line.dump() << '\n';
    return;
  }
  std::cout << found.kind << ' ' << found.id << ": "
            << (tags.empty() ? "no tags" : "tags " + printable(base::join(tags, ", ")))
            << (now.label.empty() ? "" : "; label " + printable(now.label))
            << (now.notes.empty() ? "" : "; notes: " + printable(now.notes)) << '\n';
}

int describe(Context& context, const TagOptions& options) {
  auto& connection = context.connection();
  std::vector<store::Found> targets; // all of them before anything is done
  for (const auto& given : read_ids(options.ids)) {
    targets.push_back(store::find(connection, given));
    if (targets.back().kind == "process")
      throw base::Error(base::ErrorClass::usage, given + " is a worker; crawls and snapshots have tags");
    if (targets.back().kind == "snapshot" && !(options.label.empty() && options.notes.empty()))
      throw base::Error(base::ErrorClass::usage, given + " is a snapshot; only crawls have a label and notes");
  }
  if (options.add.empty() && options.remove.empty() && options.label.empty() && options.notes.empty()) {
    for (const auto& target : targets)
      print_description(context, connection, target);
    std::cout << std::flush;
    return base::kExitSuccess;
  }
  store::Description description;
  if (!options.label.empty()) description.label = options.label;
  if (!options.notes.empty()) description.notes = options.notes;
  description.add_tags = base::split(base::join(options.add, ","), ","); // as add --tag takes them
  description.remove_tags = base::split(base::join(options.remove, ","), ",");
  for (const auto& target : targets) {
    bool changed = true;
    if (target.kind == "crawl")
      store::crawl_describe(connection, target.id, description, user_name());
    else
      changed =
          store::snapshot_describe(connection, target.id, description.add_tags, description.remove_tags, user_name());
    print_change(context, "tag", target.kind, target.id, changed);
  }
  return base::kExitSuccess;
}

} // namespace

Action tag_verb(CLI::App& command) {
  const auto options = std::make_shared<TagOptions>();
  command.add_option("ids", options->ids, "Crawls and snapshots; - reads them from standard input")->required();
  command.add_option("--add", options->add, "Add a tag; a crawl's tags are also those of its snapshots")
      ->allow_extra_args(false);
  command.add_option("--remove", options->remove, "Remove a tag")->allow_extra_args(false);
  command.add_option("--label", options->label, "Name of a crawl");
  command.add_option("--notes", options->notes, "Notes on a crawl");
  return [options](Context& context) { return describe(context, *options); };
}

} // namespace holdfast::cli
