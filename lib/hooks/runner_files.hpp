#pragma once
// The files that the runner keeps beside a hook's own: its logs, its pid, and a script to run it by hand. Named
// <hook>.<32hex>.stdout.log and so on. Owned by one HookRun; main thread only.

#include "lib/base/file.hpp"
#include "lib/process/command.hpp"

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace holdfast::hooks {

// Returns the length of a file, and its text from an offset on, up to a limit. Files in a directory that belongs to a
// hook are opened without links (base/file.hpp).
std::uint64_t size_of(const base::Fd& file);
std::string bytes_at(const base::Fd& file, std::uint64_t offset, std::size_t most);

// Error(cannot_create) for a path below work_dir.
[[noreturn]] void throw_cannot_create(const std::filesystem::path& path, int error_number);

class RunnerFiles {
public:
  RunnerFiles(const std::filesystem::path& directory, const std::string& hook);

  // Makes the logs and the script, and names the logs in the command. Made and held open before the hook can run: it
  // may remove or replace them without our losing what it printed. Throws Error(cannot_create).
  void make(process::Command& command);
  // Writes the pid, once. The file's time of modification is the start of the process, which distinguishes the process
  // from a later one with the same id.
  void write_pid(pid_t pid, std::chrono::system_clock::time_point started);
  // The command could not be started.
  void remove() const;
  // The hook has ended: without `keep` the logs go; else no more of them stays than that many bytes.
  void settle(bool keep, std::uint64_t most_stdout, std::uint64_t most_stderr) const;

  const base::Fd& output() const noexcept { return output_; }
  const base::Fd& errors() const noexcept { return errors_; }
  std::uint64_t printed() const { return size_of(output_) + size_of(errors_); }
  std::string errors_tail() const;
  std::filesystem::path path(const char* suffix) const { return {prefix_ + suffix}; }

private:
  void write_script(const process::Command& command) const;

  const std::string prefix_; // <directory>/<hook>.<32hex>
  base::Fd output_, errors_;
  bool pid_written_{false};
};

// Sentences for users about the end of a hook. Private to this module; pure.

// Returns the line of a hook's stderr with the cause: the last one that is not empty and not the tail of a stack trace.
// At most 500 bytes of clean text; "" if there is none.
std::string telling_line(std::string_view stderr_text);

// 60 s -> "60s", 1500 ms -> "1.5s": in the unit in which timeouts are configured.
std::string in_seconds(std::chrono::milliseconds duration);

// Returns true if it ended because we requested it, while we were leaving, and not for a reason of its own.
bool ended_by_stop(const process::Exit& exit);

// Returns the limit of its tree that it exceeded, in words; "" if none.
std::string describe_excess(const process::Exit& exit, const process::Limits& limits);

} // namespace holdfast::hooks
