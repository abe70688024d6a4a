#include "services/cli/command/suggestions.hpp"

#include "lib/base/text/text.hpp"
#include "lib/base/text/url.hpp"

#include <CLI/CLI.hpp>

#include <map>
#include <string_view>
#include <vector>

namespace holdfast::cli {

namespace {

// Words that people bring along from elsewhere, ArchiveBox above all, and what does the same here.
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
      {"install", "holdfast plugins install, or holdfast doctor --install for what plugins lack"},
      {"log", "holdfast logs ID"},
      {"ls", "holdfast list"},
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
      {"snapshot", "holdfast list snapshots"},
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

Suggestion unknown_command(const CLI::App& command, const std::string& name, const std::string& word) {
  const bool top = command.get_parent() == nullptr;
  if (top && base::is_web_url(word)) return {in_quotes(word) + " is a URL, not a command", "holdfast add " + word};
  Suggestion suggestion{"unknown command " + in_quotes((top ? "" : name.substr(name.find(' ') + 1) + " ") + word), ""};
  if (const auto line = elsewhere(word); top && !line.empty())
    suggestion.hint = line;
  else if (const auto near = base::nearest(word, commands_of(command)); !near.empty())
    suggestion.hint = "did you mean " + name + " " + near + "?";
  else
    suggestion.hint = top ? "holdfast --help lists the commands" : name + " " + base::join(commands_of(command), "|");
  return suggestion;
}

} // namespace

Suggestion explain(const CLI::App& app, const CLI::ParseError& error) {
  std::string name;
  const auto* command = innermost(app, name);
  const auto strange = app.remaining(true);
  const auto help = name + " --help";
  if (!commands_of(*command).empty()) {
    if (strange.empty())
      return {command->get_parent() == nullptr ? "no command given" : "no command given after " + in_quotes(name),
              command->get_parent() == nullptr ? "holdfast add URL archives a page; holdfast --help lists the commands"
                                               : name + " " + base::join(commands_of(*command), "|")};
    if (!strange.front().starts_with('-')) return unknown_command(*command, name, strange.front());
  }
  if (strange.empty()) return {error.what(), help};
  if (strange.front().starts_with('-')) {
    auto known = long_options_of(*command);
    for (auto& option : long_options_of(app))
      known.push_back(std::move(option));
    const auto option = strange.front().substr(0, strange.front().find('='));
    const auto near = base::nearest(option, known);
    return {name + " has no option " + option, near.empty() ? help : "did you mean " + near + "?"};
  }
  return {name + " does not expect " + in_quotes(base::join(strange, " ")), help};
}

} // namespace holdfast::cli
