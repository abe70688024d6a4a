#include "lib/hooks/binary.hpp"

#include "lib/base/file.hpp"
#include "lib/base/text/text.hpp"

#include <nlohmann/json.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <sstream>

namespace holdfast::hooks {

namespace fs = std::filesystem;

namespace {

// "{WGET_BINARY}" -> the option of that name, or "" if it has no value.
std::string filled_in(const std::string& name, const Options& options) {
  if (name.size() < 3 || name.front() != '{' || name.back() != '}') return name;
  const auto found = options.find(name.substr(1, name.size() - 2));
  return found == options.end() ? std::string() : found->second;
}

std::vector<unsigned> numbers(std::string_view version) {
  std::vector<unsigned> result;
  while (!version.empty() && base::is_digit(version.front())) {
    unsigned number = 0;
    const auto [end, error] = std::from_chars(version.data(), version.data() + version.size(), number);
    if (error != std::errc()) break;
    result.push_back(number);
    version.remove_prefix(static_cast<std::size_t>(end - version.data()));
    if (version.empty() || version.front() != '.') break;
    version.remove_prefix(1);
  }
  return result;
}

// Program that serves a provider, and its arguments before the packages.
struct Manager {
  std::string_view provider, program, command;
};
constexpr std::array<Manager, 7> kManagers{{{"apt", "apt-get", "apt-get install --no-install-recommends"},
                                            {"brew", "brew", "brew install"},
                                            {"npm", "npm", "npm install --global"},
                                            {"pnpm", "npm", "npm install --global"},
                                            {"uv", "pipx", "pipx install"},
                                            {"pip", "pipx", "pipx install"},
                                            {"cargo", "cargo", "cargo install"}}};

// Packages that the overrides name for a provider: {"apt": {"install_args": [...]}}, or {"apt": [...]} of old.
std::vector<std::string> named_packages(const std::string& overrides, std::string_view provider) {
  const auto json = nlohmann::json::parse(overrides, nullptr, false);
  if (!json.is_object() || !json.contains(provider)) return {};
  auto list = json[std::string(provider)];
  for (const char* key : {"install_args", "packages"})
    if (list.is_object() && list.contains(key)) list = nlohmann::json(list[key]);
  std::vector<std::string> packages;
  if (list.is_array())
    for (const auto& item : list)
      if (item.is_string()) packages.push_back(item.get<std::string>());
  return packages;
}

std::string quoted(const std::string& word) {
  const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](char letter) {
    return std::isalnum(static_cast<unsigned char>(letter)) != 0 || std::string_view("@/._+-=:").find(letter) < 9;
  });
  if (plain) return word;
  return base::shell_quoted(word);
}

} // namespace

std::vector<WantedBinary> wanted_binaries(const Plugin& plugin, const Options& resolved) {
  std::vector<WantedBinary> wanted;
  for (const auto& needed : plugin.required_binaries) {
    WantedBinary binary{filled_in(needed.name, resolved), needed.providers, needed.min_version, needed.overrides, true};
    if (binary.name.empty()) continue;
    binary.from_environment =
        needed.providers.empty() || ("," + needed.providers + ",").find(",env,") != std::string::npos;
    wanted.push_back(std::move(binary));
  }
  return wanted;
}

std::vector<fs::path> path_directories(std::string_view path) {
  std::vector<fs::path> directories;
  for (const auto& part : base::split(path, ":"))
    if (fs::path directory(part); directory.is_absolute()) directories.push_back(std::move(directory));
  return directories;
}

bool is_executable(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) && ::access(path.c_str(), X_OK) == 0;
}

std::optional<std::string> find_binary(const std::string& name, const std::vector<fs::path>& directories) {
  if (name.empty()) return std::nullopt;
  if (name.find('/') != std::string::npos)
    return is_executable(name) ? std::optional<std::string>(fs::absolute(name).string()) : std::nullopt;
  for (const auto& directory : directories)
    if (is_executable(directory / name)) return (directory / name).string();
  return std::nullopt;
}

std::string version_in(std::string_view text) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (!base::is_digit(text[at]) || (at > 0 && (base::is_digit(text[at - 1]) || text[at - 1] == '.'))) continue;
    std::size_t end = at;
    bool dotted = false;
    while (end < text.size() && (base::is_digit(text[end]) ||
                                 (text[end] == '.' && end + 1 < text.size() && base::is_digit(text[end + 1])))) {
      dotted = dotted || text[end] == '.';
      ++end;
    }
    if (dotted) return std::string(text.substr(at, std::min<std::size_t>(end - at, 100)));
    at = end;
  }
  return {};
}

bool older(std::string_view version, std::string_view wanted) {
  const auto have = numbers(version), want = numbers(wanted);
  return !have.empty() && !want.empty() && have < want;
}

std::string interpreter_of(const Hook& hook) {
  if (!hook.executable) {
    const std::string& extension = hook.name.extension;
    return extension == "py" ? "python3" : extension == "js" ? "node" : "bash";
  }
  auto line = base::read_file(hook.path, 256);
  if (!line.starts_with("#!")) return {};
  line = line.substr(2, line.find('\n') == std::string::npos ? std::string::npos : line.find('\n') - 2);
  std::istringstream words(line);
  std::string word;
  words >> word;
  if (!word.ends_with("/env")) return word;
  while (words >> word)
    if (!word.starts_with('-') && word.find('=') == std::string::npos) return word;
  return {};
}

std::string Installation::command() const {
  std::string text;
  for (const auto& candidate : kManagers)
    if (candidate.program == manager && text.empty()) text = candidate.command;
  for (const auto& package : packages)
    text += " " + quoted(package);
  return text;
}

std::optional<Installation> installation_of(const WantedBinary& binary, const std::vector<std::string>& available) {
  for (const auto& provider : base::split(binary.providers.empty() ? "apt" : binary.providers, ",")) {
    for (const auto& manager : kManagers) {
      if (manager.provider != provider ||
          std::find(available.begin(), available.end(), manager.program) == available.end())
        continue;
      auto packages = named_packages(binary.overrides, provider);
      if (packages.empty()) packages.push_back(fs::path(binary.name).filename().string());
      return Installation{std::string(manager.program), std::move(packages)};
    }
  }
  return std::nullopt;
}

} // namespace holdfast::hooks
