#include "services/cli/command/verbs.hpp"
#include "services/cli/control/operate.hpp"
#include "services/cli/look/list.hpp"

#include <CLI/CLI.hpp>

namespace holdfast::cli {

Action webhook_verb(CLI::App& command) {
  Group group(command);
  operation_verb(group, "add", "setWebhook",
                 "holdfast webhook add ops https://hooks.example.net/holdfast --on snapshot.failed,worker.lapsed");
  list_verb_of(group, "webhook");
  for (const char* const verb : {"pause", "resume", "retry", "test", "remove"})
    operation_verb(group, verb, std::string(verb) + "Webhook", std::string("holdfast webhook ") + verb + " ops");
  return group.action();
}

} // namespace holdfast::cli
