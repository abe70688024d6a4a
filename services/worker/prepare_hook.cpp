#include "services/worker/prepare_hook.hpp"

#include "lib/base/metrics.hpp"
#include "lib/base/uuid.hpp"

#include <nlohmann/json.hpp>

namespace holdfast::worker {

PreparedHook prepare_hook(const JobContext& context, const hooks::Hook& hook, hooks::Options options,
                          const hooks::HookContext& hook_context) {
  const auto& catalog = *context.options.catalog;
  PreparedHook prepared;
  for (const auto& [key, value] : context.binaries.machine_options()) {
    const auto given = options.find(key);
    // A path that does not hold here gives way to one that does; anything else was said on purpose.
    const bool program = key.ends_with("_BINARY");
    if (given == options.end() ||
        (program && !context.binaries.locate(given->second) && context.binaries.locate(value)))
      options[key] = value;
  }
  const auto resolved = hooks::resolve_options(catalog, *hook.plugin, options);
  if (const auto missing = context.binaries.missing(*hook.plugin, resolved)) {
    prepared.missing = *missing;
    return prepared;
  }
  for (const auto& [key, value] : resolved)
    if (key.size() > 7 && key.ends_with("_BINARY") && !value.empty())
      if (const auto path = context.binaries.locate(value)) options[key] = *path;

  auto inherited = hooks::inherited_environment(context.options.environment_names);
  std::string first;
  for (const auto& directory : context.options.program_directories)
    first += directory.string() + ":";
  if (auto& path = inherited["PATH"]; !first.empty())
    path = first + (path.empty() ? "/usr/local/bin:/usr/bin:/bin" : path);
  prepared.command.argv = hooks::hook_arguments(hook, hook_context);
  prepared.command.environment = hooks::hook_environment(catalog, hook, options, hook_context, inherited);
  prepared.command.subject = {hook_context.crawl_id, hook_context.snapshot_id, 0, hook.plugin->name, hook.name.name};
  prepared.command.cookie = "HOLDFAST_COOKIE=" + context.cookie + "." + base::random_hex32();
  prepared.limits = context.options.hook_limits;
  prepared.limits.timeout = hooks::hook_timeout(*hook.plugin, options);
  if (const auto stall = hooks::stall_timeout(*hook.plugin, options)) prepared.limits.stall = *stall;
  prepared.limits.kill_grace = context.options.kill_grace;
  return prepared;
}

nlohmann::json result_columns(const hooks::HookOutcome& outcome) {
  const auto& exit = outcome.exit;
  nlohmann::json columns = {{"output", outcome.output},
                            {"wall_ms", exit.wall_time.count()},
                            {"user_ms", exit.usage.user_time.count() / 1000},
                            {"system_ms", exit.usage.system_time.count() / 1000},
                            {"peak_memory_bytes", exit.usage.peak_memory_bytes},
                            {"read_bytes", exit.usage.read_blocks * 512},
                            {"written_bytes", exit.usage.written_blocks * 512}};
  columns["error"] = outcome.error.empty() && outcome.status == hooks::Status::failed ? exit.describe() : outcome.error;
  if (exit.signal != 0)
    columns["exit_signal"] = exit.signal;
  else if (exit.start_errno == 0)
    columns["exit_code"] = exit.code;
  return columns;
}

void count_hook(const std::string& plugin, const hooks::HookOutcome& outcome) {
  base::count("holdfast_node_hooks_total",
              {{"plugin", plugin}, {"outcome", std::string(hooks::to_string(outcome.status))}});
  base::observe("holdfast_node_hook_duration_seconds", {{"plugin", plugin}},
                std::chrono::duration<double>(outcome.exit.wall_time).count());
  base::observe("holdfast_node_hook_memory_max_bytes", {{"plugin", plugin}},
                static_cast<double>(outcome.exit.usage.peak_memory_bytes));
}

std::string to_text(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

} // namespace holdfast::worker
