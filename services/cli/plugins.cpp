#include "services/cli/plugins.hpp"

#include "lib/base/error.hpp"
#include "lib/base/json_text.hpp"
#include "lib/hooks/persona.hpp"
#include "lib/store/program.hpp"
#include "services/cli/output.hpp"
#include "services/cli/verbs.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <iostream>
#include <memory>

namespace holdfast::cli {

namespace {

struct PersonaOptions {
  std::string name, cookies, notes;
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

int recheck_programs(Context& context, const std::string& name, const std::string& host) {
  const auto count = store::binary_recheck(context.connection(), name, host);
  if (context.json())
    std::cout << nlohmann::json{{"type", "Recheck"}, {"count", count}}.dump() << std::endl;
  else
    std::cout << count << (count == 1 ? " program" : " programs") << " will be looked for again within a minute"
              << std::endl;
  return count > 0 || name.empty() ? base::kExitSuccess : static_cast<int>(base::ErrorClass::refused);
}

} // namespace

void add_plugin_commands(CLI::App& app, std::function<int(Context&)>& verb) {
  {
    auto names = std::make_shared<std::vector<std::string>>();
    auto* command =
        app.add_subcommand("doctor", "What each plugin lacks on this machine, and the command that installs it");
    command->add_option("plugins", *names, "Only these (default: all that are enabled)");
    command->footer("Ends with 1 if something is missing.");
    command->callback([&verb, names] { verb = [names](Context& context) { return doctor(context, *names); }; });
  }
  {
    auto* group =
        app.add_subcommand("binary", "Programs that plugins need, as the nodes have found them on each machine");
    group->require_subcommand(1);
    auto listing = std::make_shared<ListOptions>();
    listing->what = "binaries";
    listing->limit = 1000;
    auto* list_command = group->add_subcommand("list", "All of them");
    list_command->add_option("--status", listing->status, "Only those: installed, or queued (not found)")
        ->check(CLI::IsMember({"installed", "queued"}));
    list_command->add_option("--name", listing->url, "Only names that contain this");
    list_command->callback(
        [&verb, listing] { verb = [listing](Context& context) { return list(context, *listing); }; });
    auto name = std::make_shared<std::string>(), host = std::make_shared<std::string>();
    auto* recheck = group->add_subcommand("recheck", "Look for them again soon: after something was installed");
    recheck->add_option("name", *name, "Only this one");
    recheck->add_option("--host", *host, "Only on this machine");
    recheck->callback([&verb, name, host] {
      verb = [name, host](Context& context) { return recheck_programs(context, *name, *host); };
    });
  }
  {
    auto* group =
        app.add_subcommand("persona", "Named sets of options, cookies and a browser profile, for add --persona");
    group->require_subcommand(1);
    group->footer("Kept in personas/ of data_dir, readable by its owner alone: each machine needs its own copy.");
    auto given = std::make_shared<PersonaOptions>();
    group->add_subcommand("list", "All of them")->callback([&verb] { verb = list_personas; });
    auto* show_command = group->add_subcommand("show", "One of them");
    show_command->add_option("name", given->name, "Its name")->required();
    show_command->callback([&verb, given] {
      verb = [given](Context& context) {
        return print_persona(context, existing(context, given->name)), base::kExitSuccess;
      };
    });
    auto* set_command = group->add_subcommand("set", "Make one, or change it");
    set_command->add_option("name", given->name, "Its name")->required();
    set_command->add_option("--cookies", given->cookies, "Cookies file in Netscape's format; it is copied");
    set_command->add_option("--option", given->options, "Option for hooks, as NAME=VALUE")->allow_extra_args(false);
    set_command->add_option("--unset", given->unset, "Option to be forgotten")->allow_extra_args(false);
    set_command->add_option("--notes", given->notes, "What it is for");
    set_command->callback(
        [&verb, given] { verb = [given](Context& context) { return set_persona(context, *given); }; });
    auto* remove_command = group->add_subcommand("remove", "Remove one, with its cookies and profile");
    remove_command->add_option("name", given->name, "Its name")->required();
    remove_command->callback([&verb, given] {
      verb = [given](Context& context) {
        existing(context, given->name);
        hooks::remove_persona(personas(context), given->name);
        return base::kExitSuccess;
      };
    });
  }
  {
    auto options = std::make_shared<LogOptions>();
    auto* command = app.add_subcommand(
        "logs", "What hooks of a snapshot or crawl have printed: those that run here, and those that failed");
    command->add_option("id", options->id, "Id of a snapshot or crawl, or the first or last few digits of it")
        ->required();
    command->add_flag("-f,--follow", options->follow, "Go on until it is sealed");
    command->add_option("-p,--plugin", options->plugin, "Only of this plugin");
    command->footer("Hooks that succeed leave no logs. What a hook may print is limited by hook.stdout_limit and "
                    "hook.stderr_limit;\n"
                    "of long logs the end is shown.");
    command->callback([&verb, options] { verb = [options](Context& context) { return logs(context, *options); }; });
  }
}

} // namespace holdfast::cli
