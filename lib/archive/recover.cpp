#include "lib/archive/recover.hpp"

#include "lib/archive/file_work.hpp"
#include "lib/archive/manifest.hpp"
#include "lib/archive/tidy.hpp"
#include "lib/base/error.hpp"

#include <nlohmann/json.hpp>

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <sstream>
#include <vector>

namespace holdfast::archive {

namespace {

using nlohmann::json;

std::vector<std::string> names_in(const std::filesystem::path& path) {
  const Fd directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!directory) {
    if (errno == ENOTDIR || errno == ENOENT || errno == ELOOP) return {};
    throw_errno(errno, "open the directory", path.native());
  }
  auto names = list_names(directory.get(), path.native());
  std::sort(names.begin(), names.end());
  return names;
}

bool all_digits(std::string_view text, std::size_t count) {
  return text.size() == count && text.find_first_not_of("0123456789") == std::string_view::npos;
}

bool is_id(std::string_view text) {
  return text.size() == 36 && text[8] == '-' && text[13] == '-' && text[18] == '-' && text[23] == '-' &&
         text.find_first_not_of("0123456789abcdef-") == std::string_view::npos;
}

// The fences of the attempts in a snapshot's directory, newest first.
std::vector<std::int64_t> fences_in(const std::filesystem::path& directory) {
  std::vector<std::int64_t> fences;
  for (const auto& name : names_in(directory)) {
    std::int64_t fence = 0;
    if (name.size() < 2 || name[0] != 'a') continue;
    const auto [end, error] = std::from_chars(name.data() + 1, name.data() + name.size(), fence);
    if (error == std::errc{} && end == name.data() + name.size()) fences.push_back(fence);
  }
  std::sort(fences.rbegin(), fences.rend());
  return fences;
}

std::optional<std::string> text_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return std::nullopt;
  std::ostringstream text;
  text << stream.rdbuf();
  return stream ? std::optional(text.str()) : std::nullopt;
}

std::string text_at(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::int64_t number_at(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number_integer() ? found->get<std::int64_t>() : 0;
}

// A line of index.jsonl as a row of archive_result: there, files are named from the plugin's own directory.
json result_row(const json& line) {
  const auto plugin = text_at(line, "plugin");
  json files = json::array();
  if (const auto listed = line.find("output_files"); listed != line.end() && listed->is_object())
    for (const auto& [path, file] : listed->items())
      files.push_back({{"path", path.starts_with(plugin + "/") ? path.substr(plugin.size() + 1) : path},
                       {"type", text_at(file, "mimetype")},
                       {"size", number_at(file, "size")},
                       {"sha256", text_at(file, "sha256")}});
  return {{"plugin", plugin},
          {"hook_name", text_at(line, "hook_name")},
          {"status", text_at(line, "status")},
          {"output", text_at(line, "output_str")},
          {"error", text_at(line, "error")},
          {"output_files", std::move(files)},
          {"output_bytes", number_at(line, "output_size")},
          {"wall_ms", number_at(line, "wall_ms")},
          {"cpu_ms", number_at(line, "cpu_ms")},
          {"peak_memory_bytes", number_at(line, "peak_memory_bytes")}};
}

// The lines of index.jsonl. nullopt: it is not what publish() writes.
std::optional<json> page_of(const std::string& index, const std::string& id, std::int64_t fence) {
  std::istringstream lines(index);
  std::string line;
  json page;
  for (bool first = true; std::getline(lines, line); first = false) {
    const auto object = json::parse(line, nullptr, false);
    if (!object.is_object()) return std::nullopt;
    if (!first) {
      page["results"].push_back(result_row(object));
      continue;
    }
    if (text_at(object, "type") != "Snapshot" || text_at(object, "id") != id || number_at(object, "fence") != fence)
      return std::nullopt;
    for (const char* name : {"id", "crawl_id", "url", "title", "outcome", "started_at", "ended_at", "worker"})
      page[name] = text_at(object, name);
    if (const auto status = number_at(object, "http_status"); status > 0) page["http_status"] = status;
    if (const auto mime = text_at(object, "mime"); !mime.empty()) page["mime"] = mime;
    page["depth"] = number_at(object, "depth");
    page["fence"] = fence;
    page["tags"] = object.value("tags", json::array());
    page["results"] = json::array();
  }
  return page.is_null() ? std::nullopt : std::optional(page);
}

} // namespace

void each_snapshot_directory(const std::filesystem::path& root, const std::filesystem::path& below,
                             const std::function<void(const std::string&)>& found) {
  // Whether `path` may hold something of what is asked for: one of the two begins with the other.
  const auto wanted = [&](const std::filesystem::path& path) {
    const auto [one, other] = std::mismatch(path.begin(), path.end(), below.begin(), below.end());
    return one == path.end() || other == below.end();
  };
  for (const auto& year : names_in(root)) {
    if (!all_digits(year, 4) || !wanted(year)) continue;
    for (const auto& month : names_in(root / year)) {
      const auto months = std::filesystem::path(year) / month;
      if (!all_digits(month, 2) || !wanted(months)) continue;
      for (const auto& host : names_in(root / months)) {
        if (!wanted(months / host)) continue;
        for (const auto& id : names_in(root / months / host))
          if (is_id(id) && wanted(months / host / id)) found((months / host / id).native());
      }
    }
  }
}

std::optional<json> read_snapshot(const std::filesystem::path& root, const std::string& directory,
                                  std::string& problem) {
  const auto id = std::filesystem::path(directory).filename().native();
  problem = "it holds no attempt";
  for (const auto fence : fences_in(root / directory)) {
    const auto attempt = directory + "/a" + std::to_string(fence);
    const auto path = root / attempt;
    const auto index = text_of(path / "index.jsonl"), manifest = text_of(path / kManifestName);
    if (!index || !manifest) {
      problem = attempt + " has no index.jsonl or no manifest";
      continue;
    }
    auto page = page_of(*index, id, fence);
    if (!page) {
      problem = attempt + "/index.jsonl cannot be read";
      continue;
    }
    Sha256 hash;
    hash.update(*manifest);
    (*page)["directory"] = attempt;
    (*page)["manifest"] = hash.finish();
    // Counted as when it was published: links to other files of the attempt are not.
    std::int64_t bytes = 0, files = 0;
    walk_tree(open_directory(path).get(), path, [&](const TreeEntry& entry) {
      std::error_code error;
      if (S_ISLNK(entry.mode)) return;
      bytes += static_cast<std::int64_t>(std::filesystem::file_size(path / entry.path, error));
      ++files;
    });
    (*page)["bytes"] = bytes;
    (*page)["files"] = files;
    if (const auto facts = text_of(root / "crawls" / text_at(*page, "crawl_id") / kCrawlFacts)) {
      auto crawl = json::parse(*facts, nullptr, false);
      if (crawl.is_object()) (*page)["crawl"] = std::move(crawl);
    }
    return page;
  }
  return std::nullopt;
}

} // namespace holdfast::archive
