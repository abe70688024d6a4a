#include "lib/archive/root.hpp"
#include "lib/base/error.hpp"
#include "lib/catalog/list.hpp"
#include "lib/maintenance/crawl_page.hpp"
#include "lib/store/find.hpp"
#include "services/cli/command/verbs.hpp"
#include "services/cli/look/list.hpp"
#include "services/cli/terminal/output.hpp"
#include "services/cli/terminal/times.hpp"

#include <CLI/CLI.hpp>

#include <iostream>
#include <memory>

namespace holdfast::cli {

namespace {

int show(Context& context, const std::string& id) {
  auto& connection = context.connection();
  const auto found = store::find_newest(connection, id);
  catalog::ListQuery object, parts;
  if (found.kind == "crawl") {
    object.view = "crawls";
    object.by("crawl", found.id);
    parts.by("crawl", found.id);
  } else if (found.kind == "snapshot") {
    parts.view = "results";
    for (auto* query : {&object, &parts})
      query->by("snapshot", found.id).by("crawl", found.crawl_id);
  } else {
    object = {"workers", 100000};
  }
  if (context.json()) {
    print_json(connection, object);
    if (found.kind != "process") print_json(connection, parts);
    std::cout << std::flush;
    return base::kExitSuccess;
  }
  const auto rows = catalog::list(connection, object);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].text("id") != found.id) continue;
    std::vector<std::pair<std::string, std::string>> fields;
    for (std::size_t column = 0; column < rows.columns().size(); ++column)
      fields.emplace_back(rows.columns()[column], shown_cell(rows, i, column));
    if (found.kind == "crawl")
      fields.emplace_back("page", archive::shown(context.archive_root(), maintenance::crawl_page_path(found.id)));
    else if (found.kind == "snapshot" && !rows[i].is_null("directory"))
      fields.emplace_back("page", archive::shown(context.archive_root(), rows[i].text("directory") + "/index.html"));
    print_fields(fields);
  }
  if (found.kind != "process") {
    const auto list_of_parts = catalog::list(connection, parts);
    if (!list_of_parts.empty()) {
      std::cout << '\n';
      print_table(list_of_parts, catalog::list_of(parts.view).columns);
    }
  }
  std::cout << std::flush;
  return base::kExitSuccess;
}

} // namespace

Action show_verb(CLI::App& command) {
  const auto id = std::make_shared<std::string>();
  command.add_option("id", *id, "An id (at least 4 of its first or last digits), a URL, or the label of a crawl")
      ->required();
  return [id](Context& context) { return show(context, *id); };
}

} // namespace holdfast::cli
