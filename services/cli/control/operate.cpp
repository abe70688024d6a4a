#include "services/cli/control/operate.hpp"

#include "lib/base/error.hpp"
#include "lib/base/uuid.hpp"
#include "lib/catalog/operation.hpp"
#include "services/cli/add/input.hpp"
#include "services/cli/command/fields.hpp"
#include "services/cli/terminal/output.hpp"

#include <CLI/CLI.hpp>

#include <iostream>
#include <map>

namespace holdfast::cli {

namespace {

std::string past(const std::string& action) {
  static const std::map<std::string, std::string, std::less<>> irregular = {
      {"cancel", "cancelled"},  {"change", "changed"},
      {"edit", "changed"},      {"put", "put there"},
      {"take", "taken off"},    {"drain", "draining"},
      {"keep", "changed"},      {"forget", "deleted"},
      {"priority", "changed"},  {"set", "set"},
      {"add", "added"},         {"test", "tested"},
      {"retry", "tried again"}, {"relearn", "learns again what is noise"},
      {"run-now", "run"},       {"log-level", "log level set"}};
  const auto found = irregular.find(action);
  return found == irregular.end() ? action + "d" : found->second; // pause, resume, remove
}

std::string shown_kind(std::string_view kind) {
  return kind.empty() ? "everything" : kind == "process" ? "worker" : std::string(kind);
}

// Runs a row; `kind` and `name`: of what it changes, for the line that it prints.
void run_row(Context& context, const std::string& action, const catalog::Operation& operation, const std::string& id,
             const nlohmann::json& body, const std::string& kind, const std::string& name) {
  auto answer = context.collection().run(operation, id, base::new_uuid(), body);
  const bool changed = answer.value("changed", true);
  answer.erase("changed");
  print_change(context, action, kind, name, changed, answer);
}

bool has_uuid(std::string_view kind) { return kind == "crawl" || kind == "snapshot" || kind == "process"; }

struct Given {
  std::vector<std::string> ids;  // of what it is about
  std::vector<std::string> some; // crawls and snapshots among its fields
  std::string group, name;       // of what has no path of its own: the group of its verb, the field with its name
  std::shared_ptr<nlohmann::json> body = std::make_shared<nlohmann::json>(nlohmann::json::object());
};

int run_verb(Context& context, const std::string& action, const catalog::Operation& operation, const Given& given) {
  const auto kind = operation.kind();
  auto body = *given.body;
  for (const auto& found : find_all(context.collection(), given.some))
    body["ids"].push_back(found.id);
  std::vector<std::string> ids; // all of them before anything is done
  for (const auto& one : has_uuid(kind) ? read_ids(given.ids) : given.ids)
    ids.push_back(has_uuid(kind) ? id_named(context.collection(), one, kind) : kind == "host" ? host_name(one) : one);
  for (const auto& id : ids)
    run_row(context, action, operation, id, body, shown_kind(kind), id);
  if (kind.empty()) run_row(context, action, operation, "", body, given.group, body.value(given.name, ""));
  std::cout << std::flush;
  return base::kExitSuccess;
}

} // namespace

Action operation_verb(CLI::App& command, std::string_view name, std::string_view only) {
  const auto& operation = catalog::operation(name);
  const auto kind = operation.kind();
  const auto given = std::make_shared<Given>();
  const auto& parent = *command.get_parent();
  const bool grouped = parent.get_parent() != nullptr;
  given->group = grouped ? parent.get_name() : shown_kind("");
  const auto argument = [&](catalog::Field field) {
    field.flags = field.name;
    add_field(command, field, given->body)->required();
  };
  for (const auto& field : operation.body)
    if (field.name == only) argument(field);
  if (has_uuid(kind))
    command.add_option(shown_kind(kind) + "s", given->ids, "Ids; - reads them from standard input")->required();
  else if (!kind.empty())
    command
        .add_option_function<std::string>(
            std::string(kind), [given](const std::string& one) { given->ids = {one}; },
            kind == "schedule" ? "Its label or id"
            : kind == "shelf"  ? "Its name or id"
            : kind == "share"  ? "Its id"
                               : "Its name")
        ->required();
  for (const auto& field : operation.body)
    if (field.name == "ids") {
      command.add_option("pages", given->some, kIdsHelp)->required();
    } else if (field.required) {
      if (grouped && given->name.empty()) given->name = field.name;
      argument(field);
    } else if (only.empty()) {
      add_field(command, field, given->body);
    }
  return [given, &operation, action = command.get_name()](Context& context) {
    return run_verb(context, action, operation, *given);
  };
}

void operation_verb(Group& group, const char* verb, const std::string& operation, const std::string& examples) {
  group.verb(verb, std::string(catalog::operation(operation).summary), examples,
             [&](CLI::App& command) { return operation_verb(command, operation); });
}

void operate(Context& context, const std::string& action, const std::string& kind, const std::string& id,
             const nlohmann::json& body) {
  auto what = kind.empty() ? "all" : shown_kind(kind);
  what.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(what.front())));
  run_row(context, action, catalog::operation(action + what), id, body, shown_kind(kind), id);
}

void print_change(Context& context, const std::string& action, const std::string& kind, const std::string& id,
                  bool changed, const nlohmann::ordered_json& more) {
  if (!context.json()) {
    std::cout << kind << (id.empty() ? "" : " ") << printable(id) << ": "
              << (changed ? past(action) : "nothing to " + action);
    for (const auto& [name, value] : more.items())
      if (!value.is_null())
        std::cout << "; " << name << ' ' << printable(value.is_string() ? value.get<std::string>() : value.dump());
    std::cout << '\n';
    return;
  }
  nlohmann::ordered_json line{{"action", action}, {"kind", kind}, {"target", id}, {"changed", changed}};
  line.update(more);
  print_record("Control", line);
}

std::vector<store::Found> find_all(Collection& collection, const std::vector<std::string>& given) {
  std::vector<store::Found> found;
  for (const auto& one : read_ids(given))
    found.push_back(collection.find(one));
  return found;
}

std::string id_named(Collection& collection, const std::string& given, std::string_view kind) {
  const auto found = collection.find(given);
  if (found.kind != kind)
    throw base::Error(base::ErrorClass::usage, given + " is a " + found.kind + ", not a " + shown_kind(kind));
  return found.id;
}

} // namespace holdfast::cli
