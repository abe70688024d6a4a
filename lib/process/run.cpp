#include "lib/process/run.hpp"

#include "lib/base/async.hpp"
#include "lib/base/error.hpp"
#include "lib/process/spawn_launcher.hpp"

#include <boost/asio/io_context.hpp>

#include <span>

namespace holdfast::process {

std::optional<int> run_to_end(const Program& program, std::chrono::milliseconds limit) {
  SpawnLauncher launcher;
  launcher.own_session();
  launcher.duplicate(program.input, STDIN_FILENO);
  launcher.duplicate(program.output, STDOUT_FILENO);
  launcher.duplicate(program.output, STDERR_FILENO);
  launcher.close_from(STDERR_FILENO + 1);
  std::vector<const char*> environment;
  for (const auto& setting : program.environment)
    environment.push_back(setting.c_str());
  environment.push_back(nullptr);
  launcher.env = environment.data();

  asio::io_context context;
  const asio::any_io_executor executor = context.get_executor();
  boost::system::error_code error;
  std::optional<int> status;
  auto process = launcher(executor, error, program.argv.front(), std::span(program.argv).subspan(1));
  if (error)
    throw base::Error(base::ErrorClass::unavailable,
                      "cannot run " + program.argv.front() + ": " + base::errno_text(error.value()));
  process.async_wait([&](boost::system::error_code failure, int) {
    const int raw = process.native_exit_code();
    if (failure)
      status = 127; // SIGCHLD is ignored, so the kernel kept no status
    else
      status = WIFEXITED(raw) ? WEXITSTATUS(raw) : 128 + WTERMSIG(raw);
  });
  context.run_for(limit);
  if (!status) process.terminate(error); // by SIGKILL, and waits
  return status;
}

} // namespace holdfast::process
