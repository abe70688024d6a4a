#include "lib/hooks/persona.hpp"

#include "lib/base/error.hpp"
#include "lib/base/json_text.hpp"
#include "lib/base/uuid.hpp"
#include "lib/store/sign_in.hpp"
#include "services/cli/output.hpp"
#include "services/cli/verbs.hpp"
#include "services/serve/endpoint.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <iostream>
#include <memory>

namespace holdfast::cli {

namespace {

struct PersonaOptions {
  std::string name, cookies, notes, url;
  std::vector<std::string> options, unset;
};

std::filesystem::path personas(const Context& context) { return context.data_dir() / "personas"; }

nlohmann::ordered_json described(const hooks::Persona& persona) {
  nlohmann::ordered_json options = nlohmann::ordered_json::object();
  for (const auto& [key, value] : persona.options)
    options[key] = hooks::is_secret_key(key) ? "(set)" : value;
  return {{"type", "Persona"},          {"name", persona.name}, {"options", options},
          {"cookies", persona.cookies}, {"auth", persona.auth}, {"notes", persona.notes}};
}

void print_persona(Context& context, const hooks::Persona& persona) {
  if (context.json()) {
    std::cout << base::json_text(described(persona)) << std::endl;
    return;
  }
  std::vector<std::pair<std::string, std::string>> fields{{"persona", persona.name},
                                                          {"notes", printable(persona.notes)},
                                                          {"cookies", persona.cookies ? "yes" : "none"},
                                                          {"directory", (personas(context) / persona.name).string()}};
  for (const auto& [key, value] : persona.options)
    fields.emplace_back("  " + key, hooks::is_secret_key(key) ? "(set)" : printable(value));
  print_fields(fields);
  std::cout << std::flush;
}

hooks::Persona existing(Context& context, const std::string& name) {
  auto persona = hooks::read_persona(personas(context), name);
  if (!persona)
    throw base::Error(base::ErrorClass::refused, "there is no persona \"" + name + "\"",
                      "holdfast persona list; holdfast persona set " + name + " makes one");
  return *persona;
}

int list_personas(Context& context) {
  const auto names = hooks::persona_names(personas(context));
  for (const auto& name : names) {
    const auto persona = existing(context, name);
    if (context.json()) {
      print_persona(context, persona);
      continue;
    }
    std::cout << name << std::string(name.size() < 20 ? 20 - name.size() : 1, ' ') << persona.options.size()
              << " options" << (persona.cookies ? ", cookies" : "")
              << (persona.notes.empty() ? "" : "  " + printable(persona.notes)) << '\n';
  }
  if (names.empty() && !context.json()) std::cout << "none; holdfast persona set NAME --cookies FILE makes one\n";
  std::cout << std::flush;
  return base::kExitSuccess;
}

int set_persona(Context& context, const PersonaOptions& given) {
  hooks::Persona persona;
  if (auto known = hooks::read_persona(personas(context), given.name)) persona = *known;
  persona.name = given.name;
  if (!given.notes.empty()) persona.notes = given.notes;
  for (const auto& text : given.options) {
    const auto equals = text.find('=');
    const auto key = text.substr(0, equals);
    if (equals == std::string::npos || key.empty() ||
        key.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != std::string::npos)
      throw base::Error(base::ErrorClass::usage, "--option " + text + ": not NAME=VALUE",
                        "for example --option USER_AGENT=...");
    persona.options[key] = text.substr(equals + 1);
  }
  for (const auto& key : given.unset)
    persona.options.erase(key);
  hooks::write_persona(personas(context), persona, given.cookies);
  print_persona(context, existing(context, given.name));
  return base::kExitSuccess;
}

// Prints where the browser is; the page of `holdfast serve` shows it.
int sign_in(Context& context, const PersonaOptions& given) {
  const auto id = base::new_uuid();
  store::sign_in_ask(context.connection(), id, given.name, given.url, user_name());
  const auto endpoint = serve::parse_endpoint(context.settings().text("serve.listen"), "serve.listen");
  const auto link = serve::url_of(endpoint, endpoint.port) + "persona/" + id;
  if (context.json())
    std::cout << base::json_text(nlohmann::ordered_json{{"type", "SignIn"}, {"id", id}, {"url", link}}) << std::endl;
  else
    std::cout << "Open " << link << "\n  where holdfast serve listens; a worker must run\n" << std::flush;
  return base::kExitSuccess;
}

} // namespace

Action persona_verb(CLI::App& command) {
  command.footer("Kept in personas/ of data_dir, readable by its owner alone: each machine needs its own copy.");
  const auto given = std::make_shared<PersonaOptions>();
  Group group(command);
  group.verb("list", "List all personas", [](CLI::App&) { return &list_personas; });
  group.verb("show", "Show a persona", [&](CLI::App& one) {
    one.add_option("name", given->name, "Its name")->required();
    return [given](Context& context) {
      print_persona(context, existing(context, given->name));
      return base::kExitSuccess;
    };
  });
  group.verb("set", "Create or change a persona", [&](CLI::App& set) {
    set.add_option("name", given->name, "Its name")->required();
    set.add_option("--cookies", given->cookies, "Cookies file in Netscape's format; it is copied");
    set.add_option("--option", given->options, "Option for hooks, as NAME=VALUE")->allow_extra_args(false);
    set.add_option("--unset", given->unset, "Option to remove")->allow_extra_args(false);
    set.add_option("--notes", given->notes, "What it is for");
    return [given](Context& context) { return set_persona(context, *given); };
  });
  group.verb("sign-in", "Sign in to a site by hand, in a browser on a worker", [&](CLI::App& one) {
    one.add_option("name", given->name, "Its name")->required();
    one.add_option("url", given->url, "The page with the login")->required();
    return [given](Context& context) { return sign_in(context, *given); };
  });
  group.verb("remove", "Remove one, with its cookies and profile", [&](CLI::App& one) {
    one.add_option("name", given->name, "Its name")->required();
    return [given](Context& context) {
      existing(context, given->name);
      hooks::remove_persona(personas(context), given->name);
      return base::kExitSuccess;
    };
  });
  return group.action();
}

} // namespace holdfast::cli
