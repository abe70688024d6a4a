#include "services/worker/page/hook_choice.hpp"

#include "lib/base/error.hpp"
#include "lib/base/text/text.hpp"
#include "lib/hooks/environment.hpp"
#include "services/worker/turn/failure.hpp"

#include <algorithm>

namespace holdfast::worker {

void require_plugins(const HookServices& context, const store::Claim& claim) {
  const auto& plugin_set = *context.options.plugin_set;
  std::string lacking;
  for (const auto& name : claim.plugins)
    if (lacking.empty()) lacking = plugin_set.lacking(name);
  if (!lacking.empty())
    throw Failure{Failure::Kind::no_plugin, "the worker on " + context.hostname + " has no plugin \"" + lacking + "\""};
  if (!claim.plugins.empty()) return;
  const auto selected = hooks::selected_plugins(plugin_set, {}, context.options.hook_options);
  if (plugin_set.hooks_for(hooks::Event::snapshot, selected).empty())
    throw Failure{Failure::Kind::no_plugin,
                  "the worker on " + context.hostname + " has no plugin with a hook for snapshots that is enabled"};
}

HookChoice choose_hooks(const HookServices& context, const store::Claim& claim, const hooks::Options& options) {
  const auto& plugin_set = *context.options.plugin_set;
  HookChoice choice;
  auto selected = hooks::selected_plugins(plugin_set, claim.plugins, options);
  if (!claim.archived.empty()) {
    auto missing = hooks::missing_plugins(plugin_set, selected, claim.archived);
    // When it was added, more plugins were selected than this worker has. Without any hook here the page has not
    // failed.
    if (missing.empty())
      throw Failure{Failure::Kind::refused, "all that this worker can run of it is archived already"};
    std::vector<std::string> left_out;
    for (const hooks::Hook* hook : plugin_set.hooks_for(hooks::Event::snapshot, selected))
      if (const auto& name = hook->plugin->name; std::find(missing.begin(), missing.end(), name) == missing.end() &&
                                                 std::find(left_out.begin(), left_out.end(), name) == left_out.end())
        left_out.push_back(name);
    if (!left_out.empty()) choice.reason = "only what was missing; archived before: " + base::join(left_out, ", ");
    selected = std::move(missing);
  }
  choice.crawl_hooks = !plugin_set.hooks_for(hooks::Event::crawl_setup, selected).empty();
  choice.hooks = plugin_set.hooks_for(hooks::Event::snapshot, selected);
  if (choice.hooks.empty())
    throw base::Error(base::ErrorClass::configuration, "no plugin with a hook for snapshots is enabled for this crawl",
                      "name plugins that have one, or leave out the option that disables them: holdfast config");
  return choice;
}

} // namespace holdfast::worker
