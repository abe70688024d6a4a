#pragma once
// Finds the server programs of PostgreSQL on this machine. Private to lib/server. Runs `postgres --version` and
// `pg_config`.

#include <filesystem>
#include <string>
#include <vector>

namespace holdfast::server {

struct Programs {
  std::filesystem::path directory; // holds postgres and initdb
  int major;                       // 15
};

// The directories of $PATH, `pg_config --bindir`, and where Debian and the PGDG packages put them.
std::vector<std::filesystem::path> usual_directories();

// Returns those of `directories` that hold a working postgres and initdb, each once.
std::vector<Programs> find_programs(const std::vector<std::filesystem::path>& directories);

} // namespace holdfast::server
