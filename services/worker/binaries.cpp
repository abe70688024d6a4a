#include "services/worker/binaries.hpp"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string_view>

namespace holdfast::worker {

namespace {

constexpr std::chrono::seconds kKeep{60};

// "{WGET_BINARY}" -> the option of that name, or "" if it has no value.
std::string interpolate(const std::string& name, const hooks::Options& options) {
  if (name.size() < 3 || name.front() != '{' || name.back() != '}') return name;
  const auto found = options.find(name.substr(1, name.size() - 2));
  return found == options.end() ? std::string() : found->second;
}

bool takes_from_environment(const std::string& providers) {
  return providers.empty() || ("," + providers + ",").find(",env,") != std::string::npos;
}

bool is_program(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored) && access(path.c_str(), X_OK) == 0;
}

std::optional<std::string> search(const std::string& name) {
  if (name.find('/') != std::string::npos)
    return is_program(name) ? std::optional<std::string>(std::filesystem::absolute(name)) : std::nullopt;
  const char* path = std::getenv("PATH");
  std::string_view rest = path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin";
  while (!rest.empty()) {
    const auto colon = rest.find(':');
    const std::filesystem::path directory(rest.substr(0, colon));
    if (directory.is_absolute() && is_program(directory / name)) return (directory / name).string();
    if (colon == std::string_view::npos) break;
    rest.remove_prefix(colon + 1);
  }
  return std::nullopt;
}

} // namespace

std::optional<std::string> Binaries::locate(const std::string& name) {
  const auto now = std::chrono::steady_clock::now();
  auto& answer = answers_[name];
  if (answer.at == std::chrono::steady_clock::time_point{} || now - answer.at > kKeep) answer = {search(name), now};
  return answer.path;
}

std::optional<std::string> Binaries::missing(const hooks::Plugin& plugin, const hooks::Options& resolved) {
  for (const auto& binary : plugin.required_binaries) {
    if (!takes_from_environment(binary.providers)) continue;
    const std::string name = interpolate(binary.name, resolved);
    if (!name.empty() && !locate(name)) return name + " is not installed on this machine";
  }
  return std::nullopt;
}

} // namespace holdfast::worker
