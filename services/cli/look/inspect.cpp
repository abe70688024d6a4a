#include "lib/base/error.hpp"
#include "lib/catalog/list.hpp"
#include "lib/store/call.hpp"
#include "lib/store/lifecycle.hpp"
#include "services/cli/command/verbs.hpp"

#include <CLI/CLI.hpp>

#include <iostream>
#include <memory>

namespace holdfast::cli {

namespace {

int inspect_lifecycle(const std::string& name, bool mermaid) {
  bool any = false;
  for (const auto lifecycle : store::kLifecycles) {
    if (!name.empty() && name != lifecycle) continue;
    any = true;
    if (mermaid) {
      std::cout << "%% " << lifecycle << '\n' << store::mermaid(lifecycle);
      continue;
    }
    std::cout << lifecycle << '\n';
    for (const auto& edge : store::kEdges)
      if (edge.lifecycle == lifecycle)
        std::cout << "  " << edge.from << " -> " << edge.to << "  (" << edge.event << ")  " << edge.why << '\n';
  }
  std::cout << std::flush;
  std::string known;
  for (const auto lifecycle : store::kLifecycles)
    known += (known.empty() ? "" : ", ") + std::string(lifecycle);
  if (!any) throw base::Error(base::ErrorClass::usage, "there is no lifecycle \"" + name + "\"", known);
  return base::kExitSuccess;
}

std::string cell(std::string_view text) {
  std::string out;
  for (const char character : text)
    if (character == '|')
      out += "\\|";
    else if (character == '\n')
      out += ' ';
    else
      out += character;
  return out;
}

std::string_view type_name(config::Type type) {
  switch (type) {
  case config::Type::text:
    return "text";
  case config::Type::path:
    return "path";
  case config::Type::path_list:
    return "paths";
  case config::Type::boolean:
    return "true or false";
  case config::Type::integer:
    return "number";
  case config::Type::duration:
    return "duration";
  case config::Type::size:
    return "size";
  }
  return "";
}

void print_settings() {
  std::cout << "# Settings\n\nDurations: `500ms`, `30s`, `5m`, `2h`, `7d`. Sizes: `64k`, `512m`, `4g`.\n"
               "Later wins: default, YAML file, environment, `--set KEY=VALUE`.\n\n"
               "| setting | environment | kind | default | what it is |\n|---|---|---|---|---|\n";
  for (const auto& key : config::key_table()) {
    // Only this default depends on the user.
    const std::string fallback = key.name == "data_dir" ? "`/var/lib/holdfast` for root, else `~/.local/share/holdfast`"
                                 : key.default_value.empty() ? ""
                                                             : "`" + cell(key.default_value) + "`";
    const std::string kind = key.choices.empty() ? std::string(type_name(key.type)) : cell(key.choices);
    std::cout << "| `" << key.name << "` | `" << config::environment_name(key.name) << "` | " << kind
              << (key.secret ? ", secret" : "") << " | " << fallback << " | " << cell(key.help) << " |\n";
  }
}

void print_views(pg::Connection& connection) {
  std::cout
      << "# Views and functions\n\nTheir comments in the database, which `\\d+ holdfast.v_queue` shows as well.\n";
  const auto rows = store::call(connection, "reference");
  std::string last;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto row = rows[i];
    const auto& name = row.text("name");
    if (name != last) {
      const bool first_function =
          row.text("kind") == "function" && (last.empty() || last.find('(') == std::string::npos);
      if (first_function) std::cout << "\n# Functions for users\n";
      if (row.text("kind") == "view")
        std::cout << "\n## " << name << "\n\n"
                  << row["about"].value_or("") << "\n\n| column | type | what it is |\n|---|---|---|\n";
      else
        std::cout << (first_function ? "\n| function | who may | what it does |\n|---|---|---|\n" : "");
      last = name;
    }
    if (row.text("kind") == "view")
      std::cout << "| `" << row.text("part") << "` | " << row.text("type") << " | "
                << cell(row["part_about"].value_or("")) << " |\n";
    else
      std::cout << "| `" << cell(name) << "` | " << row.text("type") << " | " << cell(row["about"].value_or(""))
                << " |\n";
  }
}

} // namespace

Action inspect_verb(CLI::App& command) {
  Group group(command);
  group.verb("lifecycle", "The state machines",
             "holdfast inspect lifecycle\n"
             "holdfast inspect lifecycle crawl --mermaid",
             [](CLI::App& lifecycle) {
               const auto name = std::make_shared<std::string>();
               const auto mermaid = std::make_shared<bool>(false);
               lifecycle.add_option("name", *name, "One of them; without a name, all");
               lifecycle.add_flag("--mermaid", *mermaid, "As Mermaid state diagrams");
               return [name, mermaid](Context&) { return inspect_lifecycle(*name, *mermaid); };
             });
  group.verb("reference", "The settings, or the views, as a page in Markdown",
             "holdfast inspect reference settings\n"
             "holdfast inspect reference views | less",
             [](CLI::App& reference) {
               const auto topic = std::make_shared<std::string>();
               reference.add_option("topic", *topic, "settings or views")
                   ->required()
                   ->check(CLI::IsMember({"settings", "views"}));
               return [topic](Context& context) {
                 if (*topic == "settings")
                   print_settings();
                 else
                   print_views(context.connection(true));
                 std::cout << std::flush;
                 return base::kExitSuccess;
               };
             });
  return group.action();
}

} // namespace holdfast::cli
