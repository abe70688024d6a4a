#pragma once
// A worker's directory for work in progress: <work_dir>/workers/<incarnation>/, with a file that names its owner.
// Blocking file work. Owned by Worker; the destructor removes the directory.

#include "lib/store/worker.hpp"
#include "services/worker/options.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace holdfast::worker {

// Throws Error(cannot_create) for a file or directory of work_dir.
[[noreturn]] void throw_cannot_create(const std::filesystem::path& path, const std::string& why);

// The end of an id, for names in paths that must be short.
std::string short_id(const std::string& id);

// Makes and removes files and directories as an attempt does: neither the free bytes nor access(2) know of inodes,
// quotas and file systems that became read-only. Throws Error(cannot_create).
void probe_work_dir(const std::filesystem::path& work_dir);

class Scratch {
public:
  // Throws Error(cannot_create) if it cannot be made, naming the directory and the reason.
  Scratch(const std::filesystem::path& work_dir, const std::string& worker_id);
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const std::filesystem::path& path() const noexcept { return path_; }
  // TMPDIR of hooks. Short, because programs put sockets there, whose paths may have 107 characters: where the
  // directory itself is deep, a link to it in the system's own.
  const std::filesystem::path& temporary() const noexcept { return temporary_; }
  // Bytes free for us on its file system.
  std::uint64_t free_bytes() const;

private:
  std::filesystem::path path_, temporary_;
};

// Ends the processes and removes the directories of dead incarnations on this machine. Returns these incarnations: none
// of their processes runs any more, so their leases may end (store::process_gone). Those without a readable owner in
// their directory are left out.
std::vector<store::LocalProcess> collect_leftovers(const Options& options, const std::string& machine_id);

} // namespace holdfast::worker
