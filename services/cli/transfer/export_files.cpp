#include "services/cli/transfer/export_files.hpp"

#include "lib/archive/verify.hpp"
#include "lib/base/text/json.hpp"
#include "lib/base/text/url.hpp"
#include "lib/wacz/writer.hpp"
#include "lib/warc/capture.hpp"
#include "lib/warc/surt.hpp"
#include "services/capture/replay/replay_source.hpp"

#include <nlohmann/json.hpp>

#include <optional>
#include <set>

namespace holdfast::cli {

namespace {

constexpr std::int64_t kSnapshotsListed = 500;
constexpr const char* kList = "index.jsonl";

} // namespace

ExportedFiles export_files(pg::Connection& connection, const archive::Root& root, const store::ExportQuery& query,
                           Destination& to, const std::function<void(const ExportedFiles&)>& told) {
  ExportedFiles counts;
  const auto list = wacz::temporary_file();
  std::uint64_t list_size = 0;
  std::optional<std::string> after;
  for (;;) {
    const auto batch = store::export_snapshots(connection, query, after, kSnapshotsListed);
    for (const auto& snapshot : batch) {
      const auto host = base::host_directory(base::parse_url(snapshot.url));
      const auto path = host + "/" + warc::timestamp_of(snapshot.date) + "-" + snapshot.id;
      archive::each_file(
          root, snapshot.directory, [](std::string_view) { return true; },
          [&](int file, const std::string& name) {
            const auto size = archive::file_size(file, name);
            to.add(path + "/" + name, file, size, true);
            ++counts.files;
            counts.bytes += size;
          });
      const auto line =
          base::json_text(nlohmann::ordered_json{
              {"url", snapshot.url}, {"title", snapshot.title}, {"date", snapshot.date}, {"path", path}}) +
          "\n";
      wacz::write_all(list.get(), line);
      list_size += line.size();
      ++counts.snapshots;
      told(counts);
    }
    if (static_cast<std::int64_t>(batch.size()) < kSnapshotsListed) break;
    after = batch.back().id;
  }
  to.add(kList, list.get(), list_size, false);
  return counts;
}

namespace {

constexpr std::string_view kPageInfo = "urn:pageinfo:";
constexpr std::size_t kMostUrls = 10'000; // of a page
constexpr std::int64_t kCandidates = 50;  // captures of a URL, of all crawls

std::set<std::string> keys_in(const archive::Root& root, const store::Capture& info) {
  const auto file = root.open_file(info.file);
  if (!file) return {};
  const auto records = nlohmann::json::array({capture::replay_record(info, file.get())});
  const auto answer = capture::ReplaySource(records).answer({{"method", "GET"}, {"url", info.url}});
  const auto noted = answer ? base::strange_json(answer->body) : nlohmann::json();
  std::set<std::string> keys;
  if (!noted.is_object() || !noted.contains("urls") || !noted["urls"].is_object()) return keys;
  for (const auto& [url, about] : noted["urls"].items())
    if (keys.size() < kMostUrls && url.starts_with("http")) keys.insert(warc::url_key(url));
  return keys;
}

} // namespace

std::vector<store::Capture> captures_from_cache(pg::Connection& connection, const archive::Root& root,
                                                std::span<const store::Capture> captures) {
  std::set<std::string> missing;
  for (const auto& capture : captures)
    if (capture.url.starts_with(kPageInfo) && capture.mime == "application/json") missing = keys_in(root, capture);
  for (const auto& capture : captures)
    missing.erase(capture.key);
  std::vector<store::Capture> found;
  for (const auto& key : missing)
    if (auto one = capture_in_crawl(connection, captures.front().crawl_id, key, captures.front().date))
      found.push_back(std::move(*one));
  return found;
}

std::optional<store::Capture> capture_in_crawl(pg::Connection& connection, const std::string& crawl,
                                               const std::string& key, const std::string& at) {
  for (auto& one : store::captures_closest(connection, key, at, kCandidates))
    if (one.crawl_id == crawl && one.mime != "warc/revisit") return std::move(one);
  return std::nullopt;
}

} // namespace holdfast::cli
