#pragma once
// Binaries that plugins require, looked up on this machine. Main thread only; owned by Worker. Answers are kept for a
// minute: a binary installed meanwhile is found without a restart.

#include "lib/hooks/environment.hpp"
#include "lib/hooks/plugin_set.hpp"

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::worker {

class BinaryLookup {
public:
  // Looks in `first`, then on PATH, then in <library>/bin.
  explicit BinaryLookup(std::vector<std::filesystem::path> first = {}, const std::filesystem::path& library = {});

  // A sentence naming the first required binary of the plugin that is not on this machine, or nullopt if all are
  // there. A binary that none of its providers can take from the environment is left to the hook itself.
  std::optional<std::string> missing(const hooks::Plugin& plugin, const hooks::Options& resolved);

  // Absolute path of a binary by its name or by a path; nullopt if there is none.
  std::optional<std::string> locate(const std::string& name);
  // Locates the binary again, not from memory.
  std::optional<std::string> locate_now(const std::string& name);
  // Remembers where an installer has put a binary that is in none of the directories.
  void remember(const std::string& name, const std::string& path);

  // Options that hold on this machine alone, as hooks of the old generation have set them.
  const hooks::Options& machine_options() const { return machine_options_; }
  void add_machine_options(const hooks::Options& options);

  const std::vector<std::filesystem::path>& directories() const { return directories_; }

private:
  struct Answer {
    std::optional<std::string> path;
    std::chrono::steady_clock::time_point at;
  };
  std::vector<std::filesystem::path> directories_;
  std::map<std::string, Answer> answers_;
  std::map<std::string, std::string> remembered_;
  hooks::Options machine_options_;
};

} // namespace holdfast::worker
