#include "lib/pg/timeline.hpp"

#include "lib/base/file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <sstream>

namespace holdfast::pg {
namespace {

constexpr std::size_t kMostBytes = 4096; // of the file: a line for each system

using Counter = std::shared_ptr<std::atomic<std::uint32_t>>;

class Timelines {
public:
  static Timelines& instance() {
    static Timelines timelines;
    return timelines;
  }

  void remember(const std::filesystem::path& file) {
    const std::lock_guard lock(mutex_);
    file_ = file;
    stored_ = false;
    store();
  }

  SessionTimeline see(const std::string& system, std::uint32_t timeline) {
    const std::lock_guard lock(mutex_);
    const bool raised = raise(system, timeline);
    stored_ = stored_ && !raised;
    if (!stored_) store();
    return {timeline, raised, newest_.at(system)};
  }

  std::filesystem::path file() {
    const std::lock_guard lock(mutex_);
    return file_;
  }

private:
  bool raise(const std::string& system, std::uint32_t timeline) {
    auto& newest = newest_[system];
    if (!newest) newest = std::make_shared<std::atomic<std::uint32_t>>(0);
    if (newest->load() >= timeline) return false;
    newest->store(timeline);
    return true;
  }

  // Merges the file with the timelines known now, under the file's lock. Failures are ignored: the process itself
  // remembers.
  void store() {
    if (file_.empty()) return;
    const base::Fd file(::open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
    if (!file || ::flock(file.get(), LOCK_EX) != 0) return;
    std::array<char, kMostBytes> bytes{};
    const auto size = ::pread(file.get(), bytes.data(), bytes.size(), 0);
    std::istringstream lines(std::string(bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))));
    std::string system;
    for (std::uint32_t timeline = 0; lines >> system >> timeline;)
      raise(system, timeline);
    std::string text;
    for (const auto& [name, newest] : newest_)
      text += name + ' ' + std::to_string(newest->load()) + '\n';
    stored_ = ::pwrite(file.get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()) &&
              ::ftruncate(file.get(), static_cast<off_t>(text.size())) == 0 && ::fdatasync(file.get()) == 0;
  }

  std::mutex mutex_;
  std::map<std::string, Counter> newest_; // by system identifier
  std::filesystem::path file_;
  bool stored_{false};
};

} // namespace

void remember_timelines(const std::filesystem::path& file) { Timelines::instance().remember(file); }

SessionTimeline see_timeline(const std::string& system, std::uint32_t timeline) {
  return Timelines::instance().see(system, timeline);
}

std::filesystem::path timelines_file() { return Timelines::instance().file(); }

} // namespace holdfast::pg
