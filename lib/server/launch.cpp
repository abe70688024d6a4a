#include "lib/server/launch.hpp"

#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/text/characters.hpp"
#include "lib/process/run.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>

namespace holdfast::server {
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

} // namespace holdfast::server
