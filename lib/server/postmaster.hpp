#pragma once
// The running server of one cluster, from its postmaster.pid and confirmed by /proc: a recycled pid does not count.
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
  // Finds the server of this cluster; nothing if none runs (a server in another pid namespace cannot be seen).
  static std::optional<Postmaster> find(const std::filesystem::path& cluster);

  // Returns the directory of its socket; empty until the server has written it.
  const std::string& socket_directory() const noexcept { return socket_directory_; }

  // Stops it by a fast shutdown; an immediate one after `timeout`. Returns false if it still runs 10 s after that.
  bool stop(std::chrono::milliseconds timeout);

private:
  Postmaster() = default;
  base::Fd process_; // a pidfd: signals go to this process and to no other
  std::string socket_directory_;
};

// Removes a postmaster.pid that names a live process that is not the server: PostgreSQL itself would believe it and
// refuse to start. Only for the holder of the start lock, and only when find() found nothing.
void remove_stale_pid_file(const std::filesystem::path& cluster);

} // namespace holdfast::server
