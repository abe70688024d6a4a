#include "lib/server/postmaster.hpp"

#include "lib/base/pidfd.hpp"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <fstream>
#include <iterator>
#include <vector>

namespace holdfast::server {
namespace {

namespace fs = std::filesystem;

// Lines of the file: pid, data directory, start time, port, socket directory, listen address, shared memory key,
// status.
constexpr std::size_t kPidLine = 0;
constexpr std::size_t kSocketDirectoryLine = 4;

std::vector<std::string> pid_file_lines(const fs::path& cluster) {
  std::ifstream file(cluster / "postmaster.pid");
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);)
    lines.push_back(std::move(line));
  return lines;
}

pid_t pid_in(const std::vector<std::string>& lines) {
  if (lines.empty()) return 0;
  const auto& line = lines[kPidLine];
  pid_t pid = 0;
  std::from_chars(line.data(), line.data() + line.size(), pid);
  return pid;
}

// Returns true if a process serves the cluster. Our servers carry the cluster's path among their arguments, which all
// users may read. One started by hand may not, but its working directory is the cluster. A zombie has no arguments any
// more, and no directory.
bool serves(pid_t pid, const fs::path& cluster) {
  const fs::path proc = fs::path("/proc") / std::to_string(pid);
  std::ifstream file(proc / "cmdline", std::ios::binary);
  const std::string arguments{std::istreambuf_iterator<char>(file), {}};
  const std::string program = fs::path(arguments.c_str()).filename().string();
  if (program != "postgres" && program != "postmaster") return false;
  if (arguments.find('\0' + cluster.string() + '\0') != std::string::npos) return true;
  std::error_code error;
  return fs::equivalent(proc / "cwd", cluster, error) && !error;
}

} // namespace

std::optional<Postmaster> Postmaster::find(const fs::path& cluster) {
  const auto lines = pid_file_lines(cluster);
  const pid_t pid = pid_in(lines);
  if (pid <= 0) return std::nullopt;
  Postmaster found;
  // Opens the descriptor before the check: the result then holds for the process of the descriptor.
  found.process_ = base::open_pidfd(pid);
  if (!found.process_ || !serves(pid, cluster)) return std::nullopt;
  if (base::wait_for_exit(found.process_, std::chrono::milliseconds(0))) return std::nullopt;
  if (lines.size() > kSocketDirectoryLine) found.socket_directory_ = lines[kSocketDirectoryLine];
  return found;
}

bool Postmaster::stop(std::chrono::milliseconds timeout) {
  base::send_signal(process_, SIGINT);
  if (base::wait_for_exit(process_, timeout)) return true;
  base::send_signal(process_, SIGQUIT);
  return base::wait_for_exit(process_, std::chrono::seconds(10));
}

void remove_stale_pid_file(const fs::path& cluster) {
  const pid_t pid = pid_in(pid_file_lines(cluster));
  // A dead pid is PostgreSQL's own business: it also checks whether orphans of that server still use its memory.
  if (pid <= 0 || (::kill(pid, 0) != 0 && errno == ESRCH)) return;
  std::error_code ignored;
  fs::remove(cluster / "postmaster.pid", ignored);
}

} // namespace holdfast::server
