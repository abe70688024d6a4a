#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/text/time.hpp"
#include "lib/store/account.hpp"
#include "lib/store/call.hpp"
#include "lib/store/token.hpp"
#include "services/cli/command/verbs.hpp"
#include "services/cli/control/operate.hpp"
#include "services/cli/look/list.hpp"
#include "services/cli/terminal/output.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <termios.h>
#include <unistd.h>

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

void add_role(CLI::App& command, std::string& role) {
  command.add_option("--role", role, "reader, or operator, which may also add and change (reader)")
      ->check(CLI::IsMember({"reader", "operator"}));
}

// Reads the first line of a file; without one, that of the terminal, where it is not shown, or of a pipe.
std::string read_password(const std::string& file, const std::string& name) {
  std::string password;
  if (!file.empty()) {
    password = base::secret_text(file, "--password-file");
    return password.substr(0, password.find_first_of("\r\n"));
  }
  termios shown{};
  const bool terminal = tcgetattr(STDIN_FILENO, &shown) == 0;
  if (terminal) {
    auto hidden = shown;
    hidden.c_lflag &= ~static_cast<tcflag_t>(ECHO | ISIG); // a signal would leave the terminal so
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &hidden);
    std::cerr << "Password of " << name << ", at least 10 letters: " << std::flush;
  }
  std::getline(std::cin, password);
  if (terminal) {
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &shown);
    std::cerr << std::endl;
  }
  return password;
}

} // namespace

Action account_verb(CLI::App& command) {
  const auto options = std::make_shared<TokenOptions>();
  const auto file = std::make_shared<std::string>();
  Group group(command);
  group.verb("add", "Add an account, or give one another password and role; its sessions end then",
             "holdfast account add anna --role operator\n"
             "holdfast account add bert --password-file bert.password",
             [&](CLI::App& add) {
               add.add_option("name", options->name, "Its name: lower case letters, digits, . _ @ -")->required();
               add_role(add, options->role);
               add.add_option("--password-file", *file, "File whose first line is the password (default: asks for it)");
               return [options, file](Context& context) {
                 store::account_set(context.connection(true), options->name, options->role,
                                    read_password(*file, options->name), user_name());
                 print_change(context, "add", "account", options->name, true);
                 return base::kExitSuccess;
               };
             });
  list_verb_of(group, "account");
  group.verb("remove", "Remove an account with its sessions and tokens", "holdfast account remove anna",
             [&](CLI::App& remove) {
               remove.add_option("name", options->name, "Its name")->required();
               return [options](Context& context) {
                 print_change(
                     context, "remove", "account", options->name,
                     store::call_for<bool>(context.connection(), "account_remove", options->name, user_name()));
                 return base::kExitSuccess;
               };
             });
  return group.action();
}

Action token_verb(CLI::App& command) {
  const auto options = std::make_shared<TokenOptions>();
  Group group(command);
  group.verb("add", "Make a token and print it, once",
             "holdfast token add anna --role operator --expires 90d\n"
             "holdfast token add grafana",
             [&](CLI::App& add) {
               add.add_option("name", options->name, "Its name: lower case letters, digits, . _ -")->required();
               add_role(add, options->role);
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
