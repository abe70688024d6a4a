#pragma once
// The running server of one cluster, as its postmaster.pid tells and /proc confirms: a recycled pid does not count.
// Private to lib/server; blocking.

#include "lib/base/file.hpp"

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

namespace holdfast::server {

class Postmaster {
public:
  // Nothing if no server of this cluster runs (here: a server in another pid namespace cannot be seen).
  static std::optional<Postmaster> find(const std::filesystem::path& cluster);

  // Where it listens; empty as long as it has not said so.
  const std::string& socket_directory() const noexcept { return socket_directory_; }

  // Fast shutdown; an immediate one after `timeout`. False if it still runs 10 s after that.
  bool stop(std::chrono::milliseconds timeout);

private:
  Postmaster() = default;
  base::Fd process_; // a pidfd: signals go to this process and to no other
  std::string socket_directory_;
};

// postmaster.pid names a process that is not the server, but alive: PostgreSQL itself would believe it and refuse to
// start, so it is removed. Only for the holder of the start lock, and only when find() found nothing.
void remove_stale_pid_file(const std::filesystem::path& cluster);

} // namespace holdfast::server
