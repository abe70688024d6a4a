#pragma once
// Runs hooks that a test writes as shell scripts, with the real launcher, in a directory of the test's own.

#include "lib/hooks/hook_run.hpp"
#include "lib/process/launcher.hpp"
#include "tests/support/temp_dir.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <doctest/doctest.h>

#include <chrono>
#include <exception>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

namespace holdfast::test {

class HookStage {
public:
  HookStage()
      : launcher_(std::make_unique<process::Launcher>(io_.get_executor(),
                                                      process::executable_directory() / "holdfast-shim")) {
    limits.timeout = std::chrono::seconds(60);
    limits.kill_grace = std::chrono::milliseconds(300);
  }

  // A run of a bash script under the name of a hook; its directory is <snap>/<plugin>. "$0" is the hook's file.
  std::unique_ptr<hooks::HookRun> hook(const std::string& file_name, const std::string& script) {
    hooks::Hook hook;
    hook.name = *hooks::parse_hook_name(file_name);
    hook.path = dir_.write("plugins/sample/" + file_name, "#!/bin/bash\n" + script, true);
    hook.executable = true;
    process::Command command;
    command.argv = {hook.path.string(), "--url=it's a test"};
    command.environment = {"PATH=/usr/bin:/bin", "SECRET_TOKEN=hunter2"};
    command.sandbox.temporary = temporary;
    return std::make_unique<hooks::HookRun>(*launcher_, io_.get_executor(), command, hook, directory(), limits);
  }
  std::unique_ptr<hooks::HookRun> foreground(const std::string& script) {
    return hook("on_Snapshot__50_sample.sh", script);
  }
  std::unique_ptr<hooks::HookRun> background(const std::string& script) {
    return hook("on_Snapshot__21_sample.daemon.bg.sh", script);
  }

  // Runs a coroutine to its end; a test that would hang fails.
  template <typename T>
  T run(awaitable<T> work) {
    std::optional<T> result;
    std::exception_ptr failure;
    bool done = false;
    asio::co_spawn(io_, std::move(work), [&](std::exception_ptr error, T value) {
      failure = error;
      if (!error) result = std::move(value);
      done = true;
      io_.stop();
    });
    io_.restart();
    io_.run_for(std::chrono::seconds(60));
    if (failure) std::rethrow_exception(failure);
    if (!done) FAIL("the coroutine did not end within 60 s");
    return std::move(*result);
  }

  // Runs a foreground hook to its outcome.
  hooks::HookOutcome outcome_of(const std::string& script) {
    auto run_of_hook = foreground(script);
    run_of_hook->start();
    return run(run_of_hook->finish());
  }

  // Lets everything that is under way go on until the condition holds.
  void run_until(const std::function<bool()>& condition) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline) FAIL("the condition did not hold within 60 s");
      io_.restart();
      io_.run_for(std::chrono::milliseconds(5));
    }
  }

  std::filesystem::path directory() const { return dir_ / "snap/sample"; }

  // Names in the hook's directory that end with `suffix`.
  std::vector<std::string> files(std::string_view suffix = "") const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(directory())) {
      if (entry.path().filename().string().ends_with(suffix)) names.push_back(entry.path().filename().string());
    }
    return names;
  }
  static std::string read(const std::filesystem::path& file) {
    std::stringstream text;
    text << std::ifstream(file, std::ios::binary).rdbuf();
    return text.str();
  }

  hooks::HookLimits limits;
  std::filesystem::path temporary; // of its sandbox

private:
  TempDir dir_;
  asio::io_context io_;
  std::unique_ptr<process::Launcher> launcher_;
};

} // namespace holdfast::test
