// holdfast-guard [--spare=FILE] [--at-end=WORD]... [--] PROGRAM [ARGUMENT...]: runs a program and leaves nothing behind
// when it ends, however it ends - but for the process that FILE names then, with all below it: other programs may be
// using it. FILE is "PID START\n", START as in /proc/PID/stat, so a stale file spares no process. If that process is
// still there in the end, the guard runs the command that the WORDs make, which may end it, and waits for it.
//
// Parent of a worker, and process 1 of a container: it adopts and reaps every orphan, passes signals on, and at the end
// lets the shims end their hooks, then kills whatever is left. If the guard itself is killed, the program is killed
// with it (parent-death signal), and the shims see their sockets close. The program runs in a process group of its own,
// so that what is sent to the guard's group reaches it once: passed on.
//
// Exit status: the program's, or 128 + the signal that ended it; 127 if it cannot be found, 126 if it cannot be
// executed.

#include "lib/base/hide_secrets.hpp"
#include "lib/process/shim/process_tree.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

using namespace holdfast::process;

constexpr std::int64_t kShimsMayTake = 1'000; // milliseconds, from TERM to KILL
constexpr std::int64_t kUnkillable = 10'000;  // from the first KILL to giving up
constexpr const char* kShimName = "holdfast-shim";

tree::PidList list;

std::int64_t now_ms() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return std::int64_t{time.tv_sec} * 1'000 + time.tv_nsec / 1'000'000;
}

void say(const char* what, const char* which, int error) {
  dprintf(STDERR_FILENO, "holdfast-guard: %s%s%s%s\n", what, which, error != 0 ? ": " : "",
          error != 0 ? strerrordesc_np(error) : "");
}

bool is_shim(pid_t pid) {
  tree::Stat stat;
  return tree::read_stat(pid, stat) && std::strcmp(stat.name, kShimName) == 0;
}

// Returns the process that a file names, if it lives; else 0.
pid_t named_in(const char* file) {
  char text[64];
  if (file == nullptr || tree::read_small_file(file, text, sizeof text) <= 0) return 0;
  char *rest = nullptr, *end = nullptr;
  const auto pid = static_cast<pid_t>(std::strtol(text, &rest, 10));
  const auto start = std::strtoull(rest, &end, 10);
  tree::Stat stat;
  if (pid <= 1 || *end != '\n' || !tree::read_stat(pid, stat)) return 0;
  return stat.start_ticks == start && stat.state != 'Z' ? pid : 0;
}

// Hands the terminal, if the guard's group has it, to the program's group.
void give_terminal(pid_t from_group, pid_t to_group) {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (isatty(fd) && tcgetpgrp(fd) == from_group) {
      tcsetpgrp(fd, to_group);
      return;
    }
}

class Guard {
public:
  // `spare`: a file, or nullptr. `at_end`: a command, perhaps without words.
  Guard(const sigset_t& handled, const char* spare, char** at_end)
      : handled_(handled), group_(getpgrp()), spare_(spare), at_end_(at_end) {}

  int run(char** program) {
    volatile int error = 0;
    const pid_t self = getpid();
    program_ = vfork();
    if (program_ == 0) become_program(self, program, error);
    if (program_ < 0) {
      say("cannot start ", program[0], errno);
      return 126;
    }
    while (!ended_) {
      siginfo_t info;
      const int signal = sigwaitinfo(&handled_, &info);
      if (signal == SIGCHLD) {
        reap();
      } else if (signal > 0) {
        pass_on(signal);
      }
    }
    if (error != 0) say("cannot execute ", program[0], error);
    end_everything();
    if (*at_end_ != nullptr && named_in(spare_) != 0) run_at_end();
    return WIFSIGNALED(status_) ? 128 + WTERMSIG(status_) : WEXITSTATUS(status_);
  }

private:
  // In the child of vfork: system calls only.
  [[noreturn]] void become_program(pid_t guard, char** program, volatile int& error) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != guard) _exit(126); // the guard died before the line above
    setpgid(0, 0);
    give_terminal(group_, getpid()); // SIGTTOU is blocked here
    signal(SIGTTOU, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    execvp(program[0], program);
    error = errno;
    _exit(error == ENOENT ? 127 : 126);
  }

  void run_at_end() {
    const pid_t child = vfork();
    if (child == 0) {
      sigset_t none;
      sigemptyset(&none);
      sigprocmask(SIG_SETMASK, &none, nullptr);
      execvp(at_end_[0], at_end_);
      _exit(127);
    }
    if (child < 0) return say("cannot start ", at_end_[0], errno);
    while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
  }

  void pass_on(int signal) {
    kill(program_, signal);
    if (signal == SIGTERM) kill(program_, SIGCONT); // a stopped program must wake up to obey
  }

  // Returns true if children are left.
  bool reap() {
    for (;;) {
      int status = 0;
      const pid_t pid = waitpid(-1, &status, WNOHANG | WUNTRACED);
      if (pid == 0) return true;
      if (pid < 0) return errno == EINTR;
      if (pid != program_) continue;
      if (WIFSTOPPED(status)) {
        if (WSTOPSIG(status) == SIGTSTP && getpid() != 1) stop_as_well();
        continue;
      }
      status_ = status;
      ended_ = true;
    }
  }

  // ^Z on a terminal: the shell that started the guard must see its job stop, and continue it later.
  void stop_as_well() {
    give_terminal(program_, group_);
    kill(getpid(), SIGSTOP);
    give_terminal(group_, program_);
    kill(-program_, SIGCONT);
  }

  void wait_for_child(std::int64_t milliseconds) {
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    const timespec timeout{milliseconds / 1'000, (milliseconds % 1'000) * 1'000'000};
    sigtimedwait(&child, nullptr, &timeout);
  }

  // TERM to everything except what is below a shim: that is the shim's to end, and it is quicker.
  void terminate_all() {
    static pid_t parents[tree::kCapacity];
    tree::find_descendants(list);
    for (std::size_t i = 0; i < list.count; ++i) {
      tree::Stat stat;
      parents[i] = tree::read_stat(list.pids[i], stat) ? stat.parent : 0;
    }
    // Nearest come first, so a parent is decided before its children: a 0 marks a shim's realm.
    for (std::size_t i = 0; i < list.count; ++i) {
      bool covered = parents[i] == 0;
      for (std::size_t j = 0; j < i && !covered; ++j)
        covered = list.pids[j] == parents[i] && parents[j] == 0;
      if (!covered) {
        kill(list.pids[i], SIGTERM);
        kill(list.pids[i], SIGCONT);
      }
      if (covered || is_shim(list.pids[i])) parents[i] = 0;
    }
  }

  // Reaps what has ended; true if something is left that is not spared.
  bool any_left() {
    if (!reap()) return false;
    if (tree::spared == 0) return true;
    tree::find_descendants(list);
    return list.count > 0;
  }

  void end_everything() {
    tree::spared = named_in(spare_);
    if (!any_left()) return;
    terminate_all();
    const std::int64_t kill_at = now_ms() + kShimsMayTake;
    while (any_left()) {
      const std::int64_t left = kill_at - now_ms();
      if (left <= 0) break;
      wait_for_child(left);
    }
    const std::int64_t give_up = now_ms() + kUnkillable;
    while (any_left()) {
      if (now_ms() >= give_up) {
        say("a process cannot be killed; leaving it", "", 0);
        return;
      }
      tree::freeze_and_kill(list);
      wait_for_child(10);
    }
  }

  const sigset_t handled_;
  const pid_t group_;
  const char* const spare_;
  char** const at_end_;
  pid_t program_{0};
  int status_{0};
  bool ended_{false};
};

} // namespace

int main(int, char** argv) {
  char** program = argv + 1;
  const char* spare = nullptr;
  char** const at_end = argv; // its words move to the front
  char** next_word = at_end;
  constexpr const char *kSpare = "--spare=", *kAtEnd = "--at-end=";
  for (; *program != nullptr; ++program) {
    if (std::strncmp(*program, kSpare, std::strlen(kSpare)) == 0)
      spare = *program + std::strlen(kSpare);
    else if (std::strncmp(*program, kAtEnd, std::strlen(kAtEnd)) == 0)
      *next_word++ = *program + std::strlen(kAtEnd);
    else
      break;
  }
  const bool separated = *program != nullptr && std::strcmp(*program, "--") == 0;
  if (separated) ++program;
  *next_word = nullptr; // before the program: there are fewer words than arguments so far
  if (*program == nullptr || (!separated && program[0][0] == '-')) {
    say("usage: holdfast-guard [--spare=FILE] [--at-end=WORD]... [--] PROGRAM [ARGUMENT...]", "", 0);
    return 64;
  }
  sigset_t handled;
  sigemptyset(&handled);
  for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2})
    sigaddset(&handled, signal);
  sigset_t blocked = handled;
  sigaddset(&blocked, SIGTTOU);
  sigprocmask(SIG_BLOCK, &blocked, nullptr);
  signal(SIGCHLD, SIG_DFL); // inherited as ignored, it would reap for us and hide the status
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  prctl(PR_SET_DUMPABLE, 0); // hooks of the same user must not read the memory of a program with secrets
  holdfast::base::hide_secrets(environ);
  return Guard(handled, spare, at_end).run(program);
}
