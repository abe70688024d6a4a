#pragma once
// The files that the runner keeps beside a hook's own: its logs, its pid, and a script to run it by hand. Named
// <hook>.<32hex>.stdout.log and so on. Owned by one HookRun; main thread only.

#include "lib/base/fd.hpp"
#include "lib/process/command.hpp"

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace holdfast::hooks {

// A file in a directory that belongs to a hook, so links are not followed (base/no_links.hpp).
class File {
public:
  File() = default;
  static File open(const std::filesystem::path& path, int flags, mode_t mode = 0);

  bool is_open() const { return static_cast<bool>(fd_); }
  int get() const { return fd_.get(); }
  std::uint64_t size() const;
  bool regular() const;
  std::string read_at(std::uint64_t offset, std::size_t most) const; // what is there, at most that
  bool write_all(std::string_view bytes) const;

private:
  explicit File(int descriptor) : fd_(descriptor) {}
  base::Fd fd_;
};

// Error(cannot_create) for a path below work_dir.
[[noreturn]] void throw_cannot_create(const std::filesystem::path& path, int error_number);

class RunnerFiles {
public:
  RunnerFiles(const std::filesystem::path& directory, const std::string& hook);

  // Makes the logs and the script, and names the logs in the command. Made and held open before the hook can run: it
  // may remove or replace them without our losing what it printed. Throws Error(cannot_create).
  void make(process::Command& command);
  // The pid, once. The file's time of modification is the start of the process, by which others tell the process from a
  // later one with the same id.
  void write_pid(pid_t pid, std::chrono::system_clock::time_point started);
  // The command could not be started.
  void remove() const;
  // The hook has ended: without `keep` the logs go; else no more of them stays than that many bytes.
  void settle(bool keep, std::uint64_t most_stdout, std::uint64_t most_stderr) const;

  const File& output() const noexcept { return output_; }
  const File& errors() const noexcept { return errors_; }
  std::uint64_t printed() const { return output_.size() + errors_.size(); }
  std::string errors_tail() const;
  std::filesystem::path path(const char* suffix) const { return {prefix_ + suffix}; }

private:
  void write_script(const process::Command& command) const;

  const std::string prefix_; // <directory>/<hook>.<32hex>
  File output_, errors_;
  bool pid_written_{false};
};

} // namespace holdfast::hooks
