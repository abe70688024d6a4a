#include "lib/process/process_scan.hpp"

#include "lib/process/shim/process_tree.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

namespace holdfast::process {

namespace {

// nullopt if it cannot be read. /proc files have no size, so they are read to the end.
std::optional<std::string> read_proc_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  std::string text;
  char buffer[16384];
  ssize_t got = 0;
  while ((got = ::read(fd, buffer, sizeof buffer)) > 0)
    text.append(buffer, static_cast<std::size_t>(got));
  ::close(fd);
  if (got < 0) return std::nullopt;
  return text;
}

} // namespace

std::optional<ProcessEntry> read_process(pid_t pid) {
  tree::Stat stat;
  if (!tree::read_stat(pid, stat)) return std::nullopt;
  return ProcessEntry{pid, stat.parent, stat.session, stat.state, stat.start_ticks, stat.name};
}

std::map<pid_t, ProcessEntry> read_processes() {
  std::map<pid_t, ProcessEntry> processes;
  tree::for_each_number("/proc", [&](pid_t pid) {
    if (auto entry = read_process(pid)) processes.emplace(pid, std::move(*entry));
  });
  return processes;
}

bool environment_has(pid_t pid, const std::function<bool(std::string_view)>& matches) {
  const std::string directory = "/proc/" + std::to_string(pid);
  struct stat status {};
  if (::stat(directory.c_str(), &status) != 0 || status.st_uid != ::geteuid()) return false;
  const auto environment = read_proc_file(directory + "/environ");
  if (!environment) return false;
  for (std::size_t at = 0; at < environment->size();) {
    const std::size_t end = std::min(environment->find('\0', at), environment->size());
    if (matches(std::string_view(*environment).substr(at, end - at))) return true;
    at = end + 1;
  }
  return false;
}

} // namespace holdfast::process
