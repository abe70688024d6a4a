#include "services/cli/command/verb.hpp"

#include <CLI/CLI.hpp>

#include <sstream>

namespace holdfast::cli {

CLI::App* add_command(CLI::App& parent, const char* name, const char* help) {
  return parent.add_subcommand(name, help);
}

void show_examples(CLI::App& command, const std::string& examples) {
  std::string footer = command.get_footer();
  footer += footer.empty() ? "Examples:" : "\n\nExamples:";
  std::istringstream lines(examples);
  for (std::string line; std::getline(lines, line);)
    footer += "\n  " + line;
  command.footer(footer);
}

void choose_when_parsed(CLI::App& command, const Choice& choice, Action action) {
  // A group's inner verb is parsed before the group, and has been chosen for its action.
  command.callback([choice, action = std::move(action)] { *choice = action; });
}

Group::Group(CLI::App& command) : command_(command), choice_(std::make_shared<Action>()) {
  command_.require_subcommand(1);
}

Action Group::action() const {
  return [choice = choice_](Context& context) { return (*choice)(context); };
}

} // namespace holdfast::cli
