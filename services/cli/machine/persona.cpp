#include "lib/store/persona.hpp"

#include "lib/base/error.hpp"
#include "lib/base/text/json.hpp"
#include "lib/base/uuid.hpp"
#include "lib/catalog/operation.hpp"
#include "lib/profiles/import.hpp"
#include "services/cli/command/verbs.hpp"
#include "services/cli/context/directories.hpp"
#include "services/cli/control/operate.hpp"
#include "services/cli/look/list.hpp"
#include "services/cli/terminal/output.hpp"
#include "services/serve/endpoint.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <iostream>
#include <memory>

namespace holdfast::cli {

namespace {

constexpr std::int64_t kAll = 1'000'000;

struct PersonaOptions {
  std::string name, path;
  std::vector<std::string> hosts;
  bool cookies{false};
};

pg::Result row_of(Context& context, const std::string& name) {
  return context.collection().rows(catalog::ListQuery{"personas", 1}.by("persona", name));
}

base::Error no_persona(const std::string& name) {
  return {base::ErrorClass::refused, "there is no persona \"" + name + "\"",
          "holdfast persona list; holdfast persona set " + name + " makes one"};
}

int show_persona(Context& context, const std::string& name) {
  if (row_of(context, name).empty()) throw no_persona(name);
  return list(context, {.what = "personas", .filters = {{"persona", name}}});
}

store::Persona opened(Context& context, const std::string& name) {
  auto persona = store::persona_load(context.connection(), context.key_ring(), name);
  if (!persona) throw no_persona(name);
  return std::move(*persona);
}

int import_persona(Context& context, const PersonaOptions& given) {
  const TemporaryDirectory scratch("persona");
  auto imported = profiles::import_from(given.path, scratch.path());
  persona::keep_hosts(imported.state, given.hosts);
  auto& connection = context.connection(true);
  const auto key_ring = context.key_ring();
  if (!given.hosts.empty()) store::persona_set(connection, given.name, {{"hosts", given.hosts}}, user_name());
  std::optional<std::int64_t> version;
  while (!version) { // what a capture stores at the same time is replaced as well
    const auto known = row_of(context, given.name);
    version = store::persona_save(connection, key_ring, given.name, known.empty() ? 0 : known.one().integer("version"),
                                  imported.state, user_name());
  }
  if (context.json()) {
    print_record("Persona", {{"name", given.name},
                             {"version", *version},
                             {"cookies", imported.state.cookies.size()},
                             {"origins", imported.state.origins.size()},
                             {"left_out", imported.left_out}});
    return base::kExitSuccess;
  }
  std::cout << "persona " << given.name << ": " << imported.state.cookies.size() << " cookies and storage of "
            << imported.state.origins.size() << " origins stored\n";
  for (const auto& what : imported.left_out)
    std::cout << "  left out: " << printable(what) << '\n';
  std::cout << std::flush;
  return base::kExitSuccess;
}

int export_persona(Context& context, const PersonaOptions& given) {
  const auto persona = opened(context, given.name);
  std::cout << (given.cookies ? persona::cookies_txt(persona.state) : persona.state.text() + "\n") << std::flush;
  return base::kExitSuccess;
}

int rotate_personas(Context& context) {
  auto& connection = context.connection();
  const auto key_ring = context.key_ring();
  const auto rows = catalog::list(connection, {"personas", kAll});
  for (const auto& row : rows) {
    const auto name = row.text("name");
    bool changed = false;
    for (auto persona = opened(context, name);
         persona.version > 0 && persona.key_id != key_ring.key_ids().front() && !changed;
         persona = opened(context, name))
      changed = store::persona_save(connection, key_ring, name, persona.version, persona.state, user_name(), false)
                    .has_value();
    print_change(context, "rotate", "persona", name, changed);
  }
  std::cout << std::flush;
  return base::kExitSuccess;
}

// Prints where the browser is; the page of `holdfast serve` shows it.
int sign_in(Context& context, const PersonaOptions& given) {
  const auto answer =
      context.collection(true).run(catalog::operation("signIn"), given.name, base::new_uuid(), {{"url", given.path}});
  const auto id = base::text_at(answer, "sign_in");
  const auto endpoint = serve::parse_endpoint(context.settings().text("serve.listen"), "serve.listen");
  const auto link =
      (context.remote() ? context.settings().value("server").text + "/" : serve::url_of(endpoint, endpoint.port)) +
      "persona/" + id;
  if (context.json())
    print_record("SignIn", {{"id", id}, {"url", link}});
  else
    std::cout << "Open " << link << "\n  where holdfast serve listens; a worker must run\n" << std::flush;
  return base::kExitSuccess;
}

} // namespace

Action persona_verb(CLI::App& command) {
  command.footer("Kept in the database, sealed with the key of persona.key_file: any worker with that key uses it.");
  const auto given = std::make_shared<PersonaOptions>();
  Group group(command);
  const auto named = [&](CLI::App& one) { one.add_option("name", given->name, "Its name")->required(); };
  list_verb_of(group, "persona");
  group.verb("show", "Show a persona, without what is secret", "holdfast persona show work", [&](CLI::App& one) {
    named(one);
    return [given](Context& context) { return show_persona(context, given->name); };
  });
  operation_verb(group, "set", "setPersona",
                 "holdfast persona set work --host intranet.example.org --option USER_AGENT='Mozilla/5.0 ...'\n"
                 "holdfast persona set work --unset USER_AGENT --worker-label office");
  group.verb(
      "import", "Store cookies and storage that a browser or another program has kept",
      "holdfast persona import work cookies.txt\n"
      "holdfast persona import press ~/.mozilla/firefox/*.default-release --host press.example.com",
      [&](CLI::App& one) {
        named(one);
        one.add_option(
               "path", given->path,
               "cookies.txt, Playwright's storage state, a Browsertrix profile, or the directory of a Chromium or "
               "Firefox profile or of a persona of ArchiveBox")
            ->required();
        one.add_option("--host", given->hosts,
                       "Only what is of these hosts, those below and above them; crawls with seeds there then use it")
            ->allow_extra_args(false);
        return [given](Context& context) { return import_persona(context, *given); };
      });
  group.verb("export", "Print its cookies and storage, as storage state",
             "holdfast persona export work >state.json\n"
             "holdfast persona export work --cookies",
             [&](CLI::App& one) {
               named(one);
               one.add_flag("--cookies", given->cookies, "Its cookies alone, as cookies.txt");
               return [given](Context& context) { return export_persona(context, *given); };
             });
  group.verb("sign-in", "Sign in to a site by hand, in a browser on a worker",
             "holdfast persona sign-in press https://press.example.com/login", [&](CLI::App& one) {
               named(one);
               one.add_option("url", given->path, "The page with the login")->required();
               return [given](Context& context) { return sign_in(context, *given); };
             });
  group.verb("rotate", "Seal all personas with the first key of persona.key_file", "holdfast persona rotate",
             [](CLI::App&) { return &rotate_personas; });
  operation_verb(group, "remove", "removePersona", "holdfast persona remove work");
  return group.action();
}

} // namespace holdfast::cli
