#include "services/cli/look/list.hpp"

#include "lib/base/error.hpp"
#include "lib/base/text/text.hpp"
#include "lib/catalog/search.hpp"
#include "services/cli/add/input.hpp"
#include "services/cli/command/fields.hpp"
#include "services/cli/command/verbs.hpp"
#include "services/cli/control/operate.hpp"
#include "services/cli/terminal/output.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iostream>
#include <memory>

namespace holdfast::cli {

namespace {

constexpr std::size_t kFewLists = 3; // help names them

void check_columns(Collection& collection, catalog::ListQuery query, const std::vector<std::string>& columns) {
  if (columns.empty()) return;
  query.limit = 0;
  const auto rows = collection.rows(query);
  for (const auto& column : columns)
    if (std::find(rows.columns().begin(), rows.columns().end(), column) == rows.columns().end())
      throw base::Error(base::ErrorClass::usage, query.view + " have no column \"" + printable(column) + "\"",
                        "one of: " + base::join(rows.columns(), ", "));
}

// No rows, because no plugin has that name?
void check_plugin(Context& context, const std::string& plugin) {
  if (context.remote()) return; // its plugins are not those of this machine
  const auto plugin_set = context.plugin_set();
  if (!plugin_set->plugins().empty() && plugin_set->find(plugin) == nullptr)
    plugin_set->select({plugin}); // throws, naming all
}

} // namespace

std::string filter_value(Context& context, const catalog::List& list, const std::string& filter,
                         const std::string& typed) {
  if (filter == "crawl" || filter == "snapshot") return id_named(context.collection(), typed, filter);
  if (filter == "schedule") return context.collection().find(typed, store::FindAs::schedule).id;
  if (filter == "host") return host_name(typed);
  if (filter == "since" || filter == "until" || filter == "at") return time_before(typed);
  return catalog::filter_value(list, filter, typed);
}

void print_json(Collection& collection, const catalog::ListQuery& query, const std::vector<std::string>& columns) {
  for (const auto& line : collection.lines(query)) {
    const auto row = nlohmann::ordered_json::parse(line);
    nlohmann::ordered_json chosen;
    for (const auto& column : columns)
      chosen[column] = row.at(column);
    print_record(catalog::list_of(query.view).record, columns.empty() ? row : chosen);
  }
}

int list(Context& context, const ListOptions& options) {
  const auto& shown = catalog::list_of(options.what);
  catalog::ListQuery query{std::string(shown.name), options.limit};
  for (const auto& [filter, typed] : options.filters)
    if (!typed.empty()) query.by(filter, filter_value(context, shown, filter, typed));
  auto& collection = context.collection();
  if (const auto plugin = query.filter("plugin"); plugin && collection.rows(query).empty())
    check_plugin(context, *plugin);
  check_columns(collection, query, options.columns);
  if (options.csv) {
    print_csv(collection.rows(query), options.columns);
  } else if (context.json()) {
    print_json(collection, query, options.columns);
  } else {
    const auto rows = collection.rows(query);
    if (rows.empty())
      std::cout << "none\n";
    else
      print_table(rows, options.columns.empty() ? shown.columns : options.columns);
    if (static_cast<std::int64_t>(rows.size()) == query.limit)
      std::cout << "(the first " << query.limit << "; -n NUMBER shows more)\n";
  }
  std::cout << std::flush;
  return base::kExitSuccess;
}

void list_verb_of(Group& group, std::string_view one) {
  const auto& shown = catalog::list_of(one);
  group.verb("list", shown.summary.data(), "holdfast " + std::string(one) + " list", [&shown](CLI::App&) {
    return [&shown](Context& context) { return list(context, {.what = std::string(shown.name), .limit = 1'000'000}); };
  });
}

Action list_verb(CLI::App& command) {
  const auto options = std::make_shared<ListOptions>();
  std::vector<std::string> names;
  for (const auto& one : catalog::lists())
    names.emplace_back(one.name);
  command.description("List " + base::join(names, ", "));
  command.add_option("what", options->what, "What to list (default: snapshots)");
  for (const auto& filter : catalog::filters()) {
    const std::string name(filter.field.name);
    if (name == "before") continue;
    auto what = std::string(filter.field.what) + std::string(filter.examples);
    if (const auto of = catalog::lists_by(name); of.size() <= kFewLists) what += " (" + base::join(of, ", ") + ")";
    auto flag = "--" + name;
    std::replace(flag.begin(), flag.end(), '_', '-');
    auto* option = command.add_option(flag, options->filters[name], what);
    if (const auto& schema = catalog::schema_of(filter.field); schema.contains("enum"))
      option->check(CLI::IsMember(schema["enum"].get<std::vector<std::string>>()));
  }
  command.add_flag("--csv", options->csv, "All columns as CSV, with a header line");
  command.add_option("--columns", options->columns, "Only these columns: id,url,bytes,...; --csv has all of them")
      ->delimiter(',');
  command.add_option("-n,--limit", options->limit, "At most this many (50)")->check(number<std::int64_t>(1));
  return [options](Context& context) { return list(context, *options); };
}

} // namespace holdfast::cli
