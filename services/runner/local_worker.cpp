#include "services/runner/local_worker.hpp"

#include "lib/base/error.hpp"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

extern char** environ;

namespace holdfast::runner {

LocalWorker::LocalWorker(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  for (const auto& word : command)
    arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  posix_spawnattr_setpgroup(&attributes, 0);
  sigset_t none, usual;
  sigemptyset(&none);
  sigemptyset(&usual);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE})
    sigaddset(&usual, number);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &usual);
  const int error = posix_spawn(&pid_, arguments[0], nullptr, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  if (error != 0)
    throw base::Error(base::ErrorClass::system, "cannot start " + command.front() + ": " + base::errno_text(error));
}

LocalWorker::~LocalWorker() {
  if (ended()) return;
  // Its guard ends everything below it before it goes.
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

bool LocalWorker::ended() {
  if (ended_) return true;
  int status = 0;
  const pid_t reaped = ::waitpid(pid_, &status, WNOHANG);
  if (reaped == 0 || (reaped < 0 && errno == EINTR)) return false;
  ended_ = true;
  if (reaped < 0) {
    failed_ = true;
    how_ = "it was reaped by somebody else";
  } else if (WIFSIGNALED(status)) {
    failed_ = true;
    how_ = "killed by signal " + std::to_string(WTERMSIG(status));
  } else {
    failed_ = WEXITSTATUS(status) != 0;
    how_ = "exit " + std::to_string(WEXITSTATUS(status));
  }
  return true;
}

void LocalWorker::signal(int number) {
  if (!ended()) ::kill(pid_, number);
}

} // namespace holdfast::runner
