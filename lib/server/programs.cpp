#include "lib/server/programs.hpp"

#include "lib/server/launch.hpp"

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <string_view>

namespace holdfast::server {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> path_directories() {
  std::vector<fs::path> directories;
  const char* const path = ::getenv("PATH");
  std::string_view rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const auto end = std::min(rest.find(':'), rest.size());
    if (end > 0 && rest.front() == '/') directories.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return directories;
}

bool is_program(const fs::path& file) {
  std::error_code error;
  return fs::is_regular_file(file, error) && ::access(file.c_str(), X_OK) == 0;
}

// "postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)" -> 15; 0 if that is not what it prints.
int major_version(const fs::path& postgres) {
  const std::string text = output_of(postgres, {"--version"});
  constexpr std::string_view kMark = "(PostgreSQL) ";
  const auto at = text.find(kMark);
  if (at == std::string::npos) return 0;
  int major = 0;
  std::from_chars(text.data() + at + kMark.size(), text.data() + text.size(), major);
  return major;
}

} // namespace

std::vector<fs::path> usual_directories() {
  auto directories = path_directories();
  for (const auto& directory : path_directories()) {
    if (!is_program(directory / "pg_config")) continue;
    std::string text = output_of(directory / "pg_config", {"--bindir"});
    while (!text.empty() && text.back() == '\n')
      text.pop_back();
    if (!text.empty()) directories.emplace_back(text);
    break;
  }
  for (const fs::path parent : {"/usr/lib/postgresql", "/usr"}) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(parent, error)) {
      const bool debian = parent != "/usr";
      if (debian || entry.path().filename().string().starts_with("pgsql-")) directories.push_back(entry.path() / "bin");
    }
  }
  return directories;
}

std::vector<Programs> find_programs(const std::vector<fs::path>& directories) {
  std::vector<Programs> found;
  std::set<fs::path> seen;
  for (const auto& directory : directories) {
    std::error_code error;
    // Through the link, so that initdb finds its share directory beside the real program.
    const fs::path postgres = fs::canonical(directory / "postgres", error);
    if (error || !is_program(postgres) || !is_program(postgres.parent_path() / "initdb")) continue;
    if (!seen.insert(postgres).second) continue;
    if (const int major = major_version(postgres); major > 0) found.push_back({postgres.parent_path(), major});
  }
  return found;
}

} // namespace holdfast::server
