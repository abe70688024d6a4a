#include "lib/server/launch.hpp"

#include "lib/base/error.hpp"
#include "lib/base/pidfd.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>

namespace holdfast::server {
namespace {

using base::Error;
using base::ErrorClass;
using std::chrono::milliseconds;

enum class Step : int { pid, change_user, enter_directory, execute, other };

// What the new process tells before it becomes the program.
struct Report {
  Step step;
  int value; // its pid, or an errno
};

constexpr int kReportDescriptor = 3;

// Everything the child needs, made before fork(): in the child of a threaded process nothing may allocate.
struct Plan {
  explicit Plan(const Launch& launch) : program(launch.program.string()), directory(launch.directory.string()) {
    words.push_back(program);
    words.insert(words.end(), launch.arguments.begin(), launch.arguments.end());
    for (auto& word : words)
      argv.push_back(word.data());
    argv.push_back(nullptr);
    for (auto& setting : environment)
      envp.push_back(setting.data());
    envp.push_back(nullptr);
    change_user = ::geteuid() != launch.user.uid;
    uid = launch.user.uid;
    gid = launch.user.gid;
    output = launch.output;
  }

  std::string program;
  std::string directory;
  std::vector<std::string> words;
  std::vector<char*> argv;
  // Nothing of ours: no PG* variables, no marker by which a worker finds its hooks.
  std::array<std::string, 3> environment{"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C.UTF-8", "TZ=UTC"};
  std::vector<char*> envp;
  bool change_user;
  uid_t uid;
  gid_t gid;
  int output;
};

void tell(int descriptor, Step step, int value) {
  const Report report{step, value};
  (void)!::write(descriptor, &report, sizeof report); // fewer bytes than PIPE_BUF: whole or not at all
}

[[noreturn]] void give_up(int descriptor, Step step) {
  tell(descriptor, step, errno);
  ::_exit(127);
}

// The raw system calls: glibc's wrappers would synchronise threads that the child does not have.
bool change_user(uid_t uid, gid_t gid) {
  return ::syscall(SYS_setgroups, 1, &gid) == 0 && ::syscall(SYS_setresgid, gid, gid, gid) == 0 &&
         ::syscall(SYS_setresuid, uid, uid, uid) == 0;
}

// Runs in the child; async-signal-safe calls only.
[[noreturn]] void become(const Plan& plan, int reports, bool daemon) {
  for (int number = 1; number < NSIG; ++number)
    ::signal(number, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::setsid();
  if (daemon) {
    const pid_t child = ::fork();
    if (child < 0) give_up(reports, Step::other);
    if (child > 0) ::_exit(0);
  }
  if (plan.change_user && !change_user(plan.uid, plan.gid)) give_up(reports, Step::change_user);
  if (!daemon) ::prctl(PR_SET_PDEATHSIG, SIGKILL); // after the change of user, which clears it
  ::umask(077);
  if (::chdir(plan.directory.c_str()) != 0) give_up(reports, Step::enter_directory);
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0) give_up(reports, Step::other);
  if (::dup2(plan.output, 1) < 0 || ::dup2(plan.output, 2) < 0 || ::dup2(null, 0) < 0) give_up(reports, Step::other);
  if (reports != kReportDescriptor && ::dup3(reports, kReportDescriptor, O_CLOEXEC) < 0) give_up(reports, Step::other);
  ::syscall(SYS_close_range, static_cast<unsigned>(kReportDescriptor + 1), ~0U, 0U);
  tell(kReportDescriptor, Step::pid, ::getpid());
  ::execve(plan.program.c_str(), plan.argv.data(), plan.envp.data());
  give_up(kReportDescriptor, Step::execute);
}

[[noreturn]] void fail(const Launch& launch, const Report& report) {
  const std::string reason = base::errno_text(report.value);
  switch (report.step) {
  case Step::change_user:
    throw Error(ErrorClass::unavailable, "cannot become user " + launch.user.name + " to run PostgreSQL: " + reason,
                "run holdfast as an ordinary user, or give it CAP_SETUID and CAP_SETGID");
  case Step::enter_directory:
    throw Error(ErrorClass::cannot_create,
                "user " + launch.user.name + ", who has to run PostgreSQL, cannot enter " + launch.directory.string() +
                    ": " + reason,
                "set data_dir to a place that this user can reach, such as /var/lib/holdfast, or run holdfast as an "
                "ordinary user");
  case Step::execute:
    throw Error(ErrorClass::unavailable, "cannot run " + launch.program.string() + ": " + reason);
  default:
    throw Error(ErrorClass::system, "cannot start " + launch.program.string() + ": " + reason);
  }
}

pid_t start(const Launch& launch, bool daemon) {
  Plan plan(launch);
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw Error(ErrorClass::system, "cannot make a pipe: " + base::errno_text(errno));
  }
  base::Fd reading(ends[0]);
  base::Fd writing(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) throw Error(ErrorClass::system, "cannot start a process: " + base::errno_text(errno));
  if (child == 0) become(plan, writing.get(), daemon);
  writing.reset();

  pid_t pid = -1;
  Report failure{Step::other, 0};
  bool failed = false;
  Report report{};
  while (true) { // until end of file, i.e. until the program runs
    const auto count = ::read(reading.get(), &report, sizeof report);
    if (count < 0 && errno == EINTR) continue;
    if (count != static_cast<ssize_t>(sizeof report)) break;
    if (report.step == Step::pid) {
      pid = report.value;
    } else {
      failure = report;
      failed = true;
    }
  }
  if (daemon || failed || pid < 0) {
    while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  if (failed || pid < 0) fail(launch, failure);
  return pid;
}

int status_of(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return 127; // SIGCHLD is ignored, so the kernel kept no status
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

} // namespace

int run_to_end(const Launch& launch, milliseconds limit) {
  const pid_t child = start(launch, false);
  if (!base::wait_for_exit(base::open_pidfd(child), limit)) {
    ::kill(child, SIGKILL);
    status_of(child);
    throw Error(ErrorClass::temporary,
                launch.program.string() + " did not finish within " + std::to_string(limit.count() / 1000) + " s");
  }
  return status_of(child);
}

pid_t start_daemon(const Launch& launch) { return start(launch, true); }

std::string output_of(const std::filesystem::path& program, const std::vector<std::string>& arguments) {
  const base::Fd output(::memfd_create("holdfast-output", MFD_CLOEXEC));
  if (!output) return {};
  try {
    const Launch launch{program, arguments, "/", output.get(), User{::geteuid(), ::getegid(), {}}};
    if (run_to_end(launch, std::chrono::seconds(10)) != 0) return {};
  } catch (const Error&) {
    return {};
  }
  std::string text(4096, '\0');
  const auto count = ::pread(output.get(), text.data(), text.size(), 0);
  text.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  return text;
}

} // namespace holdfast::server
