#include "lib/store/token.hpp"

#include "lib/base/duration.hpp"
#include "lib/base/error.hpp"
#include "services/cli/command/verbs.hpp"
#include "services/cli/control/operate.hpp"
#include "services/cli/terminal/output.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <iostream>
#include <memory>
#include <optional>

namespace holdfast::cli {

namespace {

struct TokenOptions {
  std::string name, role{"reader"}, expires;
};

int add_token(Context& context, const TokenOptions& options) {
  std::optional<std::chrono::milliseconds> keep;
  if (!options.expires.empty()) keep = base::parse_duration(options.expires);
  const auto token = store::token_add(context.connection(true), options.name, options.role, keep, user_name());
  if (context.json())
    std::cout << nlohmann::ordered_json{{"type", "Token"},
                                        {"name", options.name},
                                        {"role", options.role},
                                        {"token", token}}
                     .dump()
              << std::endl;
  else
    std::cout << token << "\n  Copy it now. It is not stored and cannot be shown again." << std::endl;
  return base::kExitSuccess;
}

int list_tokens(Context& context) {
  const auto rows = store::tokens(context.connection());
  if (context.json())
    print_records(rows.column("json"), "Token");
  else if (rows.empty())
    std::cout << "no tokens; holdfast token add NAME makes one" << std::endl;
  else
    print_table(rows,
                {"name", "role", "state", "created_at", "created_by", "expires_at?", "revoked_at?", "revoked_by?"});
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
  group.verb("list", "Names, roles and states. The tokens themselves are not stored", "holdfast token list",
             [](CLI::App&) { return &list_tokens; });
  group.verb("revoke", "Make a token invalid, at once", "holdfast token revoke anna", [&](CLI::App& revoke) {
    revoke.add_option("name", options->name, "Its name")->required();
    return [options](Context& context) {
      print_change(context, "revoke", "token", options->name,
                   store::token_revoke(context.connection(), options->name, user_name()));
      return base::kExitSuccess;
    };
  });
  return group.action();
}

} // namespace holdfast::cli
