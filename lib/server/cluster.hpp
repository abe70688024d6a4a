#pragma once
// Files of the embedded server: owner, creation, programs that fit them. Private to lib/server; blocking. Only for the
// holder of the start lock.

#include "lib/server/postmaster.hpp"

#include <filesystem>
#include <vector>

namespace holdfast::server {

struct Cluster {
  explicit Cluster(std::filesystem::path data_dir_in)
      : data_dir(std::move(data_dir_in)), directory(data_dir / "postgres"), log(data_dir / "postgres.log") {}

  std::filesystem::path data_dir; // canonical
  std::filesystem::path directory;
  std::filesystem::path log;
};

// The owner of an existing cluster; for a new one ourselves, or whom root steps down for. Throws Error(configuration)
// if the cluster belongs to a user that we cannot become.
User server_user(const Cluster& cluster);

// Lets the server's user pass through a data directory that is closed to them because root made it.
void open_passage(const Cluster& cluster, const User& user);

// Makes the cluster if there is none: beside its place first, then renamed, so there is never half of one. Returns the
// programs to run it with.
Programs prepare_cluster(const Cluster& cluster, const User& user,
                         const std::vector<std::filesystem::path>& program_directories, bool durable);

} // namespace holdfast::server
