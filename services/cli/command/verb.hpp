#pragma once
// Registration of verbs. Each verb has a file of its own with one function, which registers the verb's options and
// returns its action; verbs.cpp has the table of all. Main thread.

#include "services/cli/context/context.hpp"

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace holdfast::cli {

// Runs the verb with the options that were parsed; returns the exit code. Failures are Errors, which main prints.
using Action = std::function<int(Context&)>;

struct Verb {
  const char* name;
  const char* help;
  const char* examples;             // one a line; `holdfast VERB --help` shows them
  Action (*add)(CLI::App& command); // options that the action needs are kept alive by it
};

// The action that the command line has chosen; set while it is parsed.
using Choice = std::shared_ptr<Action>;

// Adds a verb below `parent`; `choice` becomes what `add` returns if the command line names it.
template <class Add>
CLI::App* attach_verb(CLI::App& parent, const Choice& choice, const char* name, const char* help,
                      const std::string& examples, Add add);
void choose_when_parsed(CLI::App& command, const Choice& choice, Action action);
CLI::App* add_command(CLI::App& parent, const char* name, const char* help);
void show_examples(CLI::App& command, const std::string& examples);

template <class Add>
CLI::App* attach_verb(CLI::App& parent, const Choice& choice, const char* name, const char* help,
                      const std::string& examples, Add add) {
  CLI::App* const command = add_command(parent, name, help);
  choose_when_parsed(*command, choice, add(*command));
  show_examples(*command, examples);
  return command;
}

// For a verb that only groups others: requires one of them, and runs that.
class Group {
public:
  explicit Group(CLI::App& command);
  template <class Add>
  CLI::App* verb(const char* name, const char* help, const std::string& examples, Add add) {
    return attach_verb(command_, choice_, name, help, examples, add);
  }
  Action action() const;

private:
  CLI::App& command_;
  Choice choice_;
};

} // namespace holdfast::cli
