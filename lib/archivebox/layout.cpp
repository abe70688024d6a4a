#include "lib/archivebox/layout.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace holdfast::archivebox {

namespace fs = std::filesystem;

namespace {

constexpr const char* kOwn = "archivebox";

struct Known {
  const char* name;
  const char* plugin;
  const char* inside; // "": as it is called; ".": its contents
};
// Before version 0.9, outputs lie beside each other.
constexpr std::array<Known, 12> kKnown = {{{"favicon.ico", "favicon", ""},
                                           {"headers.json", "headers", ""},
                                           {"singlefile.html", "singlefile", ""},
                                           {"output.pdf", "pdf", ""},
                                           {"screenshot.png", "screenshot", ""},
                                           {"output.html", "dom", ""},
                                           {"htmltotext.txt", "htmltotext", ""},
                                           {"archive.org.txt", "archivedotorg", ""},
                                           {"warc", "wget", ""},
                                           {"media", "ytdlp", "."},
                                           {"git", "git", "."},
                                           {"title.txt", "title", ""}}};

// wget saves files in directories named by host; its output names the page in one of them.
bool is_of_wget(const std::string& name, const Snapshot& snapshot) {
  return std::any_of(snapshot.results.begin(), snapshot.results.end(), [&](const Result& result) {
    return result.plugin == "wget" && (result.output == name || result.output.starts_with(name + "/"));
  });
}

std::vector<fs::path> directories_in(const fs::path& directory) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error))
    if (entry->is_directory(error) && !entry->is_symlink(error)) found.push_back(entry->path());
  return found;
}

} // namespace

std::string plugin_name(const std::string& extractor) {
  if (extractor == "archive_org") return "archivedotorg";
  if (extractor == "media") return "ytdlp";
  return extractor;
}

Place place_of(const std::string& name, bool is_directory, const Snapshot& snapshot) {
  for (const auto& known : kKnown)
    if (name == known.name) return {known.plugin, *known.inside == '.' && is_directory ? "" : name};
  if (is_of_wget(name, snapshot)) return {"wget", name};
  if (!is_directory || name.starts_with(".")) return {kOwn, name};
  if (name.find_first_of(".:+") != std::string::npos) return {"wget", name}; // a host; plugins have no such names
  return {name, ""};
}

Directories::Directories(fs::path data_dir) : data_dir_(std::move(data_dir)) {
  look_in(data_dir_ / "archive" / "users");
  look_in(data_dir_ / "users");
}

// <user>/snapshots/<yyyymmdd>/<host>/<id>
void Directories::look_in(const fs::path& users) {
  for (const auto& user : directories_in(users))
    for (const auto& day : directories_in(user / "snapshots"))
      for (const auto& host : directories_in(day))
        for (const auto& directory : directories_in(host)) {
          auto id = directory.filename().native();
          id.erase(std::remove(id.begin(), id.end(), '-'), id.end());
          by_id_.emplace(std::move(id), directory.lexically_relative(data_dir_).native());
        }
}

std::optional<std::string> Directories::of(const Snapshot& snapshot) const {
  if (const auto found = by_id_.find(snapshot.id); found != by_id_.end()) return found->second;
  // The timestamp is a name in the archive: nothing else may be hidden in it.
  if (snapshot.timestamp.empty() || snapshot.timestamp.find_first_not_of("0123456789.") != std::string::npos ||
      snapshot.timestamp.find_first_of("0123456789") == std::string::npos)
    return std::nullopt;
  std::error_code error;
  const auto relative = "archive/" + snapshot.timestamp;
  const auto path = fs::canonical(data_dir_ / relative, error); // a link since version 0.9
  if (error || !fs::is_directory(path, error)) return std::nullopt;
  const auto inside = path.lexically_relative(fs::canonical(data_dir_, error));
  if (error || inside.empty() || *inside.begin() == ".." || inside == ".") return std::nullopt;
  return inside.native();
}

} // namespace holdfast::archivebox
