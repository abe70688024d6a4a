#include "lib/archive/attempt.hpp"
#include "lib/base/text/json.hpp"
#include "lib/base/text/text.hpp"

#include <nlohmann/json.hpp>

#include <set>

namespace holdfast::archive {

namespace {

using Json = nlohmann::ordered_json; // a reader sees "type" first, and equal views give equal bytes

constexpr int kSchemaVersion = 1;

// Hooks' words may be anything; bytes that are not UTF-8 become U+FFFD instead of an exception.
std::string line(const Json& object) { return base::json_text(object) + "\n"; }

std::string extension_of(const std::string& path) {
  const std::string extension = std::filesystem::path(path).extension().native();
  return extension.empty() ? extension : extension.substr(1);
}

Json snapshot_line(const SnapshotView& view) {
  std::uint64_t bytes = 0;
  for (const ResultView& result : view.results)
    for (const OutputFile& file : result.files)
      bytes += file.size;
  Json object;
  object["type"] = "Snapshot";
  object["schema_version"] = kSchemaVersion;
  object["id"] = view.id;
  object["crawl_id"] = view.crawl_id;
  object["url"] = view.url;
  object["title"] = view.title;
  object["outcome"] = view.outcome;
  if (!view.facts.empty()) object["facts"] = base::facts_json(view.facts);
  object["depth"] = view.depth;
  object["fence"] = view.fence;
  object["tags"] = view.tags;
  object["started_at"] = view.started_at;
  object["ended_at"] = view.ended_at;
  object["worker"] = view.worker;
  if (!view.bookmarked_at.empty()) object["bookmarked_at"] = view.bookmarked_at;
  if (!view.source.empty()) object["source"] = view.source;
  object["output_size"] = bytes;
  object["discovered"] = view.discovered;
  return object;
}

Json result_line(const SnapshotView& view, const ResultView& result) {
  Json files = Json::object();
  std::uint64_t bytes = 0;
  std::set<std::string> types;
  for (const OutputFile& file : result.files) {
    files[file.path] = {
        {"extension", extension_of(file.path)}, {"mimetype", file.type}, {"size", file.size}, {"sha256", file.sha256}};
    bytes += file.size;
    types.insert(file.type);
  }
  std::string mime_types;
  for (const std::string& type : types)
    mime_types += (mime_types.empty() ? "" : ",") + type;

  Json object;
  object["type"] = "ArchiveResult";
  object["schema_version"] = kSchemaVersion;
  object["snapshot_id"] = view.id;
  object["plugin"] = result.plugin;
  object["hook_name"] = result.hook;
  object["status"] = result.status;
  object["output_str"] = result.output;
  object["error"] = result.error;
  object["output_files"] = std::move(files);
  object["output_size"] = bytes;
  object["output_mimetypes"] = mime_types;
  if (!result.ended_at.empty()) object["ended_at"] = result.ended_at;
  object["wall_ms"] = result.wall_time.count();
  object["cpu_ms"] = result.cpu_time.count();
  object["peak_memory_bytes"] = result.peak_memory_bytes;
  object["stderr_path"] = result.stderr_path;
  return object;
}

} // namespace

std::string render_index_jsonl(const SnapshotView& view) {
  std::string text = line(snapshot_line(view));
  for (const ResultView& result : view.results)
    text += line(result_line(view, result));
  return text;
}

std::optional<SnapshotView> read_index_jsonl(std::string_view text) {
  std::optional<SnapshotView> view;
  try {
    for (const auto& line : base::split(std::string(text), "\n")) {
      const auto object = base::strange_json(line);
      if (!view) {
        if (object.value("type", "") != "Snapshot") return std::nullopt;
        view.emplace();
        view->title = object.value("title", "");
        view->tags = object.value("tags", view->tags);
        view->discovered = object.value("discovered", view->discovered);
        view->facts = base::read_facts(object.value("facts", nlohmann::json::object())).value_or(base::Facts());
        continue;
      }
      ResultView result;
      result.plugin = object.at("plugin");
      result.hook = object.at("hook_name");
      result.status = object.at("status");
      result.output = object.value("output_str", "");
      result.error = object.value("error", "");
      result.stderr_path = object.value("stderr_path", "");
      for (const auto& [path, file] : object.at("output_files").items())
        result.files.push_back({path, file.value("mimetype", ""), file.value("size", std::uint64_t{0}), ""});
      view->results.push_back(std::move(result));
    }
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
  return view;
}

} // namespace holdfast::archive
