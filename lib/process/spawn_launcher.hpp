#pragma once
// Starts one program with posix_spawn and yields a boost::process::v2::basic_process: a launcher in the sense of
// Boost.Process v2, to be used in place of v2::default_process_launcher. Private to this module. One object starts one
// program; the calling thread needs no other property than to be alive.
//
// Boost's own launchers fork: they copy the page tables of a large parent, run code in the child of a threaded process,
// leave a zombie behind a failed exec and leak descriptors of a second thread's children. posix_spawn does not copy
// this process and runs none of our code between fork and exec. So an initialiser may have the steps that run in the
// parent (on_setup, on_error, on_success), but not on_exec_setup; it sets what the child needs on the launcher instead.

#include "lib/base/file.hpp"
#include "lib/process/shim/protocol.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/process/v2/process.hpp>

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>
#include <vector>

namespace holdfast::process {

// Returns the same file under a number that no descriptor of a shim has: posix_spawn would replace it.
inline base::Fd out_of_the_way(int fd) {
  base::Fd file(fd);
  return !file || fd >= shim::kFirstFree ? std::move(file) : base::Fd(::fcntl(fd, F_DUPFD_CLOEXEC, shim::kFirstFree));
}

class SpawnLauncher {
public:
  // The child's environment, under the name that it has in v2's own launchers.
  const char* const* env = ::environ;

  SpawnLauncher() {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawnattr_init(&attributes_);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    note(::posix_spawnattr_setsigmask(&attributes_, &none)); // no blocked and no ignored signal
    note(::posix_spawnattr_setsigdefault(&attributes_, &all));
  }
  ~SpawnLauncher() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  SpawnLauncher(const SpawnLauncher&) = delete;
  SpawnLauncher& operator=(const SpawnLauncher&) = delete;

  // The child's descriptors, in this order; an inherited one survives only below `first` of close_from.
  // `from` -1: /dev/null.
  void duplicate(int from, int to) {
    note(from < 0 ? ::posix_spawn_file_actions_addopen(&actions_, to, "/dev/null", O_RDWR, 0)
                  : ::posix_spawn_file_actions_adddup2(&actions_, from, to));
  }
  void close_from(int first) { note(::posix_spawn_file_actions_addclosefrom_np(&actions_, first)); }
  // A session, or a process group, of its own.
  void own_session() { flags_ |= POSIX_SPAWN_SETSID; }
  void own_group() { flags_ |= POSIX_SPAWN_SETPGROUP; }

  // Starts `program` with the arguments that follow its name. Without a process, `error` has the reason, also for a
  // program that cannot be executed, which leaves no zombie.
  template <class Executor, class Arguments, class... Initializers>
  boost::process::v2::basic_process<Executor> operator()(Executor executor, boost::process::v2::error_code& error,
                                                         const boost::process::v2::filesystem::path& program,
                                                         Arguments&& arguments, Initializers&&... steps) {
    namespace v2 = boost::process::v2;
    std::vector<const char*> words{program.c_str()};
    for (const auto& argument : arguments)
      words.push_back(argument.c_str());
    words.push_back(nullptr);
    const char* const* command_line = words.data();

    error = v2::posix::detail::on_setup(*this, program, command_line, steps...);
    pid_t pid = -1;
    if (!error) error = code(spawn(program.c_str(), command_line, pid));
    const int pidfd = error ? -1 : static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
    if (!error && pidfd < 0) error = code(errno);
    if (!error) {
      try { // the pid cannot be recycled before this: it is our child and not yet reaped
        v2::basic_process<Executor> process(executor, pid, pidfd);
        v2::posix::detail::on_success(*this, program, command_line, steps...);
        return process;
      } catch (const boost::system::system_error& failure) { // the reactor takes no more descriptors
        ::close(pidfd);
        error = failure.code();
      }
    }
    if (pid > 0) {
      ::kill(pid, SIGTERM); // a shim ends its tree, then itself
      ::waitpid(pid, nullptr, 0);
    }
    v2::posix::detail::on_error(*this, program, command_line, error, steps...);
    return v2::basic_process<Executor>(std::move(executor));
  }

  // Does the same, but throws boost::system::system_error.
  template <class Executor, class Arguments, class... Initializers>
  boost::process::v2::basic_process<Executor> operator()(Executor executor,
                                                         const boost::process::v2::filesystem::path& program,
                                                         Arguments&& arguments, Initializers&&... steps) {
    boost::process::v2::error_code error;
    auto process = (*this)(std::move(executor), error, program, std::forward<Arguments>(arguments), steps...);
    if (error) throw boost::system::system_error(error, program.string());
    return process;
  }

private:
  static boost::process::v2::error_code code(int number) { return {number, boost::system::system_category()}; }

  void note(int result) {
    if (error_ == 0) error_ = result;
  }

  int spawn(const char* program, const char* const* command_line, pid_t& pid) {
    note(::posix_spawnattr_setflags(&attributes_,
                                    static_cast<short>(flags_ | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF)));
    if (error_ != 0) return error_;
    return ::posix_spawn(&pid, program, &actions_, &attributes_, const_cast<char* const*>(command_line),
                         const_cast<char* const*>(env));
  }

  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
  int flags_{0};
  int error_{0}; // the first that preparing met
};

} // namespace holdfast::process
