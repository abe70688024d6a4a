#include "lib/archive/recover.hpp"

#include "lib/archive/bucket.hpp"
#include "lib/archive/file_work.hpp"
#include "lib/archive/tidy.hpp"
#include "lib/archive/verify.hpp"
#include "lib/base/error.hpp"
#include "lib/base/text/facts.hpp"
#include "lib/base/text/json.hpp"

#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <sstream>

namespace holdfast::archive {

namespace {

using nlohmann::json;

bool all_digits(std::string_view text, std::size_t count) {
  return text.size() == count && text.find_first_not_of("0123456789") == std::string_view::npos;
}

using base::text_at;

bool is_id(std::string_view text) {
  return text.size() == 36 && text[8] == '-' && text[13] == '-' && text[18] == '-' && text[23] == '-' &&
         text.find_first_not_of("0123456789abcdef-") == std::string_view::npos;
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
  json row = {{"plugin", plugin},
              {"hook_name", text_at(line, "hook_name")},
              {"status", text_at(line, "status")},
              {"output", text_at(line, "output_str")},
              {"error", text_at(line, "error")},
              {"output_files", std::move(files)},
              {"output_bytes", number_at(line, "output_size")},
              {"wall_ms", number_at(line, "wall_ms")},
              {"cpu_ms", number_at(line, "cpu_ms")},
              {"peak_memory_bytes", number_at(line, "peak_memory_bytes")}};
  if (auto ended_at = text_at(line, "ended_at"); !ended_at.empty()) row["ended_at"] = std::move(ended_at);
  return row;
}

// The lines of index.jsonl. nullopt: it is not what publish() writes.
std::optional<json> page_of(const std::string& index, const std::string& id, std::int64_t fence) {
  std::istringstream lines(index);
  std::string line;
  json page;
  for (bool first = true; std::getline(lines, line); first = false) {
    const auto object = base::strange_json(line);
    if (!object.is_object()) return std::nullopt;
    if (!first) {
      page["results"].push_back(result_row(object));
      continue;
    }
    if (text_at(object, "type") != "Snapshot" || text_at(object, "id") != id || number_at(object, "fence") != fence)
      return std::nullopt;
    for (const char* name : {"id", "crawl_id", "url", "title", "outcome", "started_at", "ended_at", "worker"})
      page[name] = text_at(object, name);
    if (const auto facts = base::read_facts(object.value("facts", json()))) page["facts"] = base::facts_json(*facts);
    for (const char* name : {"bookmarked_at", "source"})
      if (auto text = text_at(object, name); !text.empty()) page[name] = std::move(text);
    page["depth"] = number_at(object, "depth");
    page["fence"] = fence;
    page["tags"] = object.value("tags", json::array());
    page["results"] = json::array();
  }
  return page.is_null() ? std::nullopt : std::optional(page);
}

} // namespace

Files::Files(const std::filesystem::path& root) : root_(root) {
  if (s3::is_location(root.native())) {
    own_ = std::make_shared<s3::Client>(s3::parse_location(root.native()));
    bucket_ = own_.get();
  } else if (!std::filesystem::is_directory(root)) {
    throw base::Error(base::ErrorClass::unavailable, "there is no archive in " + root.string(),
                      "--set archive.root=DIR names another place");
  }
}

Files::Files(const Root& root) : root_(root.bucket() == nullptr ? root.path() : ""), bucket_(root.bucket()) {}

std::optional<std::string> Files::collection() const {
  if (bucket_ == nullptr) return directory_sentinel(root_);
  auto id = bucket_sentinel(*bucket_, "", false);
  return id.empty() ? std::nullopt : std::optional(std::move(id));
}

// Names of all entries of a directory, of those below in a bucket.
std::vector<std::string> Files::names_in(const std::filesystem::path& directory) const {
  std::vector<std::string> names;
  if (bucket_ != nullptr) {
    const auto prefix = directory.empty() ? std::string() : directory.native() + "/";
    for (auto name : bucket_->list(prefix, true).directories) {
      name.pop_back(); // the slash
      names.push_back(name.substr(prefix.size()));
    }
  } else {
    const auto path = root_ / directory;
    const Fd opened = open_below(root_, directory, O_RDONLY | O_DIRECTORY);
    if (!opened) {
      if (errno == ENOTDIR || errno == ENOENT || errno == ELOOP) return {};
      throw_errno(errno, "open the directory", path.native());
    }
    names = list_names(opened.get(), path.native());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::optional<std::string> Files::text_of(const std::string& file) const {
  if (bucket_ != nullptr) {
    std::string text;
    return bucket_->get(file, text) ? std::optional(std::move(text)) : std::nullopt;
  }
  const Fd opened = open_file_below(root_, file);
  return opened ? std::optional(read_rest(opened.get(), (root_ / file).native())) : std::nullopt;
}

// Counts as the publication did: links to other files of the attempt are left out. In a bucket they are copies.
Files::Size Files::size_of(const std::string& attempt) const {
  Size size;
  if (bucket_ != nullptr) {
    for (const auto& object : bucket_->list(attempt + "/", false).objects) {
      size.bytes += static_cast<std::int64_t>(object.size);
      ++size.files;
    }
    return size;
  }
  const auto path = root_ / attempt;
  const Fd top = open_below(root_, attempt, O_RDONLY | O_DIRECTORY);
  if (!top) throw_errno(errno, "open the directory", path.native());
  walk_tree(top.get(), path, [&](const TreeEntry& entry) {
    struct stat status {};
    if (entry.type == S_IFLNK) return;
    if (::fstatat(entry.directory, entry.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0)
      size.bytes += static_cast<std::int64_t>(status.st_size);
    ++size.files;
  });
  return size;
}

std::vector<std::int64_t> Files::fences_in(const std::string& directory) const {
  std::vector<std::int64_t> fences;
  for (const auto& name : names_in(directory))
    if (const auto fence = attempt_fence(name)) fences.push_back(*fence);
  std::sort(fences.rbegin(), fences.rend());
  return fences;
}

void Files::each_snapshot(const std::filesystem::path& below,
                          const std::function<void(const std::string&)>& found) const {
  // Returns true if `path` may hold part of the request: one of the two begins with the other.
  const auto wanted = [&](const std::filesystem::path& path) {
    const auto [one, other] = std::mismatch(path.begin(), path.end(), below.begin(), below.end());
    return one == path.end() || other == below.end();
  };
  for (const auto& year : names_in({})) {
    if (!all_digits(year, 4) || !wanted(year)) continue;
    for (const auto& month : names_in(year)) {
      const auto months = std::filesystem::path(year) / month;
      if (!all_digits(month, 2) || !wanted(months)) continue;
      for (const auto& host : names_in(months)) {
        if (!wanted(months / host)) continue;
        for (const auto& id : names_in(months / host))
          if (is_id(id) && wanted(months / host / id)) found((months / host / id).native());
      }
    }
  }
}

void Files::each_kept(const std::function<void(const std::string&)>& found) const {
  const std::filesystem::path kept = "kept";
  for (const auto& crawl : names_in(kept)) {
    if (!is_id(crawl)) continue;
    for (const auto& id : names_in(kept / crawl)) {
      if (!is_id(id)) continue;
      for (const auto& position : names_in(kept / crawl / id))
        if (position.size() < 10 && all_digits(position, position.size()))
          found((kept / crawl / id / position).native());
    }
  }
}

std::optional<json> Files::read_snapshot(const std::string& directory, std::string& problem) const {
  const auto id = std::filesystem::path(directory).filename().native();
  problem = "it holds no attempt";
  for (const auto fence : fences_in(directory)) {
    const auto attempt = directory + "/a" + std::to_string(fence);
    const auto index = text_of(attempt + "/index.jsonl"), manifest = text_of(attempt + "/" + kManifestName);
    if (!index || !manifest) {
      problem = attempt + " has no index.jsonl or no manifest";
      continue;
    }
    auto page = page_of(*index, id, fence);
    if (!page) {
      problem = attempt + "/index.jsonl cannot be read";
      continue;
    }
    (*page)["directory"] = attempt;
    (*page)["manifest"] = base::sha256_hex(*manifest);
    const auto size = size_of(attempt);
    (*page)["bytes"] = size.bytes;
    (*page)["files"] = size.files;
    if (const auto facts = text_of("crawls/" + text_at(*page, "crawl_id") + "/" + kCrawlFacts)) {
      auto crawl = base::strange_json(*facts);
      if (crawl.is_object()) (*page)["crawl"] = std::move(crawl);
    }
    return page;
  }
  return std::nullopt;
}

} // namespace holdfast::archive
