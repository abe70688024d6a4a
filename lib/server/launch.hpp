#pragma once
// Starts the server programs of PostgreSQL, as another user when we are root. Private to this module. Blocking; the
// calling thread must live as long as a program that run_to_end() waits for.

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

namespace holdfast::server {

// User of the server. PostgreSQL refuses to run as root.
struct User {
  uid_t uid;
  gid_t gid;
  std::string name;
};

struct Launch {
  std::filesystem::path program;
  std::vector<std::string> arguments; // without the program itself
  std::filesystem::path directory;    // entered after the change of user, so an error shows if it is closed to them
  int output; // descriptor for stdout and stderr; run_to_end() reads the reason of a failure there
  User user;
  int input{-1}; // descriptor for stdin; -1: /dev/null
};

// Runs to the end and returns the exit status (128 + signal if it was killed). It dies with us. Throws
// Error(unavailable) if it cannot be executed as that user, Error(cannot_create) if the user cannot enter the
// directory, and Error(temporary), after killing it, if it takes longer than `limit`.
int run_to_end(const Launch& launch, std::chrono::milliseconds limit);

// Starts a daemon: no child of ours, in a session of its own, so neither our end nor Ctrl-C touches it. If it cannot be
// executed, its output has the reason. Throws Error(system) if it cannot be started at all.
pid_t start_daemon(const Launch& launch);

// A file in memory, for the input or the output of a program. Throws Error(system).
int memory_file();
// The first 64 KiB of a file that a program has written.
std::string text_of(int file);

// Runs a program as ourselves and returns what it printed; empty if it failed or took longer than 10 s.
std::string output_of(const std::filesystem::path& program, const std::vector<std::string>& arguments);

} // namespace holdfast::server
