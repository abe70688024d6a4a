#include "services/cli/command/verbs.hpp"
#include "services/cli/control/operate.hpp"
#include "services/cli/look/list.hpp"

namespace holdfast::cli {

Action host_verb(CLI::App& command) {
  Group group(command);
  operation_verb(group, "set", "setHost", "holdfast host set example.org --delay 5s --parallel 1");
  operation_verb(group, "forget", "forgetHost", "holdfast host forget example.org");
  list_verb_of(group, "host");
  return group.action();
}

} // namespace holdfast::cli
