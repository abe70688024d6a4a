#include "services/worker/hook/browser_watch.hpp"

#include "lib/base/coroutine.hpp"
#include "lib/base/metrics.hpp"
#include "lib/hooks/environment.hpp"
#include "lib/store/call.hpp"
#include "lib/store/worker.hpp"
#include "services/worker/hook/capabilities.hpp"

#include <spdlog/spdlog.h>

namespace holdfast::worker {

namespace {

constexpr std::chrono::minutes kTryAgain{1};

} // namespace

BrowserWatch::BrowserWatch(HookServices& context, const SandboxState& sandbox)
    : context_(context), sandbox_(sandbox), sleeper_(context.executor) {}

awaitable<void> BrowserWatch::run(bool at_once) {
  for (bool now = at_once; !sleeper_.stopped(); now = true) {
    if (now) co_await look();
    co_await sleeper_.sleep(state_.starts ? base::Sleeper::kUntilWoken : kTryAgain);
  }
}

awaitable<void> BrowserWatch::look() {
  const auto& catalog = *context_.options.catalog;
  const auto* const plugin = catalog.find(kBrowserPlugin);
  if (plugin == nullptr) co_return;
  const auto resolved = hooks::resolve_options(catalog, *plugin, context_.options.hook_options);
  const auto name = resolved.find("BROWSER_BINARY");
  const auto program = name == resolved.end() ? std::nullopt : context_.binaries.locate(name->second);
  if (!program) co_return; // its hooks are skipped, and say so
  const auto place = context_.options.work_dir / "tmp" / "browser";
  const auto attempt = [&] { return try_browser(context_.options, sandbox_, *program, place); };
  auto found = co_await base::on_thread(context_.resolver, attempt);
  std::error_code ignored;
  std::filesystem::remove_all(place, ignored);
  if (!found.starts) base::count("holdfast_worker_browser_failures_total");
  if (found.starts == state_.starts && found.description == state_.description) co_return;
  state_ = std::move(found);
  if (state_.starts)
    spdlog::info("browser of hooks: {}", state_.description);
  else
    spdlog::warn("browser does not start: {}; this worker skips crawls that need it", state_.description);
  co_await tell();
}

awaitable<void> BrowserWatch::tell() {
  const auto capabilities = capabilities_json(context_.options, state_);
  try {
    co_await context_.retry.repeat(
        [&](pg::Connection& connection) { store::call(connection, "worker_able", context_.worker_id, capabilities); });
  } catch (const base::Error& error) {
    spdlog::debug("could not report the browser: {}", error.what());
  }
}

} // namespace holdfast::worker
