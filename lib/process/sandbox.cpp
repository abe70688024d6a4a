#include "lib/process/sandbox.hpp"

#include "lib/base/error.hpp"
#include "lib/process/launcher.hpp"
#include "lib/process/network.hpp"

namespace holdfast::process {

using base::Error;
using base::ErrorClass;

namespace {

constexpr std::chrono::minutes kLongestTry{1};

} // namespace

std::string to_string(SandboxLevel level) {
  if (level == SandboxLevel::full) return "full";
  return level == SandboxLevel::user ? "user" : "none";
}

std::string Sandbox::text() const {
  if (level == SandboxLevel::none) return "-";
  std::string lines;
  const auto add = [&lines](char kind, const std::filesystem::path& path) {
    if (path.native().find('\n') != std::string::npos)
      throw Error(ErrorClass::configuration, "a hook's sandbox cannot have a path with a line feed: " + path.string());
    lines += kind + path.string() + '\n';
  };
  if (user) lines += "U" + std::to_string(user->uid) + ":" + std::to_string(user->gid) + "\n";
  if (level == SandboxLevel::user) {
    return lines + "L\n"; // its lists are in the rules that the shim is given
  }
  if (network) lines += network->owner() < 0 ? "N\n" : "NU\n";
  for (const auto& path : hidden)
    add('H', path);
  for (const auto& path : emptied)
    add('E', path);
  for (const auto& path : readable)
    add('R', path);
  for (const auto& path : writable)
    add('W', path);
  if (!temporary.empty()) add('T', temporary);
  return lines;
}

std::string sandbox_problem(const std::filesystem::path& shim, const Sandbox& sandbox,
                            const std::filesystem::path& directory) {
  Command command;
  command.argv = {"/bin/sh", "-c", "cd \"$0\"", directory.string()};
  command.directory = directory;
  command.sandbox = sandbox;
  const auto exit = run_to_end(shim, command, kLongestTry);
  if (exit.clean()) return {};
  return exit.start_errno == 0 && exit.signal == 0 ? "hooks cannot enter " + directory.string() : exit.describe();
}

} // namespace holdfast::process
