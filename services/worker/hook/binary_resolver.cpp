#include "services/worker/hook/binary_resolver.hpp"

#include "lib/archive/attempt.hpp"
#include "lib/base/file.hpp"
#include "lib/base/log.hpp"
#include "lib/base/uuid.hpp"
#include "lib/hooks/binary.hpp"
#include "lib/store/call.hpp"
#include "services/worker/hook/prepare_hook.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace holdfast::worker {

namespace {

constexpr std::chrono::seconds kFirst{1}; // a worker that is there for one page has other things to do
constexpr std::chrono::seconds kReportEvery{60};
constexpr std::chrono::seconds kProbe{10};
constexpr std::chrono::minutes kInstall{5}; // at least, for a hook that installs
constexpr std::chrono::minutes kClaimLength{10};
constexpr int kAtOnce = 4;

// While these are the same the file is; empty if there is none.
std::string fingerprint_of(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return {};
  return std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino) + ":" + std::to_string(status.st_size) +
         ":" + std::to_string(status.st_mtim.tv_sec) + "." + std::to_string(status.st_mtim.tv_nsec) + ":" +
         std::to_string(status.st_ctim.tv_sec) + "." + std::to_string(status.st_ctim.tv_nsec);
}

} // namespace

awaitable<std::string> binary_output(process::Launcher& launcher, std::vector<std::string> argv,
                                     std::filesystem::path scratch, std::string cookie,
                                     std::shared_ptr<process::Child>& running) {
  const auto file = scratch / ("version." + base::random_hex32());
  const char* search_path = std::getenv("PATH");
  process::Command command;
  command.argv = std::move(argv);
  command.environment = {std::string("PATH=") + (search_path != nullptr ? search_path : "/usr/bin:/bin"),
                         "LANG=C.UTF-8", "HOME=" + scratch.string(), "TMPDIR=" + scratch.string()};
  command.directory = scratch;
  command.stdout_path = command.stderr_path = file;
  command.limits.file_bytes = 1u << 20;
  command.cookie = std::move(cookie);
  const std::shared_ptr<process::Child> child = launcher.start(command);
  running = child;
  asio::steady_timer limit(co_await asio::this_coro::executor, kProbe);
  limit.async_wait([child](const boost::system::error_code& error) {
    if (!error) child->kill();
  });
  const auto exit = co_await child->wait();
  limit.cancel();
  running.reset();
  const std::string text = base::read_file(file, 4096);
  std::error_code ignored;
  std::filesystem::remove(file, ignored);
  co_return exit.clean() ? text : std::string();
}

BinaryResolver::BinaryResolver(HookServices& context)
    : context_(context), sleeper_(context.executor), looked_(context.executor) {
  looked_.expires_at(std::chrono::steady_clock::time_point::max());
}

BinaryResolver::~BinaryResolver() = default;

void BinaryResolver::stop() {
  sleeper_.stop();
  if (probe_) probe_->kill();
  if (installer_ != nullptr) installer_->kill();
  looked_.cancel();
}

bool BinaryResolver::can_install() const {
  for (const auto& [name, plugin] : context_.options.plugin_set->plugins())
    for (const auto& hook : plugin.hooks)
      if (hook.name.event == hooks::Event::binary) return true;
  return false;
}

void BinaryResolver::also(const std::vector<std::string>& plugins, const hooks::Options& options) {
  const auto enabled = hooks::selected_plugins(*context_.options.plugin_set, {}, context_.options.hook_options);
  for (const auto& name : plugins) {
    if (std::find(enabled.begin(), enabled.end(), name) != enabled.end() || !asked_.try_emplace(name, options).second)
      continue;
    told_ = false;
    if (looking_) sleeper_.wake();
  }
}

// Returns the binaries that the enabled plugins and those of crawls require, by name; those that no environment
// provides only if a hook could install them.
std::string BinaryResolver::wanted() const {
  const auto& plugin_set = *context_.options.plugin_set;
  std::map<std::string, const hooks::Options*> plugins;
  for (const auto& name : hooks::selected_plugins(plugin_set, {}, context_.options.hook_options))
    plugins[name] = &context_.options.hook_options;
  for (const auto& [name, options] : asked_)
    plugins[name] = &options;
  std::map<std::string, nlohmann::json> binaries;
  for (const auto& [name, options] : plugins) {
    const auto& plugin = *plugin_set.find(name);
    hooks::Options resolved;
    try {
      resolved = hooks::resolve_options(plugin_set, plugin, *options);
    } catch (const base::Error& error) {
      const base::LogAbout about({"", "", 0, name, ""});
      spdlog::debug("binaries of plugin {}: {}", name, error.what());
      continue;
    }
    for (const auto& binary : hooks::wanted_binaries(plugin, resolved)) {
      if (!binary.from_environment && !can_install()) continue;
      auto& entry = binaries[binary.name];
      if (entry.is_null())
        entry = {{"name", binary.name},
                 {"providers", binary.providers},
                 {"overrides", binary.overrides},
                 {"plugins", nlohmann::json::array()}};
      entry["plugins"].push_back(name);
    }
  }
  nlohmann::json list = nlohmann::json::array();
  for (auto& [name, entry] : binaries)
    list.push_back(std::move(entry));
  return store::json_text(list);
}

awaitable<void> BinaryResolver::run() {
  co_await sleeper_.sleep(kFirst);
  looking_ = true;
  while (!sleeper_.stopped()) {
    try {
      if (!std::exchange(told_, true)) {
        const std::string text = wanted();
        if (text != "[]") co_await context_.retry.repeat("binary_want", context_.worker_id, text);
      }
      while (!sleeper_.stopped()) {
        const auto claims = co_await context_.retry.once(&store::binary_claim, context_.worker_id, kAtOnce);
        if (claims.empty()) break;
        for (const auto& claim : claims)
          if (!sleeper_.stopped()) co_await look_for(claim);
      }
    } catch (const std::exception& error) {
      spdlog::debug("looking for binaries: {}", error.what()); // a lost lease is told elsewhere, and stops us
      told_ = false;
    }
    co_await sleeper_.sleep(kReportEvery);
  }
}

awaitable<void> BinaryResolver::look_for(store::BinaryClaim claim) {
  store::BinaryFound found;
  found.provider = "env";
  auto path = context_.binaries.locate_now(claim.name);
  if (!path && can_install()) {
    const auto installed = co_await install(claim, found.provider, found.error);
    if (sleeper_.stopped()) co_return; // the claim runs out, or ends with us
    if (!installed.empty()) path = installed;
  }
  if (path) {
    found.path = *path;
    found.fingerprint = fingerprint_of(found.path);
    if (found.path == claim.path && found.fingerprint == claim.fingerprint && !claim.sha256.empty()) {
      found.version = claim.version;
      found.sha256 = claim.sha256;
    } else {
      std::vector<std::string> argv{found.path, "--version"};
      found.version = hooks::version_in(
          co_await binary_output(context_.launcher, std::move(argv), context_.options.work_dir / "tmp",
                                 "HOLDFAST_COOKIE=" + context_.worker_id + "." + base::random_hex32(), probe_));
      if (sleeper_.stopped()) co_return;
      found.sha256 = co_await base::on_thread(context_.files, [&] { return archive::sha256_file(found.path); });
    }
  } else if (found.error.empty()) {
    found.error = "not found on PATH nor in binaries.path";
  }
  co_await context_.retry.repeat(&store::binary_set, context_.worker_id, claim, found);
  ++looks_[claim.name];
  looked_.cancel();
  if (found.path.empty())
    spdlog::debug("binary {}: {}", claim.name, found.error);
  else if (found.path != claim.path)
    spdlog::info("found binary {} {} at {}", claim.name, found.version, found.path);
}

// Runs hooks that install, in their order, until one reports the place of the binary, and it is there.
awaitable<std::string> BinaryResolver::install(const store::BinaryClaim& claim, std::string& provider,
                                               std::string& problem) {
  const auto& plugin_set = *context_.options.plugin_set;
  const auto& options = context_.options;
  const auto directory = options.work_dir / "tmp" / ("install." + base::random_hex32());
  hooks::HookContext where;
  where.data_dir = options.data_dir;
  where.crawl_dir = where.snapshot_dir = directory;
  where.temporary_dir = options.temporary_dir;
  where.library_dir = options.data_dir / "lib";
  where.last_on_path = options.last_on_path();
  where.machine_id = process::machine_id(options.data_dir / "machine-id");
  const auto plugins = hooks::selected_plugins(plugin_set, {}, options.hook_options);
  std::string path;
  for (const hooks::Hook* hook : plugin_set.hooks_for(hooks::Event::binary, plugins)) {
    auto prepared = prepare_hook(context_, *hook, options.hook_options, where);
    if (!prepared.missing.empty()) continue;
    auto& arguments = prepared.command.argv;
    for (const auto& [name, value] : {std::pair<const char*, std::string>{"--binary-id=", claim.id},
                                      {"--machine-id=", where.machine_id},
                                      {"--name=", claim.name},
                                      {"--binproviders=", claim.providers.empty() ? "env" : claim.providers},
                                      {"--overrides=", claim.overrides.empty() ? "{}" : claim.overrides}})
      arguments.push_back(name + value);
    prepared.limits.timeout = std::max<std::chrono::milliseconds>(prepared.limits.timeout, kInstall);
    hooks::HookRun run(context_.launcher, context_.executor, std::move(prepared.command), *hook,
                       directory / hook->plugin->name, prepared.limits);
    run.start();
    installer_ = &run;
    const auto outcome = co_await run.finish();
    installer_ = nullptr;
    if (sleeper_.stopped()) break;
    if (outcome.status == hooks::Status::failed)
      problem = hook->plugin->name + "/" + hook->name.name + ": " + outcome.error;
    hooks::Options machine;
    for (const auto& record : outcome.machine_records)
      for (const auto& [key, value] : record.config)
        machine[key] = value;
    if (!machine.empty()) co_await keep(machine);
    for (const auto& record : outcome.binaries)
      if (record.name == claim.name && hooks::is_executable(record.path)) {
        path = std::filesystem::absolute(record.path).string();
        provider = record.provider.empty() ? "env" : record.provider;
        context_.binaries.remember(claim.name, path);
      }
    if (!path.empty()) break;
  }
  co_await base::on_thread(context_.files, [&] {
    std::error_code ignored;
    std::filesystem::remove_all(directory, ignored);
  });
  if (path.empty() && problem.empty()) problem = "not found, and no on_Binary hook could install it";
  co_return path;
}

awaitable<void> BinaryResolver::keep(hooks::Options options) {
  context_.binaries.add_machine_options(options);
  const std::string text = store::json_text(nlohmann::json(options));
  co_await context_.retry.repeat("machine_set_options", context_.worker_id, text);
}

awaitable<void> BinaryResolver::provide(std::vector<hooks::BinaryRecord> records, std::string plugin) {
  nlohmann::json list = nlohmann::json::array();
  std::map<std::string, int> before;
  for (const auto& record : records) {
    if (!record.path.empty() && hooks::is_executable(record.path)) context_.binaries.remember(record.name, record.path);
    // In these records the word for "from where" is the same as for "where from".
    list.push_back(
        {{"name", record.name}, {"providers", record.provider}, {"plugins", nlohmann::json::array({plugin})}});
    before[record.name] = looks_[record.name];
  }
  const std::string text = store::json_text(list);
  const auto added = co_await context_.retry.repeat("binary_want", context_.worker_id, text);
  if (added.value().as<int>() == 0 || sleeper_.stopped()) co_return;
  sleeper_.wake();
  const auto deadline = std::chrono::steady_clock::now() + kClaimLength;
  asio::steady_timer limit(context_.executor, deadline);
  limit.async_wait([this](const boost::system::error_code& error) {
    if (!error) looked_.cancel();
  });
  for (const auto& [name, count] : before)
    while (!sleeper_.stopped() && looks_[name] == count && !context_.binaries.locate(name) &&
           std::chrono::steady_clock::now() < deadline)
      co_await looked_.async_wait(asio::as_tuple(asio::use_awaitable));
}

} // namespace holdfast::worker
