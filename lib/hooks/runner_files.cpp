#include "lib/hooks/runner_files.hpp"

#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/no_links.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/uuid.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

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

} // namespace holdfast::hooks
