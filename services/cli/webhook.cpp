#include "lib/store/webhook.hpp"

#include "lib/base/error.hpp"
#include "lib/store/view.hpp"
#include "services/cli/list.hpp"
#include "services/cli/verbs.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <iostream>
#include <memory>

namespace holdfast::cli {

namespace {

struct WebhookOptions {
  std::string name, url;
  std::vector<std::string> events;
};

int say(Context& context, const std::string& name, const std::string& state, const std::string& more = "") {
  if (context.json())
    std::cout << nlohmann::ordered_json{{"type", "Webhook"}, {"name", name}, {"state", state}}.dump() << std::endl;
  else
    std::cout << "webhook " << name << ": " << state << more << std::endl;
  return base::kExitSuccess;
}

int add_webhook(Context& context, const WebhookOptions& options) {
  const auto url = store::webhook_url(options.url, context.settings().boolean("urls.allow_private"));
  store::webhook_set(context.connection(true), options.name, url, options.events, user_name());
  return say(context, options.name, "added",
             context.settings().path("webhooks.secret_file").empty()
                 ? "\n  workers and runners send when they have a secret: webhooks.secret_file"
                 : "");
}

} // namespace

Action webhook_verb(CLI::App& command) {
  const auto options = std::make_shared<WebhookOptions>();
  Group group(command);
  group.verb("add", "Add a webhook, or change and resume one", [&](CLI::App& add) {
    add.add_option("name", options->name, "Its name: lower case letters, digits, . _ -")->required();
    add.add_option("url", options->url, "Where to send")->required();
    add.add_option("--on", options->events,
                   "Events to send: crawl.sealed, snapshot.failed, worker.lapsed (default: all)")
        ->delimiter(',')
        ->allow_extra_args(false);
    return [options](Context& context) { return add_webhook(context, *options); };
  });
  group.verb("list", "List webhooks, waiting deliveries, and the result of the last attempt", [](CLI::App&) {
    return [](Context& context) {
      ListOptions listing;
      listing.what = "webhooks";
      return list(context, listing);
    };
  });
  const auto named = [&](const char* name, const char* help, Action action) {
    group.verb(name, help, [&](CLI::App& one) {
      one.add_option("name", options->name, "Its name")->required();
      return action;
    });
  };
  named("pause", "Send nothing and record no deliveries until it is resumed", [options](Context& context) {
    store::webhook_enable(context.connection(), options->name, false, user_name());
    return say(context, options->name, "paused");
  });
  named("resume", "Go on", [options](Context& context) {
    store::webhook_enable(context.connection(), options->name, true, user_name());
    return say(context, options->name, "resumed");
  });
  named("retry", "Retry waiting and abandoned deliveries now", [options](Context& context) {
    const auto count = store::webhook_retry(context.connection(), options->name, user_name());
    return say(context, options->name, "tried again", ", " + std::to_string(count) + " of them given up before");
  });
  named("test", "Send a test delivery", [options](Context& context) {
    store::webhook_test(context.connection(), options->name, user_name());
    return say(context, options->name, "asked", "; holdfast list deliveries shows what came of it");
  });
  named("remove", "Delete the webhook and its waiting deliveries", [options](Context& context) {
    store::webhook_remove(context.connection(), options->name);
    return say(context, options->name, "removed");
  });
  return group.action();
}

} // namespace holdfast::cli
