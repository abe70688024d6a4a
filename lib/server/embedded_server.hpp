#pragma once
// The embedded PostgreSQL, for users without a database: initdb into <data_dir>/postgres, a Unix socket only, in a
// directory that is closed to other users. The role of the program is no superuser. It is the same PostgreSQL, run by
// the server programs of the system. Several holdfast processes of one data directory share the server: each holds a
// shared lock on <data_dir>/postgres.users; the last one to leave stops it (fast shutdown). Blocking; one thread.
//
// When the caller is root the server runs as the owner of the data directory if that is not root, else as the system
// user "postgres" if there is one, else "nobody": PostgreSQL refuses to run as root.

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::server {

class EmbeddedServer {
public:
  struct Options {
    // false: no fsync. A crash of the machine may destroy the data, a crash of the server does not; for tests only.
    bool durable{true};
    // Directories of the server programs; empty: $PATH, `pg_config --bindir`, the usual places of packages.
    std::vector<std::filesystem::path> program_directories{};
  };

  // Starts the server, or joins the one that runs already. Recovers by itself from a `kill -9` of the server or of us
  // (stale postmaster.pid, stale socket, unfinished initdb). Errors: unavailable if initdb/postgres are not found (the
  // hint names the Debian package) or the server ends at once, cannot_create if the directory cannot be written or the
  // disk is full, schema_mismatch if the data were written by another major version (the message names both, the hint
  // pg_upgrade), temporary if it does not become ready within 60 s (the message quotes the last lines of its log).
  static std::unique_ptr<EmbeddedServer> start(const std::filesystem::path& data_dir, const Options& options);
  static std::unique_ptr<EmbeddedServer> start(const std::filesystem::path& data_dir) { return start(data_dir, {}); }

  // The process of the server, for holdfast-guard: "PID START", written when it is started.
  static std::filesystem::path process_file(const std::filesystem::path& data_dir);
  // Stops the server of a data directory if no process uses it, starts it or stops it: when its last user was killed.
  static void stop_unused(const std::filesystem::path& data_dir);

  // Leaves; stops the server if no other process uses it. Waits at most 30 s, then an immediate shutdown.
  ~EmbeddedServer();
  EmbeddedServer(const EmbeddedServer&) = delete;
  EmbeddedServer& operator=(const EmbeddedServer&) = delete;

  const std::string& dsn() const noexcept; // "host=/.../postgres-run port=5432 dbname=holdfast user=holdfast"

private:
  EmbeddedServer();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace holdfast::server
