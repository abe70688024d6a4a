#include "lib/base/error.hpp"
#include "lib/base/text/time.hpp"
#include "lib/store/call.hpp"
#include "lib/store/token.hpp"
#include "services/cli/command/verbs.hpp"
#include "services/cli/control/operate.hpp"
#include "services/cli/look/list.hpp"
#include "services/cli/terminal/output.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <iostream>
#include <memory>
#include <optional>

namespace holdfast::cli {

Action host_verb(CLI::App& command) {
  Group group(command);
  operation_verb(group, "set", "setHost", "holdfast host set example.org --delay 5s --parallel 1");
  operation_verb(group, "forget", "forgetHost", "holdfast host forget example.org");
  list_verb_of(group, "host");
  return group.action();
}

Action webhook_verb(CLI::App& command) {
  Group group(command);
  operation_verb(group, "add", "setWebhook",
                 "holdfast webhook add ops https://hooks.example.net/holdfast --on snapshot.failed,worker.lapsed");
  list_verb_of(group, "webhook");
  for (const char* const verb : {"pause", "resume", "retry", "test", "remove"})
    operation_verb(group, verb, std::string(verb) + "Webhook", std::string("holdfast webhook ") + verb + " ops");
  return group.action();
}

namespace {

struct TokenOptions {
  std::string name, role{"reader"}, expires;
};

int add_token(Context& context, const TokenOptions& options) {
  std::optional<std::chrono::milliseconds> keep;
  if (!options.expires.empty()) keep = base::parse_duration(options.expires);
  const auto token = store::token_add(context.connection(true), options.name, options.role, keep, user_name());
  if (context.json())
    print_record("Token", {{"name", options.name}, {"role", options.role}, {"token", token}});
  else
    std::cout << token << "\n  Copy it now. It is not stored and cannot be shown again." << std::endl;
  return base::kExitSuccess;
}

} // namespace

Action token_verb(CLI::App& command) {
  const auto options = std::make_shared<TokenOptions>();
  Group group(command);
  group.verb("add", "Make a token and print it, once",
             "holdfast token add anna --role operator --expires 90d\n"
             "holdfast token add grafana",
             [&](CLI::App& add) {
               add.add_option("name", options->name, "Its name: lower case letters, digits, . _ -")->required();
               add.add_option("--role", options->role, "reader, or operator, which may also add and change (reader)")
                   ->check(CLI::IsMember({"reader", "operator"}));
               add.add_option("--expires", options->expires,
                              "How long it is valid: 90d (default: until it is revoked)");
               return [options](Context& context) { return add_token(context, *options); };
             });
  list_verb_of(group, "token");
  group.verb("revoke", "Make a token invalid, at once", "holdfast token revoke anna", [&](CLI::App& revoke) {
    revoke.add_option("name", options->name, "Its name")->required();
    return [options](Context& context) {
      print_change(context, "revoke", "token", options->name,
                   store::call_for<int>(context.connection(), "token_revoke", options->name, user_name()) > 0);
      return base::kExitSuccess;
    };
  });
  return group.action();
}

} // namespace holdfast::cli
