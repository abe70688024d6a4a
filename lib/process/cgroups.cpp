#include "lib/process/cgroups.hpp"

#include "lib/base/file.hpp"
#include "lib/base/pidfd.hpp"
#include "lib/base/text/text.hpp"
#include "lib/process/launcher.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <fstream>
#include <map>

namespace holdfast::process {

namespace fs = std::filesystem;

namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr const char* kWorkerGroup =
    "holdfast-worker"; // where workers are, so that the group above may have controllers
constexpr const char* kLeafPrefix = "holdfast-hook-";
constexpr int kRounds = 20; // processes may be born while others are moved
constexpr milliseconds kEndLimit{200};

struct Mount {
  fs::path root, point;
  std::vector<std::string> controllers; // empty: version 2
};

std::vector<std::string> words(const std::string& text) { return base::split(text, " "); }

std::string first_line(const fs::path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

// 0 or an errno value.
int write_file(const fs::path& file, const std::string& text) {
  const int fd = ::open(file.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  const int error = ::write(fd, text.data(), text.size()) < 0 ? errno : 0;
  ::close(fd);
  return error;
}

std::vector<Mount> mounts() {
  std::vector<Mount> found;
  std::ifstream stream("/proc/self/mountinfo");
  for (std::string line; std::getline(stream, line);) {
    const auto fields = words(line);
    const auto dash = std::find(fields.begin(), fields.end(), "-");
    if (fields.size() < 6 || fields.end() - dash < 4) continue;
    if (dash[1] == "cgroup2") found.push_back({fields[3], fields[4], {}});
    if (dash[1] == "cgroup") found.push_back({fields[3], fields[4], base::split(dash[3], ",")});
  }
  return found;
}

// By controller, "" for version 2: the group of this process, as the hierarchy calls it.
std::map<std::string, fs::path> own_groups() {
  std::map<std::string, fs::path> groups;
  std::ifstream stream("/proc/self/cgroup");
  for (std::string line; std::getline(stream, line);) {
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string list = line.substr(first + 1, second - first - 1);
    if (list.empty()) groups[""] = line.substr(second + 1);
    for (const auto& controller : base::split(list, ","))
      groups[controller] = line.substr(second + 1);
  }
  return groups;
}

// The directory of a group; empty if it is not below what is mounted, as in a container that sees the whole tree.
fs::path directory_of(const Mount& mount, const fs::path& group) {
  const fs::path below = group.lexically_relative(mount.root);
  if (below.empty() || *below.begin() == "..") return {};
  return below == "." ? mount.point : mount.point / below;
}

bool writable(const fs::path& directory) {
  return ::access(directory.c_str(), W_OK) == 0 && ::access((directory / "cgroup.procs").c_str(), W_OK) == 0;
}

// systemd marks the groups that it delegates.
bool marked_as_delegated(const fs::path& directory) {
  return std::ranges::any_of(std::array{"user.delegate", "trusted.delegate"}, [&](const char* name) {
    char value = '0';
    return ::getxattr(directory.c_str(), name, &value, 1) == 1 && value == '1';
  });
}

bool belongs_to_us(const fs::path& directory) {
  struct stat status {};
  return ::geteuid() != 0 && ::stat(directory.c_str(), &status) == 0 && status.st_uid == ::geteuid();
}

milliseconds left_until(Clock::time_point deadline) {
  return std::max(milliseconds(0), std::chrono::ceil<milliseconds>(deadline - Clock::now()));
}

// By pid, with a descriptor that names no other process later.
void kill_members(const fs::path& leaf, std::map<pid_t, base::Fd>& found) {
  std::ifstream members(leaf / "cgroup.procs");
  for (pid_t pid = 0; members >> pid;) {
    auto& process = found[pid];
    if (!process) process = base::open_pidfd(pid);
    base::send_signal(process, SIGKILL);
  }
  write_file(leaf / "cgroup.kill", "1"); // where there is one: also what was born meanwhile
}

// Version 2 reports in cgroup.events when the last process has ended, and wakes a poller.
void wait_until_empty(const fs::path& leaf, Clock::time_point deadline) {
  const base::Fd events(::open((leaf / "cgroup.events").c_str(), O_RDONLY | O_CLOEXEC));
  if (!events) return;
  for (;;) {
    char text[128];
    const auto count = ::pread(events.get(), text, sizeof text, 0);
    if (count <= 0 || std::string_view(text, static_cast<std::size_t>(count)).find("populated 0") != std::string::npos)
      return;
    const auto left = left_until(deadline);
    if (left.count() == 0) return;
    pollfd changed{events.get(), POLLPRI, 0};
    ::poll(&changed, 1, static_cast<int>(left.count()));
  }
}

// Ends the processes in the leaves and removes the leaves. A process stuck in the kernel keeps its leaf until the next
// start. Returns the processes that were there; the same ones are in each leaf.
std::map<pid_t, base::Fd> end_leaves(const std::vector<std::string>& leaves) {
  const auto deadline = Clock::now() + kEndLimit;
  std::map<pid_t, base::Fd> found;
  for (const auto& leaf : leaves)
    kill_members(leaf, found);
  for (const auto& [pid, process] : found)
    base::wait_for_exit(process, left_until(deadline));
  for (const auto& leaf : leaves) {
    wait_until_empty(leaf, deadline);
    ::rmdir(leaf.c_str());
  }
  return found;
}

bool has(const std::vector<std::string>& list, const std::string& word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

} // namespace

Cgroups Cgroups::find() {
  Cgroups found;
  found.why_none_ = "none are mounted";
  const auto groups = own_groups();
  const auto all = mounts();
  for (const auto& mount : all) {
    if (!mount.controllers.empty() || !groups.contains("")) continue;
    fs::path directory = directory_of(mount, groups.at(""));
    if (directory.filename() == kWorkerGroup) directory = directory.parent_path(); // another worker was here first
    if (directory.empty()) continue;
    const bool ours = directory == mount.point || marked_as_delegated(directory);
    if (!ours && !belongs_to_us(directory)) {
      found.why_none_ = directory.string() + " is not delegated (systemd: Delegate=yes)";
    } else if (!writable(directory)) {
      found.why_none_ = directory.string() + " cannot be written to";
    } else {
      found.places_.push_back({directory, true, ours, words(first_line(directory / "cgroup.subtree_control"))});
      break;
    }
  }
  const bool unified = found.any();
  for (const char* controller : {"freezer", "cpuacct", "memory", "pids"}) {
    // Version 2 does what the first two are for.
    if (unified && (std::string(controller) == "freezer" || std::string(controller) == "cpuacct")) continue;
    const auto mount = std::ranges::find_if(all, [&](const Mount& one) { return has(one.controllers, controller); });
    if (mount == all.end() || !groups.contains(controller)) continue;
    const fs::path directory = directory_of(*mount, groups.at(controller));
    if (directory.empty() || !writable(directory)) {
      if (!unified) found.why_none_ = "those of version 1 cannot be written to";
      continue;
    }
    const auto known = std::ranges::find(found.places_, directory, &Place::directory);
    if (known != found.places_.end())
      known->controllers.push_back(controller);
    else
      found.places_.push_back({directory, false, true, {controller}});
  }
  return found;
}

void Cgroups::prepare() {
  for (auto& place : places_)
    if (place.unified) enable_controllers(place);
  remove_leftovers();
}

// A group of version 2 has either processes or groups with controllers in it.
void Cgroups::enable_controllers(Place& place) {
  const auto offered = words(first_line(place.directory / "cgroup.controllers"));
  std::string wanted;
  for (const char* controller : {"memory", "pids"})
    if (has(offered, controller) && !has(place.controllers, controller))
      wanted += std::string(wanted.empty() ? "+" : " +") + controller;
  if (wanted.empty()) return;
  const fs::path control = place.directory / "cgroup.subtree_control";
  int error = write_file(control, wanted);
  if (error == EBUSY && place.ours) {
    const fs::path group = place.directory / kWorkerGroup;
    ::mkdir(group.c_str(), 0755);
    for (int round = 0; round < kRounds && error == EBUSY; ++round) {
      std::ifstream members(place.directory / "cgroup.procs");
      for (std::string pid; members >> pid;)
        write_file(group / "cgroup.procs", pid); // one that has ended meanwhile need not be moved
      error = write_file(control, wanted);
    }
  }
  place.controllers = words(first_line(control));
}

// Their names have their owners. Leaves of another PID namespace are skipped.
void Cgroups::remove_leftovers() const {
  for (const auto& place : places_) {
    std::error_code error;
    for (fs::directory_iterator at(place.directory, error), end; !error && at != end; at.increment(error)) {
      const std::string name = at->path().filename();
      unsigned long space = 0, ticks = 0, number = 0;
      int pid = 0;
      if (!name.starts_with(kLeafPrefix) ||
          std::sscanf(name.c_str() + std::string_view(kLeafPrefix).size(), "%lu-%d-%lu-%lu", &space, &pid, &ticks,
                      &number) != 4 ||
          std::to_string(space) != namespace_id("pid") || process_alive(pid, ticks))
        continue;
      end_leaves({at->path().string()});
    }
  }
}

std::string Cgroups::describe() const {
  if (places_.empty()) return "none: " + why_none_;
  std::string text;
  for (const auto& place : places_) {
    text += (text.empty() ? "" : "; ") + std::string(place.unified ? "version 2, " : "version 1, ") +
            place.directory.string();
    std::vector<std::string> controllers;
    for (const char* controller : {"freezer", "cpuacct", "memory", "pids"})
      if (has(place.controllers, controller)) controllers.emplace_back(controller);
    if (!controllers.empty()) text += " (" + base::join(controllers, ", ") + ")";
  }
  return text;
}

std::string Cgroups::next_leaves(bool memory_limited) {
  if (places_.empty()) return "-";
  static const std::string own =
      namespace_id("pid") + "-" + std::to_string(::getpid()) + "-" + std::to_string(process_start_ticks(::getpid()));
  const std::string name = kLeafPrefix + own + "-" + std::to_string(++made_);
  std::string list;
  for (const auto& place : places_) {
    // To be moved into one of version 1 takes a hook ten milliseconds: only if nothing else does what it is for.
    const bool memory_alone = place.controllers == std::vector<std::string>{"memory"};
    if (!place.unified && !memory_limited && (places_.front().unified || memory_alone)) continue;
    list += (list.empty() ? "" : " ") + (place.directory / name).string();
  }
  return list.empty() ? "-" : list;
}

int Cgroups::end(const std::string& leaves) {
  auto names = words(leaves);
  std::erase(names, "-");
  const auto ended = end_leaves(names);
  // Orphans of this process are ours to reap. Their parents ended, too, so they are ours by now.
  for (const auto& [pid, process] : ended)
    ::waitpid(pid, nullptr, WNOHANG);
  return static_cast<int>(ended.size());
}

} // namespace holdfast::process
