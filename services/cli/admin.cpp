#include "lib/base/error.hpp"
#include "lib/base/log.hpp"
#include "lib/store/lifecycle.hpp"
#include "lib/store/schema.hpp"
#include "lib/store/view.hpp"
#include "services/cli/output.hpp"
#include "services/cli/verbs.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <iostream>

namespace holdfast::cli {

int migrate(Context& context, bool force) {
  // Not context.connection(): that one refuses the very schema which is to be migrated.
  pg::ConnectionOptions options;
  options.statement_timeout = std::chrono::hours(1);
  pg::Connection connection(context.dsn(), options);
  const auto report = store::migrator().migrate(connection, force);
  if (context.json()) {
    std::cout
        << nlohmann::json{{"type", "Migration"}, {"revision", report.revision}, {"applied", report.applied}}.dump()
        << std::endl;
  } else {
    for (const auto& name : report.applied)
      std::cout << "applied " << name << '\n';
    std::cout << "the schema is at revision " << report.revision
              << (report.revision > store::migrator().revision() ? ", of a newer release; this program can work with it"
                  : report.applied.empty()                       ? ", nothing to do"
                                                                 : "")
              << std::endl;
  }
  return base::kExitSuccess;
}

int show_config(Context& context, const std::string& key) {
  const auto& settings = context.settings();
  bool any = false;
  const auto print = [&](const std::string& name, const std::string& value, const std::string& origin) {
    if (!key.empty() && key != name) return;
    any = true;
    if (context.json())
      std::cout
          << nlohmann::ordered_json{{"type", "Setting"}, {"key", name}, {"value", value}, {"origin", origin}}.dump()
          << '\n';
    else if (key.empty())
      std::cout << name << std::string(name.size() < 28 ? 28 - name.size() : 1, ' ') << fitted(printable(value), 60)
                << "  (" << origin << ")\n";
    else
      std::cout << value << '\n';
  };
  for (const auto& entry : config::key_table()) {
    const auto& value = settings.value(entry.name);
    std::string text = entry.secret ? (value.text.empty() ? "(unset)" : "(set)") : value.text;
    if (!entry.secret && entry.type == config::Type::path && !settings.path(entry.name).empty())
      text = settings.path(entry.name).string();
    print(std::string(entry.name), text, value.origin);
  }
  for (const auto& [name, value] : settings.hook_options())
    print(name, hooks::is_secret_key(name) ? "(set)" : value.text, value.origin);
  std::cout << std::flush;
  if (!any)
    throw base::Error(base::ErrorClass::usage, "there is no setting \"" + key + "\"", "holdfast config lists them");
  return base::kExitSuccess;
}

int version(Context& context) {
  if (context.json())
    std::cout << nlohmann::json{{"type", "Version"},
                                {"version", HOLDFAST_VERSION},
                                {"revision", store::migrator().revision()}}
                     .dump()
              << std::endl;
  else
    std::cout << "holdfast " << HOLDFAST_VERSION << ", schema revision " << store::migrator().revision() << std::endl;
  return base::kExitSuccess;
}

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

int check(Context& context) {
  const auto rows = store::check_invariants(context.connection());
  if (context.json()) {
    for (std::size_t i = 0; i < rows.size(); ++i)
      std::cout << nlohmann::json{{"type", "Violation"},
                                  {"invariant", rows[i].text("invariant")},
                                  {"object_id", rows[i]["object_id"].value_or("")},
                                  {"detail", rows[i]["detail"].value_or("")}}
                       .dump()
                << '\n';
  } else if (rows.empty()) {
    std::cout << "every invariant holds\n";
  } else {
    print_table(rows, {"invariant", "object_id", "detail"});
  }
  std::cout << std::flush;
  return rows.empty() ? base::kExitSuccess : base::kExitFailedWork;
}

} // namespace holdfast::cli
