#include "lib/hooks/runner_files.hpp"

#include "lib/base/error.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/text/time.hpp"
#include "lib/base/uuid.hpp"
#include "lib/hooks/hook_run.hpp"
#include "lib/hooks/text.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <csignal>

namespace holdfast::hooks {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kErrorsTail = 64u << 10;

base::Fd create_log(const fs::path& path) {
  auto log = base::open_no_links(path, O_RDWR | O_APPEND | O_CREAT | O_EXCL, 0644);
  if (!log) throw_cannot_create(path, errno);
  return log;
}

void cut(const base::Fd& log, std::uint64_t limit) {
  if (size_of(log) > limit) (void)::ftruncate(log.get(), static_cast<off_t>(limit));
}

} // namespace

void throw_cannot_create(const fs::path& path, int error_number) {
  throw base::Error(base::ErrorClass::cannot_create,
                    "cannot create " + path.string() + ": " + base::errno_text(error_number),
                    "check the owner of work_dir and the space left on it");
}

std::uint64_t size_of(const base::Fd& file) {
  struct stat status {};
  return ::fstat(file.get(), &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
}

std::string bytes_at(const base::Fd& file, std::uint64_t offset, std::size_t most) {
  std::string bytes(most, '\0');
  bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(0, base::read_at(file.get(), bytes.data(), most, offset))));
  return bytes;
}

RunnerFiles::RunnerFiles(const fs::path& directory, const std::string& hook)
    : prefix_((directory / (hook + "." + base::random_hex32())).string()) {}

void RunnerFiles::make(process::Command& command) {
  command.stdout_path = path(".stdout.log");
  command.stderr_path = path(".stderr.log");
  write_script(command);
  output_ = create_log(command.stdout_path);
  errors_ = create_log(command.stderr_path);
  command.stdout_file = output_.get();
  command.stderr_file = errors_.get();
}

// Arguments only: the environment may hold secrets.
void RunnerFiles::write_script(const process::Command& command) const {
  std::string text = "#!/bin/sh\ncd " + base::shell_quoted(command.directory.string()) + " || exit 1\nexec";
  for (const std::string& argument : command.argv)
    text += " " + base::shell_quoted(argument);
  text += "\n";
  const auto script = base::open_no_links(path(".sh"), O_WRONLY | O_CREAT | O_EXCL, 0755);
  if (!script || !base::write_all(script.get(), text)) throw_cannot_create(path(".sh"), errno);
}

void RunnerFiles::write_pid(pid_t pid, std::chrono::system_clock::time_point started) {
  if (pid_written_ || pid <= 0) return;
  pid_written_ = true;
  const auto file = base::open_no_links(path(".pid"), O_WRONLY | O_CREAT | O_EXCL, 0644);
  if (!file || !base::write_all(file.get(), std::to_string(pid) + "\n")) return; // a help for others, not a need
  const auto since_epoch = started.time_since_epoch();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since_epoch);
  timespec when{};
  when.tv_sec = static_cast<time_t>(seconds.count());
  when.tv_nsec = static_cast<long>(std::chrono::nanoseconds(since_epoch - seconds).count());
  const std::array<timespec, 2> times{when, when};
  (void)::futimens(file.get(), times.data());
}

void RunnerFiles::remove() const {
  for (const char* suffix : {".stdout.log", ".stderr.log", ".sh"})
    base::remove_no_links(path(suffix));
}

void RunnerFiles::settle(bool keep, std::uint64_t most_stdout, std::uint64_t most_stderr) const {
  base::remove_no_links(path(".pid"));
  if (keep) {
    cut(output_, most_stdout);
    cut(errors_, most_stderr);
  } else {
    base::remove_no_links(path(".stdout.log"));
    base::remove_no_links(path(".stderr.log"));
  }
}

std::string RunnerFiles::errors_tail() const {
  const std::uint64_t size = size_of(errors_);
  return bytes_at(errors_, size > kErrorsTail ? size - kErrorsTail : 0, kErrorsTail);
}

namespace {

constexpr int kExitSkipped = 10;

// Returns true for the ends of a hook that obeys HUP, INT or TERM: by the signal itself or, as shells report it, by 128
// + signal.
bool obeyed_signal(const process::Exit& exit) {
  const int signal = exit.signal != 0 ? exit.signal : exit.code - 128;
  return signal == SIGHUP || signal == SIGINT || signal == SIGTERM;
}

// Lines that runtimes print after the message: stack frames, closing braces, the version of Node.
bool part_of_trace(std::string_view raw, std::string_view line) {
  const bool indented = raw.starts_with(' ') || raw.starts_with('\t');
  if (indented && (line.starts_with("at ") || line.starts_with("File \""))) return true;
  if (line.starts_with("Node.js v")) return true;
  return std::none_of(line.begin(), line.end(),
                      [](unsigned char letter) { return std::isalnum(letter) != 0 || letter >= 0x80; });
}

} // namespace

// Decides the status. By the contract, a record's own status wins; by our first rule, a failure is never stored as a
// success. They meet here: a record overrides the exit code, since hooks claim their result and then fail while
// cleaning up, or the other way round; but no record overrides an end that the hook did not choose (it crashed, ran
// into its timeout, could not be executed, or had to be killed), because its files may be half written by then. The
// polite end of a background hook is one that it did choose.
Status decide_status(const process::Exit& exit, const std::optional<ResultRecord>& record, bool has_outputs,
                     bool ended_politely, bool timed_out) {
  const bool polite = ended_politely && (exit.clean() || obeyed_signal(exit));
  if (exit.start_errno != 0 || timed_out) return Status::failed;
  if (exit.signal != 0 && !polite) return Status::failed;
  if (record) return record->status;
  if (exit.code == 0 || polite) return has_outputs ? Status::succeeded : Status::noresults;
  if (exit.code == kExitSkipped) return Status::skipped;
  return Status::failed;
}

std::string telling_line(std::string_view stderr_text) {
  constexpr std::size_t kLongest = 500;
  std::string fallback;
  while (!stderr_text.empty()) {
    const auto newline = stderr_text.find_last_of('\n');
    const std::string_view raw = newline == std::string_view::npos ? stderr_text : stderr_text.substr(newline + 1);
    stderr_text = newline == std::string_view::npos ? std::string_view() : stderr_text.substr(0, newline);
    std::string line = clean_text(raw, kLongest, Lines::one);
    if (line.empty()) continue;
    if (!part_of_trace(raw, line)) return line;
    if (fallback.empty()) fallback = std::move(line);
  }
  return fallback;
}

std::string in_seconds(std::chrono::milliseconds duration) {
  const auto tenths = (duration.count() + 50) / 100;
  std::string text = std::to_string(tenths / 10);
  if (tenths % 10 != 0) text += "." + std::to_string(tenths % 10);
  return text + "s";
}

bool ended_by_stop(const process::Exit& exit) {
  constexpr std::array<int, 4> kSignals{SIGHUP, SIGINT, SIGTERM, SIGKILL};
  constexpr std::array<int, 4> kCodes{0, 128 + SIGHUP, 128 + SIGINT, 128 + SIGTERM};
  if (exit.start_errno != 0) return false;
  if (exit.signal != 0) return std::find(kSignals.begin(), kSignals.end(), exit.signal) != kSignals.end();
  return std::find(kCodes.begin(), kCodes.end(), exit.code) != kCodes.end();
}

std::string describe_excess(const process::Exit& exit, const process::Limits& limits) {
  switch (exit.exceeded) {
  case process::TreeLimit::memory:
    return "memory exceeded " + base::format_size(limits.tree_memory_bytes.value_or(0));
  case process::TreeLimit::processes:
    return "had more than " + std::to_string(limits.tree_processes.value_or(0)) + " processes";
  case process::TreeLimit::none:
    break;
  }
  return {};
}

} // namespace holdfast::hooks
