#include "lib/base/error.hpp"
#include "lib/pg/conninfo.hpp"
#include "lib/store/runner.hpp"
#include "services/cli/command/verbs.hpp"

#include <CLI/CLI.hpp>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <memory>

namespace holdfast::cli {

namespace {

constexpr int kNoProgram = 127; // psql itself exits with 0 to 3

volatile std::sig_atomic_t running_psql = 0;

void pass_on(int signal) {
  if (running_psql > 0) ::kill(static_cast<pid_t>(running_psql), signal);
}

void on_signal(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  ::sigaction(signal, &action, nullptr);
}

// The settings of the session. A login that may not become the reader gets a read-only session instead.
std::string session_options(pg::Connection& connection, const std::string& role) {
  const std::string names = "-c search_path=holdfast,public";
  if (role == "owner") return names;
  const std::string name = "holdfast_" + role;
  if (store::may_act_as(connection, name)) return names + " -c role=" + name;
  if (role != "reader")
    throw base::Error(base::ErrorClass::refused, "this login may not act as " + name,
                      "grant " + name + " to it, or set database.url to another login");
  return names + " -c default_transaction_read_only=on";
}

// Starts psql and waits for it. The terminal's signals are for psql alone.
int run_psql(const std::vector<std::string>& arguments) {
  std::vector<char*> words = {const_cast<char*>("psql")};
  for (const auto& argument : arguments)
    words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  std::cout << std::flush;
  sigset_t held, before;
  ::sigemptyset(&held);
  ::sigaddset(&held, SIGTERM);
  ::sigaddset(&held, SIGHUP);
  ::sigprocmask(SIG_BLOCK, &held, &before); // none is lost between the fork and the handlers
  const pid_t child = ::fork();
  if (child < 0) throw base::Error(base::ErrorClass::unavailable, "cannot start psql");
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    ::execvp("psql", words.data());
    ::_exit(kNoProgram);
  }
  running_psql = child;
  on_signal(SIGINT, SIG_IGN);
  on_signal(SIGQUIT, SIG_IGN);
  on_signal(SIGTERM, pass_on);
  on_signal(SIGHUP, pass_on);
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  running_psql = 0;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// `role`: reader, operator or owner. Returns the exit code of psql; 128 and more: a signal ended it.
int psql(Context& context, const std::string& role, const std::vector<std::string>& arguments) {
  const auto options = session_options(context.connection(), role);
  context.disconnect();
  for (const auto& [name, value] : pg::environment_of(pg::with_password(context.dsn())))
    ::setenv(name.c_str(), value.c_str(), 1);
  const char* given = std::getenv("PGOPTIONS");
  ::setenv("PGOPTIONS", (given == nullptr ? options : std::string(given) + " " + options).c_str(), 1);
  ::setenv("PGAPPNAME", "holdfast psql", 1);
  const int code = run_psql(arguments);
  if (code == kNoProgram)
    throw base::Error(base::ErrorClass::unavailable, "cannot run psql",
                      "install PostgreSQL's client programs (Debian: postgresql-client)");
  return code;
}

} // namespace

Action psql_verb(CLI::App& command) {
  const auto role = std::make_shared<std::string>("reader");
  command
      .add_option("--role", *role, "reader; operator, which may also call functions that change something; or owner")
      ->check(CLI::IsMember({"reader", "operator", "owner"}));
  command.fallthrough(false);
  command.prefix_command();
  command.footer("All other arguments are psql's, and so is the exit code. Names need no schema.");
  return [role, &command](Context& context) { return psql(context, *role, command.remaining()); };
}

} // namespace holdfast::cli
