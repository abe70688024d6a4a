// A stand-in for the worker: starts COUNT hooks that stay, with all they detach, says "ready" when all are, then works
// on until it is ended. On TERM it ends its hooks and exits with 0. supervisor DIRECTORY COOKIE COUNT

#include "lib/process/launcher.hpp"

#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

using namespace holdfast;

int main(int argc, char** argv) {
  if (argc != 4) return 64;
  const std::filesystem::path directory = argv[1];
  const int count = std::atoi(argv[3]);
  const auto beside = process::executable_directory();
  asio::io_context io;
  process::become_subreaper();
  const auto launcher = std::make_unique<process::Launcher>(io.get_executor(), beside / "holdfast-shim");

  std::vector<std::unique_ptr<process::Child>> children;
  std::vector<std::filesystem::path> outputs;
  for (int i = 0; i < count; ++i) {
    process::Command command;
    command.argv = {(beside / "misbehave").string(), "everything"};
    command.directory = directory;
    command.stdout_path = directory / ("hook." + std::to_string(i));
    command.cookie = argv[2];
    outputs.push_back(command.stdout_path);
    children.push_back(launcher->start(command));
  }

  asio::steady_timer look(io);
  const std::function<void()> watch = [&] {
    for (const auto& output : outputs) {
      std::string word;
      std::ifstream(output) >> word;
      if (word == "ready") continue;
      look.expires_after(std::chrono::milliseconds(5));
      look.async_wait([&](boost::system::error_code error) {
        if (!error) watch();
      });
      return;
    }
    std::cout << "ready " << ::getpid() << std::endl;
  };
  watch();

  asio::signal_set signals(io, SIGTERM);
  signals.async_wait([&](boost::system::error_code, int) {
    look.cancel();
    children.clear();
  });
  io.run();
  return 0;
}
