#include "services/worker/hook/binary_lookup.hpp"

#include "lib/hooks/binary.hpp"

#include <cstdlib>

namespace holdfast::worker {

namespace {

constexpr std::chrono::seconds kKeep{60};

} // namespace

BinaryLookup::BinaryLookup(std::vector<std::filesystem::path> first, const std::filesystem::path& library)
    : directories_(std::move(first)) {
  const char* path = std::getenv("PATH");
  for (auto& directory : hooks::path_directories(path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin"))
    directories_.push_back(std::move(directory));
  if (!library.empty()) directories_.push_back(library / "bin");
}

std::optional<std::string> BinaryLookup::locate_now(const std::string& name) {
  auto path = hooks::find_binary(name, directories_);
  if (const auto known = remembered_.find(name);
      !path && known != remembered_.end() && hooks::is_executable(known->second))
    path = known->second;
  answers_[name] = {path, std::chrono::steady_clock::now()};
  return path;
}

std::optional<std::string> BinaryLookup::locate(const std::string& name) {
  const auto answer = answers_.find(name);
  if (answer != answers_.end() && std::chrono::steady_clock::now() - answer->second.at <= kKeep)
    return answer->second.path;
  return locate_now(name);
}

void BinaryLookup::remember(const std::string& name, const std::string& path) {
  remembered_[name] = path;
  answers_.erase(name);
}

void BinaryLookup::add_machine_options(const hooks::Options& options) {
  for (const auto& [key, value] : options)
    machine_options_[key] = value;
}

std::optional<std::string> BinaryLookup::missing(const hooks::Plugin& plugin, const hooks::Options& resolved) {
  for (const auto& binary : hooks::wanted_binaries(plugin, resolved))
    if (binary.from_environment && !locate(binary.name)) return binary.name + " is not installed on this machine";
  return std::nullopt;
}

} // namespace holdfast::worker
