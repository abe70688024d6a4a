#pragma once
// The running server of one cluster, from its postmaster.pid and confirmed by /proc: a recycled pid does not count.
// Private to lib/server; blocking.

#include "lib/base/file.hpp"

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

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

// Starts the server programs of PostgreSQL, as another user when we are root. Private to this module. Blocking; the
// calling thread must live as long as a program that run_to_end() waits for.

// User of the server. PostgreSQL refuses to run as root.
struct User {
  uid_t uid;
  gid_t gid;
  std::string name;
};

struct Launch {
  std::filesystem::path program;
  std::vector<std::string> arguments; // without the program itself
  std::filesystem::path directory;    // entered after the change of user, so an error shows if it is closed to them
  int output; // descriptor for stdout and stderr; run_to_end() reads the reason of a failure there
  User user;
  int input{-1}; // descriptor for stdin; -1: /dev/null
};

// Runs to the end and returns the exit status (128 + signal if it was killed). It dies with us. Throws
// Error(unavailable) if it cannot be executed as that user, Error(cannot_create) if the user cannot enter the
// directory, and Error(temporary), after killing it, if it takes longer than `limit`.
int run_to_end(const Launch& launch, std::chrono::milliseconds limit);

// Starts a daemon: no child of ours, in a session of its own, so neither our end nor Ctrl-C touches it. If it cannot be
// executed, its output has the reason. Throws Error(system) if it cannot be started at all.
pid_t start_daemon(const Launch& launch);

// A file in memory, for the input or the output of a program. Throws Error(system).
int memory_file();
// The first 64 KiB of a file that a program has written.
std::string text_of(int file);

// Runs a program as ourselves and returns what it printed; empty if it failed or took longer than 10 s.
std::string output_of(const std::filesystem::path& program, const std::vector<std::string>& arguments);

// Finds the server programs of PostgreSQL on this machine. Private to lib/server. Runs `postgres --version` and
// `pg_config`.
struct Programs {
  std::filesystem::path directory; // holds postgres and initdb
  int major;                       // 15
};

// The directories of $PATH, `pg_config --bindir`, and where Debian and the PGDG packages put them.
std::vector<std::filesystem::path> usual_directories();

// Returns those of `directories` that hold a working postgres and initdb, each once.
std::vector<Programs> find_programs(const std::vector<std::filesystem::path>& directories);

} // namespace holdfast::server
