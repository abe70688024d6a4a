#pragma once
// Runs a program that is no hook, without a shim, and waits for it: the server programs of PostgreSQL. Blocking; any
// thread, which must live as long as the program.

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::process {

struct Program {
  std::vector<std::string> argv;        // argv[0] is the path to execute; no PATH search, no shell
  std::vector<std::string> environment; // the whole environment, "NAME=value" each
  int input{-1};                        // descriptor for stdin; -1: /dev/null
  int output{-1};                       // descriptor for stdout and stderr; -1: /dev/null
};

// Runs a program to its end, in a session of its own. Returns the exit status (128 + signal if it was killed); nothing
// if it took longer than `limit` and was killed for that. Throws Error(unavailable) if it cannot be executed.
std::optional<int> run_to_end(const Program& program, std::chrono::milliseconds limit);

} // namespace holdfast::process
