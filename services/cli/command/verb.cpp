#include "services/cli/command/verb.hpp"

#include <CLI/CLI.hpp>

namespace holdfast::cli {

CLI::App* add_command(CLI::App& parent, const char* name, const char* help) {
  return parent.add_subcommand(name, help);
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
