#include "services/worker/machine/free_resources.hpp"

#include "lib/base/text/time.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>

namespace holdfast::worker {
namespace {

using Bytes = std::optional<std::uint64_t>;

// "max", or more than any machine has (version 1 writes a number there), is no limit.
constexpr std::uint64_t kNoLimit = 1ull << 60;

Bytes read_number(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::uint64_t value = 0;
  if (!(stream >> value)) return std::nullopt;
  return value;
}

// A line "<key> <number>" or "<key>: <number> kB".
Bytes read_key(const std::filesystem::path& file, const std::string& key) {
  std::ifstream stream(file);
  for (std::string word; stream >> word;) {
    std::uint64_t value = 0;
    if (word == key && stream >> value) return value;
    stream.ignore(1 << 16, '\n');
  }
  return std::nullopt;
}

Bytes room(const std::filesystem::path& group, const char* limit, const char* used, const char* droppable) {
  const auto most = read_number(group / limit);
  const auto now = read_number(group / used);
  if (!most || !now || *most >= kNoLimit) return std::nullopt;
  const auto taken = *now - std::min(*now, read_key(group / "memory.stat", droppable).value_or(0));
  return *most - std::min(*most, taken);
}

void take_less(Bytes& least, const Bytes& other) {
  if (other) least = std::min(least.value_or(*other), *other);
}

} // namespace

std::optional<std::uint64_t> available_memory() {
  Bytes least = read_key("/proc/meminfo", "MemAvailable:");
  if (least) *least *= 1024;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool unified = controllers.empty();
    if (!unified && controllers != "memory") continue;
    const std::filesystem::path top = unified ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    // A limit of any group above holds as well; in a container the path may be the one outside, and only the top is
    // there.
    for (auto path = std::filesystem::path(line.substr(second + 1)).relative_path();; path = path.parent_path()) {
      take_less(least, unified
                           ? room(top / path, "memory.max", "memory.current", "inactive_file")
                           : room(top / path, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"));
      if (path.empty()) break;
    }
  }
  return least;
}

std::uint64_t memory_of_hook(std::uint64_t most, std::optional<std::uint64_t> available, int slots) {
  constexpr std::uint64_t kOfBrowser = std::uint64_t{1} << 30;
  if (!available) return most;
  return std::min(most, std::max(kOfBrowser, *available / static_cast<std::uint64_t>(std::max(1, slots))));
}

double load_per_processor() {
  double load = 0;
  if (::getloadavg(&load, 1) != 1) return 0;
  return load / std::max(1U, std::thread::hardware_concurrency());
}

std::string clock_trouble() {
  struct stat program {};
  if (::stat("/proc/self/exe", &program) != 0) return "";
  const auto now = std::chrono::system_clock::now();
  const auto made = std::chrono::system_clock::from_time_t(program.st_mtime);
  if (made - now < std::chrono::hours(24)) return "";
  return "the clock of this machine says " + base::written_timestamp(now) + ", and this program was made at " +
         base::written_timestamp(made);
}

std::string clock_difference_trouble(std::chrono::milliseconds ahead) {
  constexpr std::chrono::minutes kMost{1};
  const auto difference = std::chrono::duration_cast<std::chrono::seconds>(std::chrono::abs(ahead));
  if (difference <= kMost) return "";
  return "the clock of this machine is " + base::format_duration(difference) +
         (ahead.count() > 0 ? " ahead of" : " behind") + " that of the database";
}

} // namespace holdfast::worker
