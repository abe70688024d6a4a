#include "services/worker/hook/prepare_hook.hpp"

#include "lib/base/metrics.hpp"
#include "lib/base/uuid.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <utility>

namespace holdfast::worker {

hooks::HookContext machine_context(const HookServices& context) {
  hooks::HookContext hook;
  hook.data_dir = context.options.data_dir;
  hook.temporary_dir = context.sandbox.level == process::SandboxLevel::full ? "/tmp" : context.options.temporary_dir;
  hook.last_on_path = context.options.last_on_path();
  hook.machine_id = process::machine_id(context.options.data_dir / "machine-id"); // as describe_process() says it
  return hook;
}

PreparedHook prepare_hook(const HookServices& context, const hooks::Hook& hook, hooks::Options options,
                          const hooks::HookContext& hook_context) {
  const auto& plugin_set = *context.options.plugin_set;
  PreparedHook prepared;
  for (const auto& [key, value] : context.binaries.machine_options()) {
    const auto given = options.find(key);
    // A path that does not exist here is replaced by one that does; any other value was set on purpose.
    const bool binary = key.ends_with("_BINARY");
    if (given == options.end() || (binary && !context.binaries.locate(given->second) && context.binaries.locate(value)))
      options[key] = value;
  }
  const auto resolved = hooks::resolve_options(plugin_set, *hook.plugin, options);
  if (const auto missing = context.binaries.missing(*hook.plugin, resolved)) {
    prepared.missing = *missing;
    return prepared;
  }
  for (const auto& [key, value] : resolved)
    if (key.size() > 7 && key.ends_with("_BINARY") && !value.empty())
      if (const auto path = context.binaries.locate(value)) options[key] = *path;

  const auto& allowed = context.options.persona_plugins;
  if (!hook_context.persona_files.empty() &&
      std::find(allowed.begin(), allowed.end(), hook.plugin->name) != allowed.end()) {
    options["COOKIES_FILE"] = hook_context.persona_files / "cookies.txt";
    options["AUTH_STORAGE_FILE"] = hook_context.persona_files / "auth.json";
    prepared.command.sandbox.readable = {hook_context.persona_files};
    prepared.command.sandbox.writable = {hook_context.persona_files / "changes"};
  }

  auto inherited = hooks::inherited_environment(context.options.environment_names);
  std::string first;
  for (const auto& directory : context.options.binary_directories)
    first += directory.string() + ":";
  if (auto& path = inherited["PATH"]; !first.empty())
    path = first + (path.empty() ? "/usr/local/bin:/usr/bin:/bin" : path);
  prepared.command.argv = hooks::hook_arguments(hook, hook_context);
  prepared.command.environment = hooks::hook_environment(plugin_set, hook, options, hook_context, inherited);
  prepared.command.subject = {hook_context.crawl_id, hook_context.snapshot_id, 0, hook.plugin->name, hook.name.name};
  prepared.command.cookie = "HOLDFAST_COOKIE=" + context.worker_id + "." + base::random_hex32();
  prepared.limits = context.options.hook_limits;
  prepared.limits.timeout = hooks::hook_timeout(*hook.plugin, options);
  if (const auto stall = hooks::stall_timeout(*hook.plugin, options)) prepared.limits.stall = *stall;
  prepared.limits.kill_grace = context.options.kill_grace;
  return prepared;
}

void confine(const HookServices& context, const process::Sandbox& sandbox, process::Command& command,
             std::vector<std::filesystem::path> writable, const std::filesystem::path& temporary) {
  const auto own = std::exchange(command.sandbox, sandbox);
  command.sandbox.readable.insert(command.sandbox.readable.end(), own.readable.begin(), own.readable.end());
  command.sandbox.writable = std::move(writable);
  command.sandbox.writable.insert(command.sandbox.writable.end(), own.writable.begin(), own.writable.end());
  command.sandbox.temporary = temporary;
  if (sandbox.level != process::SandboxLevel::user) return;
  const auto name = context.options.temporary_dir / temporary.filename(); // which is short
  for (const char* variable : {"HOME", "TMPDIR", "TMP_DIR"})
    process::set_variable(command.environment, variable, name);
}

void take_exit(store::HookResult& row, const hooks::HookOutcome& outcome) {
  using std::chrono::duration_cast;
  using std::chrono::milliseconds;
  const auto& exit = outcome.exit;
  const auto& usage = exit.usage;
  row.cost = store::HookCost{exit.wall_time,
                             duration_cast<milliseconds>(usage.user_time),
                             duration_cast<milliseconds>(usage.system_time),
                             usage.peak_memory_bytes,
                             usage.read_blocks * 512,
                             usage.written_blocks * 512};
  if (exit.signal != 0)
    row.exit_signal = exit.signal;
  else if (exit.start_errno == 0)
    row.exit_code = exit.code;
}

nlohmann::json result_columns(const hooks::HookOutcome& outcome) {
  store::HookResult row;
  take_exit(row, outcome);
  auto columns = store::end_json(row);
  columns["output"] = outcome.output;
  const bool unexplained = outcome.error.empty() && outcome.status == hooks::Status::failed;
  columns["error"] = unexplained ? outcome.exit.describe() : outcome.error;
  return columns;
}

void count_hook(const std::string& plugin, hooks::Status status) {
  base::count("holdfast_worker_hooks_total", {{"plugin", plugin}, {"outcome", std::string(hooks::to_string(status))}});
}

void count_hook(const std::string& plugin, const hooks::HookOutcome& outcome) {
  count_hook(plugin, outcome.status);
  base::observe("holdfast_worker_hook_duration_seconds", {{"plugin", plugin}},
                std::chrono::duration<double>(outcome.exit.wall_time).count());
  base::observe("holdfast_worker_hook_memory_max_bytes", {{"plugin", plugin}},
                static_cast<double>(outcome.exit.usage.peak_memory_bytes));
}

} // namespace holdfast::worker
