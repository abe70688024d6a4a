#include "lib/base/error.hpp"
#include "lib/catalog/list.hpp"
#include "services/cli/add/input.hpp"
#include "services/cli/command/verbs.hpp"
#include "services/cli/look/list.hpp"
#include "services/cli/terminal/output.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <iostream>
#include <memory>

namespace holdfast::cli {

namespace {

int show(Context& context, const std::string& id) {
  auto& collection = context.collection();
  const auto found = collection.find(id, store::FindAs::newest);
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
    print_json(collection, object);
    if (found.kind != "process") print_json(collection, parts);
    std::cout << std::flush;
    return base::kExitSuccess;
  }
  const auto rows = collection.rows(object);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].text("id") != found.id) continue;
    std::vector<std::pair<std::string, std::string>> fields;
    for (std::size_t column = 0; column < rows.columns().size(); ++column)
      fields.emplace_back(rows.columns()[column], shown_cell(rows, i, column));
    if (found.kind == "crawl")
      fields.emplace_back("page", collection.page_of_crawl(found.id));
    else if (found.kind == "snapshot" && !rows[i].is_null("directory"))
      fields.emplace_back("page", collection.page_of_snapshot(found.id, rows[i].text("directory")));
    print_fields(fields);
  }
  if (found.kind != "process") {
    const auto list_of_parts = collection.rows(parts);
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

namespace {

int why(Context& context, const std::vector<std::string>& names, bool with_facts) {
  context.diagnose();
  bool unknown = false;
  for (const auto& name : read_ids(names)) {
    const auto answer = context.collection().why(name);
    unknown = unknown || answer.kind == "nothing";
    const auto facts = nlohmann::ordered_json::parse(answer.facts);
    if (context.json()) {
      print_record("Why", {{"kind", answer.kind}, {"id", answer.id}, {"reason", answer.reason}, {"facts", facts}});
      continue;
    }
    std::cout << printable(with_local_times(answer.reason)) << '\n';
    if (!with_facts) continue;
    std::vector<std::pair<std::string, std::string>> fields;
    const auto shown = [](const nlohmann::ordered_json& value) {
      return value.is_string() ? with_local_times(catalog::written_interval(local_time(value.get<std::string>())))
                               : value.dump();
    };
    for (const auto& [key, value] : facts.items()) {
      if (value.is_array() && !value.empty() && value[0].is_object()) {
        for (const auto& one : value) {
          std::string text;
          for (const auto& [inner, what] : one.items())
            if (!(what.is_string() && what.get<std::string>().empty()))
              text += (text.empty() ? "" : ", ") + inner + " " + shown(what);
          fields.emplace_back("  " + key, text);
        }
      } else {
        fields.emplace_back("  " + key, shown(value));
      }
    }
    print_fields(fields);
  }
  std::cout << std::flush;
  return unknown ? static_cast<int>(base::ErrorClass::refused) : base::kExitSuccess;
}

} // namespace

Action why_verb(CLI::App& command) {
  const auto names = std::make_shared<std::vector<std::string>>();
  command
      .add_option("id", *names,
                  "An id (at least 4 of its first or last digits), a URL or a host; - reads a list from standard input")
      ->required();
  const auto facts = std::make_shared<bool>(false);
  command.add_flag("--facts", *facts, "Also what the sentence was made of");
  return [names, facts](Context& context) { return why(context, *names, *facts); };
}

} // namespace holdfast::cli
