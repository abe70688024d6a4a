#include "lib/process/process_scan.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <filesystem>

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

template <class Number>
Number number(std::string_view text) {
  Number value{};
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

} // namespace

std::optional<ProcessEntry> read_process(pid_t pid) {
  const auto text = read_proc_file("/proc/" + std::to_string(pid) + "/stat");
  if (!text) return std::nullopt;
  // pid (name) state parent group session ... start_ticks; the name may hold blanks and brackets.
  const auto open = text->find('('), close = text->rfind(')');
  if (open == std::string::npos || close == std::string::npos || close + 2 >= text->size()) return std::nullopt;
  ProcessEntry entry;
  entry.pid = pid;
  entry.name = text->substr(open + 1, close - open - 1);
  std::string_view rest = std::string_view(*text).substr(close + 2);
  for (int field = 3; field <= 22 && !rest.empty(); ++field) {
    const auto word = rest.substr(0, rest.find(' '));
    if (field == 3) entry.state = word.front();
    if (field == 4) entry.parent = number<pid_t>(word);
    if (field == 6) entry.session = number<pid_t>(word);
    if (field == 22) entry.start_ticks = number<std::uint64_t>(word);
    rest.remove_prefix(word.size() < rest.size() ? word.size() + 1 : rest.size());
  }
  return entry;
}

std::map<pid_t, ProcessEntry> read_processes() {
  std::map<pid_t, ProcessEntry> processes;
  std::error_code error;
  for (std::filesystem::directory_iterator at("/proc", error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (auto entry = read_process(number<pid_t>(name))) processes.emplace(entry->pid, std::move(*entry));
  }
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
