#include "services/worker/hook/browser_watch.hpp"

#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/metrics.hpp"
#include "lib/base/text/host.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/uuid.hpp"
#include "lib/hooks/environment.hpp"
#include "lib/member/membership.hpp"
#include "lib/process/launcher.hpp"
#include "lib/store/call.hpp"

#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdlib>

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
  const auto& plugin_set = *context_.options.plugin_set;
  const auto* const plugin = plugin_set.find(kBrowserPlugin);
  if (plugin == nullptr) co_return;
  const auto resolved = hooks::resolve_options(plugin_set, *plugin, context_.options.hook_options);
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
    co_await context_.retry.repeat("worker_able", context_.worker_id, capabilities);
  } catch (const base::Error& error) {
    spdlog::debug("could not report the browser: {}", error.what());
  }
}

namespace {

constexpr std::chrono::seconds kLongest{60};

} // namespace

std::string last_line(const std::filesystem::path& log) {
  const auto lines = base::split(base::tail_of(log, 4096), "\n");
  return lines.empty() ? std::string() : lines.back();
}

BrowserState try_browser(const Options& options, const SandboxState& state, const std::string& program,
                         const std::filesystem::path& place) {
  const auto home = place / "home";
  // Short, because browsers put sockets there (Scratch::temporary).
  const auto shown = state.sandbox.level == process::SandboxLevel::full ? std::filesystem::path("/tmp")
                     : options.temporary_dir.empty()                    ? home
                                                     : options.temporary_dir / place.filename() / "home";
  process::Command command;
  command.argv = {process::executable_directory() / "holdfast-capture", "browser"};
  command.environment = {"PATH=/usr/bin:/bin", "BROWSER_BINARY=" + program, "HOME=" + shown.native(),
                         "TMPDIR=" + shown.native(), "CRAWL_DIR=" + home.native()};
  if (const char* own = std::getenv("CHROME_SANDBOX"))
    process::set_variable(command.environment, "CHROME_SANDBOX", own);
  command.directory = home;
  command.stdout_path = place / "stdout";
  command.stderr_path = place / "stderr";
  command.cookie = "HOLDFAST_COOKIE=doctor." + base::random_hex32();
  try {
    std::filesystem::create_directories(home);
    std::filesystem::permissions(place, std::filesystem::perms(0711)); // hooks may be another user
    const auto user = state.users.lease();
    command.sandbox = state.with(user);
    command.sandbox.writable = {home};
    command.sandbox.temporary = home;
    give_to_hooks(command.sandbox, home);
    const bool starts = process::run_to_end(options.shim, command, kLongest).clean();
    const auto words = last_line(starts ? command.stdout_path : command.stderr_path);
    return {starts, words.empty() ? "it does not start" : words};
  } catch (const std::exception& error) {
    return {false, error.what()};
  }
}

std::string capabilities_json(const Options& options, const BrowserState& browser) {
  const auto& plugin_set = *options.plugin_set;
  const auto works = [&](const std::string& name) {
    const auto needed = plugin_set.with_required(name);
    return browser.starts || std::find(needed.begin(), needed.end(), kBrowserPlugin) == needed.end();
  };
  nlohmann::json can = {{"plugins", nlohmann::json::array()},
                        {"archive", options.archive_root.native().starts_with("s3:") ? "s3" : "directory"},
                        {"only", !options.only_crawls.empty()}}; // works on some crawls: takes no others
  for (const auto& [name, plugin] : plugin_set.plugins())
    if (plugin_set.lacking(name).empty() && works(name)) can["plugins"].push_back(name);
  for (const auto& name : hooks::selected_plugins(plugin_set, {}, options.hook_options))
    if (!works(name)) can["lacks"] = "its browser does not start (" + browser.description + ")";
  auto labels = options.labels;
  labels.push_back(base::own_host_name());
  can["persona"] = {{"keys", options.key_ring.key_ids()}, {"labels", labels}};
  if (options.key_ring.empty())
    can["persona"]["lacks"] =
        options.key_ring_problem.empty() ? "persona.key_file is not set" : options.key_ring_problem;
  if (!browser.description.empty()) can["browser"] = (browser.starts ? "" : "does not start: ") + browser.description;
  return store::json_text(can);
}

store::ProcessInfo describe_worker(const Options& options) {
  auto process = member::describe_process("worker", options.kind, options.version, options.slots, options.data_dir);
  process.parent_id = options.parent_id;
  process.capabilities_json = capabilities_json(options, {true, ""});
  return process;
}

} // namespace holdfast::worker
