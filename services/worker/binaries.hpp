#pragma once
// Programs that plugins require, looked up on this machine. Main thread only; owned by Node. Answers are kept for a
// minute: a program installed meanwhile is found without a restart.

#include "lib/hooks/catalog.hpp"
#include "lib/hooks/environment.hpp"

#include <chrono>
#include <map>
#include <optional>
#include <string>

namespace holdfast::worker {

class Binaries {
public:
  // A sentence naming the first required program of the plugin that is not on this machine, or nullopt if all are
  // there. A program that none of its providers can take from the environment is left to the hook itself.
  std::optional<std::string> missing(const hooks::Plugin& plugin, const hooks::Options& resolved);

  // Absolute path of a program on PATH, or of one given by a path; nullopt if there is none.
  std::optional<std::string> locate(const std::string& name);

private:
  struct Answer {
    std::optional<std::string> path;
    std::chrono::steady_clock::time_point at;
  };
  std::map<std::string, Answer> answers_;
};

} // namespace holdfast::worker
