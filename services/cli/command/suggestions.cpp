#include "services/cli/command/suggestions.hpp"

#include "lib/base/text/text.hpp"
#include "lib/base/text/url.hpp"
#include "lib/catalog/list.hpp"
#include "services/cli/command/help.hpp"
#include "services/cli/terminal/output.hpp"

#include <CLI/CLI.hpp>

#include <map>
#include <optional>
#include <string_view>
#include <vector>

namespace holdfast::cli {

namespace {

// Maps words of other programs, ArchiveBox above all, to the command that does the same.
std::string_view elsewhere(std::string_view word) {
  static const std::map<std::string_view, std::string_view> lines = {
      {"archive", "holdfast add URL"},
      {"crawl", "holdfast add --depth 1 URL"},
      {"daemon", "holdfast run --daemon"},
      {"delete", "holdfast remove ID"},
      {"dependencies", "holdfast doctor"},
      {"extract", "holdfast retry ID --plugin NAME"},
      {"import", "holdfast add FILE"},
      {"info", "holdfast status"},
      {"init", "holdfast add URL (it makes the collection where there is none)"},
      {"install", "holdfast plugins install; holdfast doctor prints how to install what plugins lack"},
      {"log", "holdfast logs ID"},
      {"ls", "holdfast list"},
      {"man", "holdfast manual | man -l -"},
      {"manage", "holdfast --help"},
      {"mcp", "holdfast serve"},
      {"oneshot", "holdfast add URL"},
      {"orchestrator", "holdfast run --daemon"},
      {"plugin", "holdfast plugins list"},
      {"ps", "holdfast list running"},
      {"rm", "holdfast remove ID"},
      {"server", "holdfast serve"},
      {"set", "holdfast --set KEY=VALUE COMMAND, or a line in holdfast.yaml"},
      {"setup", "holdfast doctor"},
      {"shell", "holdfast psql"},
      {"start", "holdfast run --daemon"},
      {"stop", "holdfast drain --machine HOSTNAME"},
      {"update", "holdfast add --update URL, or holdfast retry ID --failed"},
      {"upgrade", "holdfast migrate"},
      {"web", "holdfast serve"},
  };
  const auto found = lines.find(word);
  return found == lines.end() ? std::string_view() : found->second;
}

std::string in_quotes(const std::string& text) { return "\"" + text + "\""; }

// The command that was given, as far as it was understood: {"holdfast", "schedule"}.
const CLI::App* innermost(const CLI::App& app, std::string& name) {
  const CLI::App* command = &app;
  for (name = "holdfast"; !command->get_subcommands().empty();) {
    command = command->get_subcommands().back();
    name += " " + command->get_name();
  }
  return command;
}

std::vector<std::string> commands_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  return names;
}

std::vector<std::string> long_options_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* option : app.get_options())
    for (const auto& name : option->get_lnames())
      names.push_back("--" + name);
  return names;
}

// "holdfast add URL" with what was given for the word in capitals.
std::string filled(std::string line, const std::vector<std::string>& given) {
  for (const std::string_view place : {"URL", "ID", "FILE"}) {
    const auto at = line.find(place);
    if (given.empty() || at == std::string::npos) continue;
    std::string words;
    for (const auto& one : given)
      words += (words.empty() ? "" : " ") + shell_word(one);
    return line.replace(at, place.size(), words);
  }
  return line;
}

// The list that a word names: "snapshots", "snapshot".
std::string list_named(const std::string& word) {
  for (const auto& list : catalog::lists())
    if (word == list.name || word == list.one) return std::string(list.name);
  return {};
}

// An option that ends in the same words: "--delay" means "--host-delay".
std::string longer_option(const std::string& option, const std::vector<std::string>& known) {
  for (const auto& one : known)
    if (option.size() > 3 && one.size() > option.size() && one.ends_with(option.substr(1))) return one;
  return {};
}

Suggestion unknown_command(const CLI::App& command, const std::string& name, const std::vector<std::string>& given) {
  const auto& word = given.front();
  const bool top = command.get_parent() == nullptr;
  if (top && base::is_web_url(word)) return {in_quotes(word) + " is a URL, not a command", "holdfast add " + word};
  Suggestion suggestion{"unknown command " + in_quotes((top ? "" : name.substr(name.find(' ') + 1) + " ") + word), ""};
  if (const auto line = elsewhere(word); top && !line.empty())
    suggestion.hint = filled(std::string(line), {given.begin() + 1, given.end()});
  else if (const auto list = list_named(word); top && !list.empty())
    suggestion.hint = "holdfast list " + list;
  else if (const auto near = base::nearest(word, commands_of(command)); !near.empty())
    suggestion.hint = "did you mean " + name + " " + near + "?";
  else
    suggestion.hint = top ? "holdfast --help lists the commands" : name + " " + base::join(commands_of(command), "|");
  return suggestion;
}

// "holdfast host set NAME": the command with its positional arguments.
std::string usage_of(const CLI::App& command, std::string usage) {
  for (const auto* option : command.get_options([](const CLI::Option* one) { return one->get_positional(); })) {
    const auto word = placeholder(*option);
    usage += " " + (option->get_required() ? word : "[" + word + "]");
  }
  return usage;
}

// Explains that a required argument or the value of an option is missing.
std::optional<Suggestion> missing(const CLI::App& command, const std::string& name, const CLI::ParseError& error) {
  if (error.get_name() == "RequiredError") {
    for (const auto* option : command.get_options())
      if (option->get_required() && option->count() == 0)
        return option->get_positional()
                   ? Suggestion{"missing argument: " + placeholder(*option), usage_of(command, name)}
                   : Suggestion{"missing option: " + option->get_name(),
                                option->get_name() + ": " + option->get_description()};
  }
  const std::string text = error.what();
  if (error.get_name() == "ArgumentMismatch" && text.ends_with(" missing"))
    if (const auto* option = command.get_option_no_throw(text.substr(0, text.find(':'))))
      return Suggestion{option->get_name() + " needs a value", option->get_name() + ": " + option->get_description()};
  return std::nullopt;
}

// "--kind: x not in {worker,runner}" -> the values in words.
std::optional<Suggestion> not_allowed(const std::string& name, const std::string& text) {
  const auto colon = text.find(": "), list = text.rfind(" not in {");
  if (colon == text.npos || list == text.npos || colon > list || !text.ends_with("}")) return std::nullopt;
  const auto option = text.substr(0, colon), given = text.substr(colon + 2, list - colon - 2);
  const auto values = base::split(text.substr(list + 9, text.size() - list - 10), ",");
  const auto near = base::nearest(given, values);
  return Suggestion{option + ": " + in_quotes(given) + " is not one of " + base::join(values, ", "),
                    name + " " + (option.starts_with("-") ? option + " " : "") +
                        (near.empty() ? base::join(values, "|") : near)};
}

// Says in other words what CLI11 finds wrong with one value.
std::optional<Suggestion> wrong_value(const std::string& name, const std::string& text) {
  const auto colon = text.find(": ");
  const auto rest = colon == text.npos ? "" : text.substr(colon + 2);
  if (rest.starts_with("At Most "))
    return Suggestion{text.substr(0, colon) + " is given more than once", name + " --help"};
  if (text.starts_with("Could not convert: "))
    return Suggestion{rest.substr(0, rest.find(" = ")) + " takes no value",
                      name + " " + rest.substr(0, rest.find(" = "))};
  for (const std::string_view kind : {"File", "Directory", "Path"})
    if (const auto begin = std::string(kind) + " does not exist: "; rest.starts_with(begin))
      return Suggestion{std::string(kind == "Directory" ? "there is no directory " : "there is no file ") +
                            in_quotes(rest.substr(begin.size())),
                        name + " --help"};
  return std::nullopt;
}

} // namespace

Suggestion explain(const CLI::App& app, const CLI::ParseError& error) {
  std::string name;
  const auto* command = innermost(app, name);
  const auto strange = app.remaining(true);
  const auto help = name + " --help";
  if (error.get_name() == "ArgumentMismatch")
    if (auto known = missing(*command, name, error)) return *known;
  if (!commands_of(*command).empty()) {
    if (strange.empty())
      return {command->get_parent() == nullptr ? "no command given" : "no command given after " + in_quotes(name),
              command->get_parent() == nullptr ? "holdfast add URL archives a page; holdfast --help lists the commands"
                                               : name + " " + base::join(commands_of(*command), "|")};
    if (!strange.front().starts_with('-')) return unknown_command(*command, name, strange);
  }
  if (strange.empty()) {
    auto known = missing(*command, name, error);
    if (!known) known = not_allowed(name, error.what());
    if (!known) known = wrong_value(name, error.what());
    return known.value_or(Suggestion{error.what(), help});
  }
  if (strange.front().starts_with('-')) {
    auto known = long_options_of(*command);
    for (auto& option : long_options_of(app))
      known.push_back(std::move(option));
    const auto option = strange.front().substr(0, strange.front().find('='));
    auto near = longer_option(option, known);
    if (near.empty()) near = base::nearest(option, known);
    return {name + " has no option " + option, near.empty() ? help : "did you mean " + name + " " + near + "?"};
  }
  return {name + " does not expect " + in_quotes(base::join(strange, " ")),
          name == "holdfast config" ? "settings are written in holdfast.yaml; for one command: --set KEY=VALUE" : help};
}

} // namespace holdfast::cli
