// holdfast-shim: the parent of one hook. Started by the launcher with the control socket as descriptor 3 and the hook's
// own standard descriptors, environment and argument list (protocol.hpp). It ends when no descendant is left.
//
// It is a subreaper, so that nothing a hook starts can leave it, and a process of its own, so that the end of the
// worker is an end of file on the socket: then everything below it is killed at once. SIGTERM to the shim means the
// same. Send it TERM, never KILL: a killed shim loses its tree.

#include "lib/process/shim/calls.hpp"
#include "lib/process/shim/cgroup.hpp"
#include "lib/process/shim/limits.hpp"
#include "lib/process/shim/network.hpp"
#include "lib/process/shim/process_tree.hpp"
#include "lib/process/shim/protocol.hpp"
#include "lib/process/shim/self.hpp"
#include "lib/process/shim/user.hpp"
#include "lib/process/shim/view.hpp"

#include <errno.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace holdfast::process;
using shim::kControlDescriptor;

constexpr int64_t kNever = INT64_MAX;
constexpr int64_t kLinger = 200'000; // the tail of a pipeline may outlive the hook this long: it is not a leftover
constexpr int64_t kLeftoverGrace = 200'000; // TERM to KILL for what a hook left behind
constexpr int64_t kUnkillable = 10'000'000; // first KILL to giving up: a process stuck in the kernel cannot be killed
constexpr int64_t kLook = 100'000;          // between two looks at the memory of the tree
constexpr int64_t kLookAtCount = 250'000;   // ... at the number of its processes alone
constexpr int64_t kFirstRetry = 2'000, kLongestRetry = 200'000; // from one round of KILL to the next

// State of the program: one shim supervises one hook. `list` is large and mostly never touched. Nothing is to run
// before main.
constinit tree::PidList list{};
constinit shim::Cgroup cgroup;
constinit shim::View view;

// Why the hook could not be started; written by the child, which shares this memory until it executes.
struct Failure {
  volatile int error;
  volatile shim::Step step;
};
Failure own_failure;
Failure* failure = &own_failure;
bool born_in_cgroup = false; // the hook's process

// Like vfork, into the hook's cgroup (-1: none) and namespaces. The child has a copy of our memory but for `failure`: a
// stack that two return on is for vfork to handle. -1: not to be had.
pid_t fork_into(int directory, uint64_t namespaces) {
  if (failure == &own_failure) {
    void* shared = mmap(nullptr, sizeof(Failure), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) return -1;
    failure = static_cast<Failure*>(shared);
  }
  clone_args arguments{};
  arguments.flags = CLONE_VFORK | namespaces | (directory >= 0 ? CLONE_INTO_CGROUP : 0);
  arguments.exit_signal = SIGCHLD;
  arguments.cgroup = static_cast<uint64_t>(directory);
  return static_cast<pid_t>(syscall(SYS_clone3, &arguments, sizeof arguments));
}

[[noreturn]] void give_up(int error) {
  failure->error = error;
  _exit(127);
}

// In the child: with vfork the memory is the shim's, so only system calls, and `failure` is filled in.
[[noreturn]] void become_hook(pid_t shim_pid, char** argv, const shim::Limits& limits) {
  cgroup.enter(born_in_cgroup);
  setsid(); // session and process group of its own
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != shim_pid) _exit(126); // the shim died before the line above
  failure->step = shim::Step::sandbox;
  if (view.wanted())
    if (const int error = view.make()) give_up(error);
  syscall(SYS_close_range, kControlDescriptor, ~0u, 0); // not in every C library
  failure->step = shim::Step::directory;
  if (argv[4][0] != '\0')
    if (const int error = view.enter(argv[4])) give_up(error);
  shim::prefer_as_victim();
  failure->step = shim::Step::limits;
  if (const int error = shim::apply_limits(limits.of_process)) give_up(error);
  if (const int error = shim::lower_limit(RLIMIT_NPROC, shim::most_tasks(limits.processes, view.user() != 0)))
    give_up(error);
  failure->step = shim::Step::sandbox;
  if (view.wanted()) {
    if (const int error = view.change_user()) give_up(error);
    prctl(PR_SET_PDEATHSIG, SIGKILL); // a change of user clears it
    if (getppid() != shim_pid) _exit(126);
    if (const int error = shim::refuse_calls()) give_up(error);
  }
  failure->step = shim::Step::execute;
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr); // dispositions are the default ones: the launcher has reset them
  execve(argv[5], argv + 5, environ);
  give_up(errno);
}

class Supervisor {
public:
  Supervisor(pid_t leader, int signals, const shim::Limits& limits, shim::Report& report)
      : leader_(leader), signals_(signals), most_memory_(limits.memory), most_processes_(limits.processes),
        report_(report), started_(shim::now_us()) {
    if (most_memory_ != shim::kUnlimited)
      look_every_ = kLook;
    else if (most_processes_ != shim::kUnlimited)
      look_every_ = kLookAtCount;
    if (look_every_ != kNever) next_look_ = started_ + look_every_;
    if (limits.tell_ms != shim::kUnlimited) {
      tell_every_ = static_cast<int64_t>(limits.tell_ms) * 1'000;
      next_telling_ = started_ + tell_every_;
    }
  }

  // Returns when no descendant is left, or when what is left cannot be killed.
  void run() {
    while (reap()) {
      const int64_t now = shim::now_us();
      if (leader_gone_ && linger_until_ == kNever && !killing()) linger_until_ = now + kLinger;
      if (leader_gone_ && !ending_leftovers_ && linger_until_ <= now) end_leftovers(now);
      if (next_look_ <= now) look(now);
      if (next_telling_ <= now) tell(now);
      if (kill_at_ <= now) kill_all(now);
      if (killing() && now - first_kill_ > kUnkillable) {
        tree::find_descendants(list);
        report_.unkillable = static_cast<uint32_t>(list.count);
        break;
      }
      wait_for_event(now);
    }
    report_.tree = used_so_far();
    if (peak_memory_ / 1024 > report_.tree.peak_kib) report_.tree.peak_kib = peak_memory_ / 1024;
    // Limits exceeded between two checks: the kernel was quicker.
    if (report_.excess == shim::Excess::none && cgroup.out_of_memory()) report_.excess = shim::Excess::memory;
  }

private:
  bool killing() const { return first_kill_ != kNever; }

  // Reaps every ended child. Returns false if none is left, ended or running.
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
        report_.wall_us = static_cast<uint64_t>(shim::now_us() - started_);
        report_.leader = shim::consumption(usage);
      } else if (ending_leftovers_) {
        ++report_.leftovers;
      }
    }
  }

  void terminate_all() {
    tree::find_descendants(list);
    if (!leader_gone_) kill(-leader_, SIGTERM); // once the leader is reaped its group number is free
    for (size_t i = 0; i < list.count; ++i) {
      const pid_t pid = list.pids[i];
      // Once each: many programs take a second TERM for impatience. The group has had its own.
      if (leader_gone_ || getpgid(pid) != leader_) kill(pid, SIGTERM);
    }
    for (size_t i = 0; i < list.count; ++i)
      kill(list.pids[i], SIGCONT); // a stopped process must wake up to obey
  }

  // By one call: all that its user runs, or, of the shim's own user, the hook's process group.
  void signal_tree(int signal) const {
    if (view.user() != 0)
      shim::signal_user_from_here(view.user(), signal);
    else if (!leader_gone_)
      kill(-leader_, signal);
  }

  void end_leftovers(int64_t now) {
    ending_leftovers_ = true;
    terminate_all();
    kill_at_ = shim::sooner(kill_at_, now + kLeftoverGrace);
  }

  void kill_all(int64_t now) {
    if (!killing()) {
      first_kill_ = now;
      if (leader_gone_) ending_leftovers_ = true;
    }
    bool found = cgroup.kill_all(list);
    // A thousand forking processes leave no time to stop them one by one. All other processes of their user, the hooks
    // of its crawl, stand still for the moment.
    const bool crowd = report_.excess == shim::Excess::processes && view.user() != 0;
    if (crowd) shim::signal_user(view.user(), SIGSTOP);
    found |= tree::freeze_and_kill(list) > 0;   // what has left its cgroup, or never had one
    if (!leader_gone_) kill(-leader_, SIGKILL); // also where /proc cannot be read
    if (crowd) shim::signal_user(view.user(), SIGCONT);
    if (found && report_.terminated != 0) report_.killed = 1;
    kill_at_ = shim::now_us() + retry_;
    retry_ = shim::sooner(retry_ * 2, kLongestRetry);
  }

  // Sends KILL if the tree is over one of its limits. A shared page counts for every process at first, since that is
  // cheap; only a tree that is over by that count is measured exactly.
  void look(int64_t now) {
    next_look_ = killing() ? kNever : now + look_every_;
    if (killing()) return;
    // A bomb may have the processors, and a check of each of its processes takes minutes then: all of it is stopped
    // first, by one call.
    const uint64_t tasks = shim::tasks_of_machine();
    const bool sudden = most_processes_ != shim::kUnlimited && tasks > tasks_ + most_processes_ / 2;
    tasks_ = tasks;
    if (sudden) signal_tree(SIGSTOP);
    const uint64_t memory = cgroup.memory_bytes();
    if (memory > peak_memory_) peak_memory_ = memory;
    tree::find_descendants(list);
    if (list.count > most_processes_) {
      report_.excess = shim::Excess::processes;
    } else if (most_memory_ != shim::kUnlimited &&
               (cgroup.out_of_memory() ||
                (tree::resident_bytes(list) > most_memory_ && tree::memory_bytes(list) > most_memory_))) {
      report_.excess = shim::Excess::memory;
    } else {
      if (sudden) signal_tree(SIGCONT);
      return;
    }
    report_.terminated = 1;
    kill_at_ = now;
  }

  // By the reaped children or, if that is more, by all processes of the cgroup. A process that ignores SIGCHLD leaves
  // children that no wait() counts.
  static shim::Consumption used_so_far() {
    rusage usage;
    getrusage(RUSAGE_CHILDREN, &usage);
    shim::Consumption used = shim::consumption(usage);
    int64_t user = 0, system = 0;
    if (cgroup.cpu_us(user, system) && user + system > used.user_us + used.system_us) {
      used.user_us = user;
      used.system_us = system;
    }
    return used;
  }

  // Reports the CPU time of the tree, if it has changed since the last report.
  void tell(int64_t now) {
    next_telling_ = now + tell_every_;
    shim::Consumption used = used_so_far();
    if (int64_t user = 0, system = 0; !cgroup.cpu_us(user, system)) {
      tree::find_descendants(list);
      used.user_us += static_cast<int64_t>(tree::cpu_ticks(list)) * 1'000'000 / sysconf(_SC_CLK_TCK);
    }
    if (used.user_us + used.system_us == told_) return;
    told_ = used.user_us + used.system_us;
    shim::Report report = report_;
    report.kind = shim::ReportKind::used;
    report.tree = used;
    shim::send_report(report);
  }

  // TERM now and KILL after `grace`, or KILL at once if it is 0 and `politely` is false.
  void order(int64_t grace_us, bool politely) {
    const int64_t deadline = shim::now_us() + grace_us;
    if (!leader_gone_) report_.terminated = 1;
    if (politely && !asked_ && !killing()) terminate_all();
    asked_ = true;
    if (!killing()) kill_at_ = shim::sooner(kill_at_, deadline);
  }

  void read_commands() {
    shim::Command received;
    const ssize_t got = recv(kControlDescriptor, &received, sizeof received, MSG_DONTWAIT);
    if (got == static_cast<ssize_t>(sizeof received)) {
      if (received.kind == shim::CommandKind::terminate) order(int64_t{received.grace_ms} * 1'000, true);
      if (received.kind == shim::CommandKind::kill) order(0, false);
    } else if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
      listening_ = false; // our starter has ended
      order(0, false);
    }
  }

  void read_signals() {
    signalfd_siginfo infos[8];
    const ssize_t got = read(signals_, infos, sizeof infos);
    for (ssize_t i = 0; i * static_cast<ssize_t>(sizeof infos[0]) < got; ++i)
      if (infos[i].ssi_signo != SIGCHLD) order(0, false);
  }

  void wait_for_event(int64_t now) {
    int64_t until = kill_at_;
    if (leader_gone_ && !ending_leftovers_) until = shim::sooner(until, linger_until_);
    until = shim::sooner(until, shim::sooner(next_look_, next_telling_));
    const int timeout =
        until == kNever ? -1 : static_cast<int>(shim::sooner(until > now ? (until - now + 999) / 1'000 : 0, 60'000));
    pollfd waits[2] = {{signals_, POLLIN, 0}, {listening_ ? kControlDescriptor : -1, POLLIN, 0}};
    if (poll(waits, 2, timeout) <= 0) return;
    if (waits[0].revents != 0) read_signals();
    if (waits[1].revents != 0) read_commands();
  }

  const pid_t leader_;
  const int signals_;
  const uint64_t most_memory_, most_processes_;
  uint64_t tasks_{shim::tasks_of_machine()}; // at the last look
  shim::Report& report_;
  const int64_t started_;
  int64_t kill_at_{kNever};      // when the next round of KILL is due
  int64_t first_kill_{kNever};   // when the first one was
  int64_t linger_until_{kNever}; // when the leader's remains are requested to end
  int64_t retry_{kFirstRetry};
  int64_t look_every_{kNever}, next_look_{kNever};    // at what the tree uses
  int64_t tell_every_{kNever}, next_telling_{kNever}; // of its CPU time
  int64_t told_{0};
  uint64_t peak_memory_{0}; // from the cgroup
  bool leader_gone_{false};
  bool asked_{false};            // TERM or KILL has been ordered
  bool ending_leftovers_{false}; // signals have been sent to what the leader left behind
  bool listening_{true};
};

} // namespace

int main(int argc, char** argv) {
  if (argc == 3 && strcmp(argv[1], "network") == 0) return shim::network_main(argv[2]);
  if (argc == 3 && strcmp(argv[1], "end") == 0) {
    if (const auto uid = static_cast<uid_t>(strtoul(argv[2], nullptr, 10)); uid != 0) shim::signal_user(uid, SIGKILL);
    return 0;
  }
  if (argc < 6) {
    constexpr char usage[] = "holdfast-shim: started by holdfast for each hook; not to be run by hand\n";
    (void)!write(STDERR_FILENO, usage, sizeof usage - 1);
    return 64;
  }
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, nullptr);
  sigset_t handled;
  sigemptyset(&handled);
  constexpr int kHandled[] = {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT};
  for (const int signal : kHandled)
    sigaddset(&handled, signal);
  const int signals = signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK);
  prctl(PR_SET_CHILD_SUBREAPER, 1);

  shim::Report report{};
  shim::Limits limits;
  const bool understood = shim::read_limits(argv[1], limits) && view.read(argv[3]);
  if (!understood) errno = EINVAL;
  const pid_t self = getpid();
  pid_t leader = -1;
  if (signals >= 0 && understood) {
    const uint64_t tasks = shim::most_tasks(limits.processes, true);
    cgroup.make(argv[2], limits.memory == shim::kUnlimited ? 0 : limits.memory, tasks == shim::kUnlimited ? 0 : tasks);
    const int birthplace = cgroup.birthplace();
    born_in_cgroup = birthplace >= 0;
    if (born_in_cgroup) leader = fork_into(birthplace, view.clone_flags());
    if (leader < 0) {
      born_in_cgroup = false;
      leader = view.needs_namespaces() ? fork_into(-1, view.clone_flags()) : vfork();
    }
    if (leader == 0) become_hook(self, argv, limits);
  }
  if (leader < 0) {
    failure->error = errno;
    failure->step = understood && view.wanted() ? shim::Step::sandbox : shim::Step::fork;
  }
  // The hook has its own files: no reader waits for ours to be closed.
  syscall(SYS_close_range, 0, kControlDescriptor - 1, 0);
  view.close_descriptors();

  shim::take_short_turns(); // the hook has the usual ones
  if (leader > 0) {
    report.pid = leader;
    if (tree::Stat stat; tree::read_stat(leader, stat)) report.start_ticks = stat.start_ticks;
    if (failure->error == 0) {
      report.kind = shim::ReportKind::started;
      shim::send_report(report);
    }
    Supervisor(leader, signals, limits, report).run();
  }
  report.kind = shim::ReportKind::ended;
  report.start_errno = failure->error;
  report.failed_step = failure->error != 0 ? static_cast<shim::Step>(failure->step) : shim::Step::none;
  shim::send_report(report);
  cgroup.remove();
  return 0;
}
