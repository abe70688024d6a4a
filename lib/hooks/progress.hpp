#pragma once
// Progress of a hook: it printed, wrote below its directory, or used a processor. Owned by one HookRun; main thread
// only.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace holdfast::hooks {

// Measures a hook's directory: number of bytes, and new files. Private to this module; main thread, so every call does
// a bounded amount of work. Links are never followed.

// Result of one round: equal for two rounds only if nothing was written between them.
struct DirectoryState {
  std::uint64_t bytes{0};                                    // of all files
  std::uint64_t entries{0};                                  // files, directories and others
  std::pair<std::int64_t, std::int64_t> latest_change{0, 0}; // seconds, nanoseconds

  bool operator==(const DirectoryState&) const = default;
};

// Looks at all below a directory, a few entries at a time.
class DirectoryMeter {
public:
  explicit DirectoryMeter(std::filesystem::path directory) : directory_(std::move(directory)) {}

  // Looks at up to `entries` more entries. The state once a whole round is complete; the next call starts a new round.
  std::optional<DirectoryState> step(std::size_t entries);
  // The last complete round began then.
  std::chrono::steady_clock::time_point round_began() const { return began_; }

private:
  std::filesystem::path directory_;
  std::filesystem::recursive_directory_iterator position_;
  bool in_round_{false};
  DirectoryState state_;
  std::chrono::steady_clock::time_point began_{};
};

// Records the files that existed before a hook, so that its own can be distinguished afterwards from those of other
// hooks of the same plugin. By change time, which wget and others cannot set back, and not by a clock.
class FilesBefore {
public:
  // Remembers up to 10,000 files; more are taken for new.
  explicit FilesBefore(const std::filesystem::path& directory);

  // Returns true if the file (a path below the directory) was not there, or has changed since.
  bool changed(const std::filesystem::path& file) const;

  // A new or changed file that is no runner file, relative to the directory; a page (HTML) rather than another one.
  // nullopt if the hook has left nothing.
  std::optional<std::string> first_output() const;

private:
  std::filesystem::path directory_;
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> change_times_; // path -> seconds, nanoseconds
};

class Progress {
public:
  using Clock = std::chrono::steady_clock;

  void start(Clock::time_point now) { looked_ = since_ = now; }

  // Records the result of a check that began at this time.
  void look(Clock::time_point began, const DirectoryState& files, std::uint64_t printed,
            std::chrono::microseconds cpu) {
    const bool busy = (cpu - cpu_) * kBusyShare > began - looked_; // less is what waiting costs
    if (busy || files != files_ || printed != printed_) since_ = began;
    files_ = files;
    printed_ = printed;
    cpu_ = cpu;
    looked_ = began;
  }

  Clock::time_point since() const noexcept { return since_; }
  // Returns the time from the last sign of progress to the beginning of the last check.
  Clock::duration stall() const noexcept { return looked_ - since_; }

private:
  static constexpr int kBusyShare = 50; // one part in so many of a processor's time

  DirectoryState files_;
  std::uint64_t printed_{0};
  std::chrono::microseconds cpu_{0};
  Clock::time_point looked_{}, since_{};
};

} // namespace holdfast::hooks
