#include "services/worker/machine.hpp"

#include "lib/base/host_name.hpp"
#include "lib/base/uuid.hpp"
#include "lib/hooks/environment.hpp"
#include "lib/process/launcher.hpp"
#include "lib/store/json.hpp"

#include <nlohmann/json.hpp>

#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

namespace holdfast::worker {

std::string capabilities_json(const Options& options, const BrowserState& browser) {
  const auto& catalog = *options.catalog;
  const auto works = [&](const std::string& name) {
    const auto needed = catalog.with_required(name);
    return browser.starts || std::find(needed.begin(), needed.end(), kBrowserPlugin) == needed.end();
  };
  nlohmann::json can = {{"plugins", nlohmann::json::array()},
                        {"archive", options.archive_root.native().starts_with("s3:") ? "s3" : "directory"},
                        {"only", !options.only_crawls.empty()}}; // works on some crawls: takes no others
  for (const auto& [name, plugin] : catalog.plugins())
    if (catalog.lacking(name).empty() && works(name)) can["plugins"].push_back(name);
  for (const auto& name : hooks::selected_plugins(catalog, "", options.hook_options))
    if (!works(name)) can["lacks"] = "its browser does not start (" + browser.description + ")";
  auto labels = options.labels;
  labels.push_back(base::own_host_name());
  can["persona"] = {{"keys", options.vault.key_ids()}, {"labels", labels}};
  if (options.vault.empty())
    can["persona"]["lacks"] = options.vault_problem.empty() ? "persona.key_file is not set" : options.vault_problem;
  if (!browser.description.empty()) can["browser"] = (browser.starts ? "" : "does not start: ") + browser.description;
  return store::json_text(can);
}

store::ProcessInfo describe_process(const std::string& process_type, const std::string& worker_type,
                                    const std::string& version, int slots, const std::filesystem::path& keep_in) {
  store::ProcessInfo process;
  process.id = base::new_uuid();
  std::error_code ignored; // where it cannot be made, machine_id() says so, if it needs it
  if (!keep_in.empty()) std::filesystem::create_directories(keep_in, ignored);
  process.machine.id = process::machine_id(keep_in.empty() ? keep_in : keep_in / "machine-id");
  utsname names{};
  if (uname(&names) == 0) {
    process.machine.hostname = names.nodename;
    process.machine.os = std::string(names.sysname) + " " + names.release;
    process.machine.architecture = names.machine;
  }
  process.machine.cpu_count = static_cast<int>(std::thread::hardware_concurrency());
  struct sysinfo memory {};
  if (sysinfo(&memory) == 0)
    process.machine.memory_bytes =
        static_cast<std::int64_t>(memory.totalram) * static_cast<std::int64_t>(memory.mem_unit);
  process.boot_id = process::boot_id();
  process.pid_namespace = process::pid_namespace_id();
  process.pid = getpid();
  process.start_ticks = process::process_start_ticks(getpid());
  process.process_type = process_type;
  process.worker_type = worker_type;
  process.label = process_type + " on " + process.machine.hostname + " pid " + std::to_string(process.pid);
  process.version = version;
  process.slots = slots;
  return process;
}

store::ProcessInfo describe_worker(const Options& options) {
  auto process = describe_process("worker", options.kind, options.version, options.slots, options.data_dir);
  process.parent_id = options.parent_id;
  process.capabilities_json = capabilities_json(options, {true, ""});
  return process;
}

} // namespace holdfast::worker
