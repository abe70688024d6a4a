#pragma once
// From a hook of the plugin set to a command for this machine, and from its outcome to a row. Main thread only;
// stateless.

#include "lib/hooks/hook_run.hpp"
#include "services/worker/hook/hook_services.hpp"

#include <nlohmann/json_fwd.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace holdfast::worker {

struct PreparedHook {
  std::string missing; // why it cannot run on this machine; empty: it can
  process::Command command;
  hooks::HookLimits limits;
};

// Returns the part of the context that hooks of every page and crawl on this machine share.
hooks::HookContext machine_context(const HookServices& context);

// Prepares a hook. `options`: of machine, persona, crawl and snapshot, merged. Paths of binaries are always this
// machine's. Throws Error(configuration) for a value that does not fit.
PreparedHook prepare_hook(const HookServices& context, const hooks::Hook& hook, hooks::Options options,
                          const hooks::HookContext& hook_context);

// Puts a hook into its crawl's sandbox, in which it may write to `writable` and `temporary`, and has its persona's
// files if its plugin may.
void confine(const HookServices& context, const process::Sandbox& sandbox, process::Command& command,
             std::vector<std::filesystem::path> writable, const std::filesystem::path& temporary);

// Copies the cost and the end of a finished hook into the row.
void take_exit(store::HookResult& row, const hooks::HookOutcome& outcome);
// Returns cost, end and output of a hook as columns of session_hook.
nlohmann::json result_columns(const hooks::HookOutcome& outcome);

void count_hook(const std::string& plugin, hooks::Status status);
void count_hook(const std::string& plugin, const hooks::HookOutcome& outcome);

} // namespace holdfast::worker
