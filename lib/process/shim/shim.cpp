// holdfast-shim: the parent of one hook. Started by the launcher with the control socket as descriptor 3 and the hook's
// own standard descriptors, environment and argument list (protocol.hpp). It ends when no descendant is left.
//
// It is a subreaper, so that nothing a hook starts can leave it, and a process of its own, so that the end of the node
// is an end of file on the socket: then everything below it is killed at once. SIGTERM to the shim means the same. Send
// it TERM, never KILL: a killed shim loses its tree.

#include "lib/process/shim/process_tree.hpp"
#include "lib/process/shim/protocol.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <initializer_list>

namespace {

using namespace holdfast::process;
using shim::kControlDescriptor;

constexpr std::int64_t kNever = INT64_MAX;
constexpr std::int64_t kLinger = 200'000; // the tail of a pipeline may outlive the hook this long: it is not a leftover
constexpr std::int64_t kLeftoverGrace = 200'000; // TERM to KILL for what a hook left behind
constexpr std::int64_t kUnkillable =
    10'000'000;                         // first KILL to giving up: a process stuck in the kernel cannot be killed
constexpr std::int64_t kLook = 100'000; // between two looks at the memory of the tree
constexpr std::int64_t kLookAtCount = 250'000;                       // ... at the number of its processes alone
constexpr int kEndFirst = 500;                                       // oom_score_adj: before the node and its database
constexpr std::int64_t kFirstRetry = 2'000, kLongestRetry = 200'000; // from one round of KILL to the next

// One shim supervises one hook: its state is the program's state. `list` is large and mostly never touched.
tree::PidList list;

std::int64_t now_us() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return std::int64_t{time.tv_sec} * 1'000'000 + time.tv_nsec / 1'000;
}

std::int64_t sooner(std::int64_t a, std::int64_t b) { return a < b ? a : b; }

shim::Consumption consumption(const rusage& usage) {
  return {std::int64_t{usage.ru_utime.tv_sec} * 1'000'000 + usage.ru_utime.tv_usec,
          std::int64_t{usage.ru_stime.tv_sec} * 1'000'000 + usage.ru_stime.tv_usec,
          static_cast<std::uint64_t>(usage.ru_maxrss), static_cast<std::uint64_t>(usage.ru_inblock),
          static_cast<std::uint64_t>(usage.ru_oublock)};
}

void send_report(const shim::Report& report) {
  // A launcher that is gone or does not read is told nothing; the shim's duty to the tree does not depend on it.
  (void)send(kControlDescriptor, &report, sizeof report, MSG_NOSIGNAL | MSG_DONTWAIT);
}

constexpr std::uint64_t kUnlimited = UINT64_MAX;
constexpr int kAllLimits = shim::kLimitCount + shim::kWatchedCount;

// Reads "n,n,-,n,-,n,-". False if it is anything else.
bool read_limits(const char* text, std::uint64_t (&limits)[kAllLimits]) {
  for (std::uint64_t& limit : limits) {
    char* end = nullptr;
    limit = *text == '-' ? kUnlimited : std::strtoull(text, &end, 10);
    if (*text == '-') {
      ++text;
    } else if (end == text) {
      return false;
    } else {
      text = end;
    }
    if (*text == ',') ++text;
  }
  return true;
}

// Sets those that the kernel knows; never raises one above the one inherited. 0 or an errno value.
int apply_limits(const std::uint64_t (&limits)[kAllLimits]) {
  constexpr __rlimit_resource resources[shim::kLimitCount] = {RLIMIT_AS, RLIMIT_FSIZE, RLIMIT_NOFILE, RLIMIT_CORE,
                                                              RLIMIT_NPROC};
  for (int i = 0; i < shim::kLimitCount; ++i) {
    if (limits[i] == kUnlimited) continue;
    rlimit limit;
    if (getrlimit(resources[i], &limit) != 0) return errno;
    if (limit.rlim_max == RLIM_INFINITY || limits[i] < limit.rlim_max) limit.rlim_max = limits[i];
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(resources[i], &limit) != 0) return errno;
  }
  return 0;
}

// When the machine runs out of memory, hooks are what the kernel ends first.
void prefer_as_victim() {
  constexpr const char* file = "/proc/self/oom_score_adj";
  char text[32];
  if (tree::read_small_file(file, text, sizeof text) <= 0 || std::strtol(text, nullptr, 10) >= kEndFirst) return;
  const int fd = open(file, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  static_assert(kEndFirst == 500);
  (void)!write(fd, "500", 3);
  close(fd);
}

// Why the hook could not be started; written by the child of vfork, which shares our memory until it executes.
struct Failure {
  volatile int error;
  volatile shim::Step step;
};
Failure failure;

// In the child of vfork: the memory is the shim's, so only system calls, and `failure` is filled in.
[[noreturn]] void become_hook(pid_t shim_pid, char** argv, const std::uint64_t (&limits)[kAllLimits]) {
  setsid(); // session and process group of its own
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != shim_pid) _exit(126); // the shim died before the line above
  close_range(kControlDescriptor, ~0u, 0);
  failure.step = shim::Step::directory;
  if (argv[2][0] != '\0' && chdir(argv[2]) != 0) {
    failure.error = errno;
    _exit(127);
  }
  failure.step = shim::Step::limits;
  if (const int error = apply_limits(limits); error != 0) {
    failure.error = error;
    _exit(127);
  }
  prefer_as_victim();
  failure.step = shim::Step::execute;
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none,
              nullptr); // dispositions are the default ones: the launcher reset them, the shim set none
  execve(argv[3], argv + 3, environ);
  failure.error = errno;
  _exit(127);
}

class Supervisor {
public:
  Supervisor(pid_t leader, int signals, std::uint64_t most_memory, std::uint64_t most_processes, shim::Report& report)
      : leader_(leader), signals_(signals), most_memory_(most_memory), most_processes_(most_processes), report_(report),
        started_(now_us()) {
    if (most_memory != kUnlimited)
      look_every_ = kLook;
    else if (most_processes != kUnlimited)
      look_every_ = kLookAtCount;
    if (look_every_ != kNever) next_look_ = started_ + look_every_;
  }

  // Returns when no descendant is left, or when what is left cannot be killed.
  void run() {
    while (reap()) {
      const std::int64_t now = now_us();
      if (leader_gone_ && linger_until_ == kNever && !killing()) linger_until_ = now + kLinger;
      if (leader_gone_ && !ending_leftovers_ && linger_until_ <= now) end_leftovers(now);
      if (next_look_ <= now) look(now);
      if (kill_at_ <= now) kill_all(now);
      if (killing() && now - first_kill_ > kUnkillable) {
        tree::find_descendants(list);
        report_.unkillable = static_cast<std::uint32_t>(list.count);
        break;
      }
      wait_for_event(now);
    }
    rusage usage;
    getrusage(RUSAGE_CHILDREN, &usage);
    report_.tree = consumption(usage);
  }

private:
  bool killing() const { return first_kill_ != kNever; }

  // Takes every ended child. False if none is left, ended or running.
  bool reap() {
    for (;;) {
      int status = 0;
      rusage usage;
      const pid_t pid = wait4(-1, &status, WNOHANG, &usage);
      if (pid == 0) return true;
      if (pid < 0) return errno == EINTR;
      if (pid == leader_) {
        leader_gone_ = true;
        report_.wait_status = status;
        report_.wall_us = static_cast<std::uint64_t>(now_us() - started_);
        report_.leader = consumption(usage);
      } else if (ending_leftovers_) {
        ++report_.leftovers;
      }
    }
  }

  void terminate_all() {
    tree::find_descendants(list);
    if (!leader_gone_) kill(-leader_, SIGTERM); // once the leader is reaped its group number is nobody's
    for (std::size_t i = 0; i < list.count; ++i) {
      const pid_t pid = list.pids[i];
      // Once each: many programs take a second TERM for impatience. The group has had its own.
      if (leader_gone_ || getpgid(pid) != leader_) kill(pid, SIGTERM);
    }
    for (std::size_t i = 0; i < list.count; ++i)
      kill(list.pids[i], SIGCONT); // a stopped process must wake up to obey
  }

  void end_leftovers(std::int64_t now) {
    ending_leftovers_ = true;
    terminate_all();
    kill_at_ = sooner(kill_at_, now + kLeftoverGrace);
  }

  void kill_all(std::int64_t now) {
    if (!killing()) {
      first_kill_ = now;
      if (leader_gone_) ending_leftovers_ = true;
    }
    const std::size_t found = tree::freeze_and_kill(list);
    if (!leader_gone_) kill(-leader_, SIGKILL); // also where /proc cannot be read
    if (found > 0 && report_.terminated != 0) report_.killed = 1;
    kill_at_ = now_us() + retry_;
    retry_ = sooner(retry_ * 2, kLongestRetry);
  }

  // KILL if the tree is over one of its limits. A shared page counts for every process at first, since that is cheap to
  // know; only a tree that is over by that count is measured exactly.
  void look(std::int64_t now) {
    next_look_ = killing() ? kNever : now + look_every_;
    if (killing()) return;
    tree::find_descendants(list);
    if (list.count > most_processes_) {
      report_.excess = shim::Excess::processes;
    } else if (most_memory_ != kUnlimited && tree::resident_bytes(list) > most_memory_ &&
               tree::memory_bytes(list) > most_memory_) {
      report_.excess = shim::Excess::memory;
    } else {
      return;
    }
    report_.terminated = 1;
    kill_at_ = now;
  }

  // TERM now and KILL after `grace`, or KILL at once if it is 0 and `politely` is false.
  void order(std::int64_t grace_us, bool politely) {
    const std::int64_t deadline = now_us() + grace_us;
    if (!leader_gone_) report_.terminated = 1;
    if (politely && !asked_ && !killing()) terminate_all();
    asked_ = true;
    if (!killing()) kill_at_ = sooner(kill_at_, deadline);
  }

  void read_orders() {
    shim::Order received;
    const ssize_t got = recv(kControlDescriptor, &received, sizeof received, MSG_DONTWAIT);
    if (got == static_cast<ssize_t>(sizeof received)) {
      if (received.kind == shim::OrderKind::terminate) order(std::int64_t{received.grace_ms} * 1'000, true);
      if (received.kind == shim::OrderKind::kill) order(0, false);
    } else if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
      listening_ = false; // whoever started us is gone
      order(0, false);
    }
  }

  void read_signals() {
    signalfd_siginfo infos[8];
    const ssize_t got = read(signals_, infos, sizeof infos);
    for (ssize_t i = 0; i * static_cast<ssize_t>(sizeof infos[0]) < got; ++i)
      if (infos[i].ssi_signo != SIGCHLD) order(0, false);
  }

  void wait_for_event(std::int64_t now) {
    std::int64_t until = kill_at_;
    if (leader_gone_ && !ending_leftovers_) until = sooner(until, linger_until_);
    until = sooner(until, next_look_);
    const int timeout =
        until == kNever ? -1 : static_cast<int>(sooner(until > now ? (until - now + 999) / 1'000 : 0, 60'000));
    pollfd waits[2] = {{signals_, POLLIN, 0}, {listening_ ? kControlDescriptor : -1, POLLIN, 0}};
    if (poll(waits, 2, timeout) <= 0) return;
    if (waits[0].revents != 0) read_signals();
    if (waits[1].revents != 0) read_orders();
  }

  const pid_t leader_;
  const int signals_;
  const std::uint64_t most_memory_, most_processes_;
  shim::Report& report_;
  const std::int64_t started_;
  std::int64_t kill_at_{kNever};      // when the next round of KILL is due
  std::int64_t first_kill_{kNever};   // when the first one was
  std::int64_t linger_until_{kNever}; // when what the leader left behind is asked to end
  std::int64_t retry_{kFirstRetry};
  std::int64_t look_every_{kNever}, next_look_{kNever}; // at what the tree uses
  bool leader_gone_{false};
  bool asked_{false};            // TERM or KILL has been ordered
  bool ending_leftovers_{false}; // signals have been sent to what the leader left behind
  bool listening_{true};
};

} // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    constexpr char usage[] = "holdfast-shim: started by holdfast for each hook; not to be run by hand\n";
    (void)!write(STDERR_FILENO, usage, sizeof usage - 1);
    return 64;
  }
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, nullptr);
  sigset_t handled;
  sigemptyset(&handled);
  for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT})
    sigaddset(&handled, signal);
  const int signals = signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK);
  prctl(PR_SET_CHILD_SUBREAPER, 1);

  shim::Report report{};
  std::uint64_t limits[kAllLimits];
  const bool understood = read_limits(argv[1], limits);
  if (!understood) errno = EINVAL;
  const pid_t self = getpid();
  const pid_t leader = signals < 0 || !understood ? -1 : vfork();
  if (leader == 0) become_hook(self, argv, limits);
  if (leader < 0) {
    failure.error = errno;
    failure.step = shim::Step::fork;
  }
  close_range(0, kControlDescriptor - 1, 0); // the hook's files are the hook's: nobody waits for ours to be closed

  if (leader > 0) {
    report.pid = leader;
    if (tree::Stat stat; tree::read_stat(leader, stat)) report.start_ticks = stat.start_ticks;
    if (failure.error == 0) {
      report.kind = shim::ReportKind::started;
      send_report(report);
    }
    Supervisor(leader, signals, limits[shim::kLimitCount], limits[shim::kLimitCount + 1], report).run();
  }
  report.kind = shim::ReportKind::ended;
  report.start_errno = failure.error;
  report.failed_step = failure.error != 0 ? static_cast<shim::Step>(failure.step) : shim::Step::none;
  send_report(report);
  return 0;
}
