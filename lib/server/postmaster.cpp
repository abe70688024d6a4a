#include "lib/server/postmaster.hpp"

#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/pidfd.hpp"
#include "lib/base/text/text.hpp"
#include "lib/process/subprocess.hpp"

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <iterator>
#include <set>
#include <string_view>
#include <vector>

namespace holdfast::server {

namespace {

namespace fs = std::filesystem;

// Lines of the file: pid, data directory, start time, port, socket directory, listen address, shared memory key,
// status.
constexpr std::size_t kPidLine = 0;
constexpr std::size_t kSocketDirectoryLine = 4;

std::vector<std::string> pid_file_lines(const fs::path& cluster) {
  std::ifstream file(cluster / "postmaster.pid");
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);)
    lines.push_back(std::move(line));
  return lines;
}

pid_t pid_in(const std::vector<std::string>& lines) {
  if (lines.empty()) return 0;
  const auto& line = lines[kPidLine];
  pid_t pid = 0;
  std::from_chars(line.data(), line.data() + line.size(), pid);
  return pid;
}

// Returns true if a process serves the cluster. Our servers carry the cluster's path among their arguments, which all
// users may read. One started by hand may not, but its working directory is the cluster. A zombie has no arguments any
// more, and no directory.
bool serves(pid_t pid, const fs::path& cluster) {
  const fs::path proc = fs::path("/proc") / std::to_string(pid);
  std::ifstream file(proc / "cmdline", std::ios::binary);
  const std::string arguments{std::istreambuf_iterator<char>(file), {}};
  const std::string program = fs::path(arguments.c_str()).filename().string();
  if (program != "postgres" && program != "postmaster") return false;
  if (arguments.find('\0' + cluster.string() + '\0') != std::string::npos) return true;
  std::error_code error;
  return fs::equivalent(proc / "cwd", cluster, error) && !error;
}

} // namespace

std::optional<Postmaster> Postmaster::find(const fs::path& cluster) {
  const auto lines = pid_file_lines(cluster);
  const pid_t pid = pid_in(lines);
  if (pid <= 0) return std::nullopt;
  Postmaster found;
  // Opens the descriptor before the check: the result then holds for the process of the descriptor.
  found.process_ = base::open_pidfd(pid);
  if (!found.process_ || !serves(pid, cluster)) return std::nullopt;
  if (base::wait_for_exit(found.process_, std::chrono::milliseconds(0))) return std::nullopt;
  if (lines.size() > kSocketDirectoryLine) found.socket_directory_ = lines[kSocketDirectoryLine];
  return found;
}

bool Postmaster::stop(std::chrono::milliseconds timeout) {
  base::send_signal(process_, SIGINT);
  if (base::wait_for_exit(process_, timeout)) return true;
  base::send_signal(process_, SIGQUIT);
  return base::wait_for_exit(process_, std::chrono::seconds(10));
}

void remove_stale_pid_file(const fs::path& cluster) {
  const pid_t pid = pid_in(pid_file_lines(cluster));
  // A dead pid is PostgreSQL's own business: it also checks whether orphans of that server still use its memory.
  if (pid <= 0 || (::kill(pid, 0) != 0 && errno == ESRCH)) return;
  std::error_code ignored;
  fs::remove(cluster / "postmaster.pid", ignored);
}

namespace {

using base::Error;
using base::ErrorClass;
using std::chrono::milliseconds;

constexpr int kCannotEnter = 125; // of env(1); it and setpriv(1) end with 126 or 127 if they cannot do the rest
constexpr milliseconds kShortLimit{10'000};

constexpr const char* kSetpriv = "/usr/bin/setpriv";
constexpr const char* kEnv = "/usr/bin/env";

void require_tools() {
  for (const char* const tool : {kSetpriv, kEnv})
    if (::access(tool, X_OK) != 0)
      throw Error(ErrorClass::unavailable,
                  std::string("cannot run ") + tool + ", which starts PostgreSQL: " + base::errno_text(errno),
                  "install util-linux and coreutils, or set database.url");
}

// setpriv(1) changes the user and has the kernel end the program with us; env(1) enters the directory after that.
process::Program program_of(const Launch& launch, bool dies_with_us) {
  process::Program program;
  program.argv = {kSetpriv, "--pdeathsig", dies_with_us ? "KILL" : "clear"};
  if (::geteuid() != launch.user.uid)
    for (const auto& word : {"--reuid=" + std::to_string(launch.user.uid), "--regid=" + std::to_string(launch.user.gid),
                             std::string("--clear-groups")})
      program.argv.push_back(word);
  for (const auto& word : {std::string(kEnv), "--chdir=" + launch.directory.string(), launch.program.string()})
    program.argv.push_back(word);
  program.argv.insert(program.argv.end(), launch.arguments.begin(), launch.arguments.end());
  // Without our variables: no PG*, no marker by which a worker finds its hooks.
  program.environment = {"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C.UTF-8", "TZ=UTC"};
  program.input = launch.input;
  program.output = launch.output;
  return program;
}

// Returns the text behind the last colon: "env: cannot change directory to '/x': Permission denied".
std::string reason_in(std::string_view output) {
  output = base::trimmed(output);
  const auto colon = output.rfind(": ");
  return std::string(colon == std::string_view::npos ? output : output.substr(colon + 2));
}

void check_status(const Launch& launch, int status) {
  if (status == kCannotEnter)
    throw Error(ErrorClass::cannot_create,
                "user " + launch.user.name + ", who has to run PostgreSQL, cannot enter " + launch.directory.string() +
                    ": " + reason_in(text_of(launch.output)),
                "set data_dir to a place that this user can reach, such as /var/lib/holdfast, or run holdfast as an "
                "ordinary user");
  if (status == 126 || status == 127)
    throw Error(ErrorClass::unavailable,
                "cannot run " + launch.program.string() + " as user " + launch.user.name + ": " +
                    reason_in(text_of(launch.output)),
                ::geteuid() == 0 ? "run holdfast as an ordinary user, or give it CAP_SETUID and CAP_SETGID" : "");
}

} // namespace

int run_to_end(const Launch& launch, milliseconds limit) {
  const auto status = process::run_to_end(program_of(launch, true), limit);
  if (!status)
    throw Error(ErrorClass::temporary,
                launch.program.string() + " did not finish within " + std::to_string(limit.count() / 1000) + " s");
  check_status(launch, *status);
  return *status;
}

pid_t start_daemon(const Launch& launch) {
  // The shell leaves it behind and writes its pid into the file that is the shell's standard input.
  const base::Fd answer(memory_file());
  auto program = program_of(launch, false);
  const std::vector<std::string> shell{"/bin/sh", "-c", "\"$@\" </dev/null & echo $! >&0", "sh"};
  program.argv.insert(program.argv.begin(), shell.begin(), shell.end());
  program.input = answer.get();
  process::run_to_end(program, kShortLimit);
  const std::string text = text_of(answer.get());
  pid_t pid = -1;
  std::from_chars(text.data(), text.data() + text.size(), pid);
  if (pid <= 0) throw Error(ErrorClass::system, "cannot start " + launch.program.string() + " with /bin/sh");
  return pid;
}

int memory_file() {
  const int file = ::memfd_create("holdfast", MFD_CLOEXEC);
  if (file < 0) throw Error(ErrorClass::system, "cannot make a file in memory: " + base::errno_text(errno));
  return file;
}

std::string text_of(int file) {
  std::string text(64 * 1024, '\0');
  const auto count = ::pread(file, text.data(), text.size(), 0);
  text.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  return text;
}

std::string output_of(const std::filesystem::path& program, const std::vector<std::string>& arguments) {
  require_tools(); // without them no program would seem to work
  const base::Fd output(memory_file());
  try {
    const Launch launch{program, arguments, "/", output.get(), User{::geteuid(), ::getegid(), "itself"}};
    if (run_to_end(launch, kShortLimit) != 0) return {};
  } catch (const Error&) {
    return {};
  }
  return text_of(output.get());
}

namespace {

std::vector<fs::path> path_directories() {
  std::vector<fs::path> directories;
  const char* const path = ::getenv("PATH");
  std::string_view rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const auto end = std::min(rest.find(':'), rest.size());
    if (end > 0 && rest.front() == '/') directories.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return directories;
}

bool is_program(const fs::path& file) {
  std::error_code error;
  return fs::is_regular_file(file, error) && ::access(file.c_str(), X_OK) == 0;
}

// "postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)" -> 15; 0 if that is not what it prints.
int major_version(const fs::path& postgres) {
  const std::string text = output_of(postgres, {"--version"});
  constexpr std::string_view kMark = "(PostgreSQL) ";
  const auto at = text.find(kMark);
  if (at == std::string::npos) return 0;
  int major = 0;
  std::from_chars(text.data() + at + kMark.size(), text.data() + text.size(), major);
  return major;
}

} // namespace

std::vector<fs::path> usual_directories() {
  auto directories = path_directories();
  for (const auto& directory : path_directories()) {
    if (!is_program(directory / "pg_config")) continue;
    std::string text = output_of(directory / "pg_config", {"--bindir"});
    while (!text.empty() && text.back() == '\n')
      text.pop_back();
    if (!text.empty()) directories.emplace_back(text);
    break;
  }
  for (const fs::path parent : {"/usr/lib/postgresql", "/usr"}) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(parent, error)) {
      const bool debian = parent != "/usr";
      if (debian || entry.path().filename().string().starts_with("pgsql-")) directories.push_back(entry.path() / "bin");
    }
  }
  return directories;
}

std::vector<Programs> find_programs(const std::vector<fs::path>& directories) {
  std::vector<Programs> found;
  std::set<fs::path> seen;
  for (const auto& directory : directories) {
    std::error_code error;
    // Through the link, so that initdb finds its share directory beside the real program.
    const fs::path postgres = fs::canonical(directory / "postgres", error);
    if (error || !is_program(postgres) || !is_program(postgres.parent_path() / "initdb")) continue;
    if (!seen.insert(postgres).second) continue;
    if (const int major = major_version(postgres); major > 0) found.push_back({postgres.parent_path(), major});
  }
  return found;
}

} // namespace holdfast::server
