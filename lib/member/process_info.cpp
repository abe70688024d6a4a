#include "lib/member/process_info.hpp"

#include "lib/base/uuid.hpp"
#include "lib/process/launcher.hpp"

#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <thread>

namespace holdfast::member {

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

} // namespace holdfast::member
