#include "services/cli/transfer/export_files.hpp"

#include "lib/archive/attempt.hpp"
#include "lib/archive/file_work.hpp"
#include "lib/archive/verify.hpp"
#include "lib/base/error.hpp"
#include "lib/base/text/json.hpp"
#include "lib/base/text/url.hpp"
#include "lib/wacz/writer.hpp"
#include "lib/warc/capture.hpp"
#include "lib/warc/surt.hpp"
#include "services/capture/replay/replay_source.hpp"
#include "services/cli/transfer/export_still.hpp"
#include "services/serve/records.hpp"

#include <nlohmann/json.hpp>

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <set>

namespace holdfast::cli {

namespace {

constexpr std::int64_t kSnapshotsListed = 500;
constexpr const char* kFront = "index.html";
constexpr std::size_t kMostOnPage = 5000; // snapshots

// Returns false for the hooks themselves, which the runner keeps beside their output.
bool is_for_people(std::string_view name) {
  return !(name.substr(name.rfind('/') + 1).starts_with("on_") && name.ends_with(".sh"));
}

// Returns where a file of the page as it stood is exported to; empty: it is none.
std::string as_it_was(std::string_view name) {
  constexpr auto kDirectory = serve::kStillPage.substr(0, serve::kStillPage.find('/') + 1);
  if (name == serve::kStillPage) return std::string(kAsItWas) + "/index.html";
  return name.starts_with(kDirectory) && name.substr(kDirectory.size()).starts_with("frame-")
             ? std::string(kAsItWas) + "/" + std::string(name.substr(kDirectory.size()))
             : "";
}

void add_text(Destination& to, const std::string& path, const std::string& text) {
  const auto file = wacz::temporary_file();
  wacz::write_all(file.get(), text);
  to.add(path, file.get(), text.size(), false);
}

} // namespace

ExportedFiles export_files(pg::Connection& connection, const archive::Root& root, const store::ExportQuery& query,
                           Destination& to, const std::function<void(const ExportedFiles&)>& told) {
  ExportedFiles counts;
  wacz::PageList list;
  archive::CrawlView page{"", "Exported pages", "sealed", "succeeded", "", "", {}, {}, 0, {}, 0};
  store::each_exported(connection, query, kSnapshotsListed, [&](const auto& batch) {
    std::vector<std::string> ids;
    for (const auto& snapshot : batch)
      ids.push_back(snapshot.id);
    const auto captures = store::captures_of(connection, ids);
    for (const auto& snapshot : batch) {
      const auto host = base::host_directory(base::parse_url(snapshot.url));
      const auto path = host + "/" + warc::timestamp_of(snapshot.date) + "-" + snapshot.id;
      archive::CrawlView::Entry entry;
      entry.url = snapshot.url;
      entry.title = snapshot.title;
      entry.outcome = "succeeded";
      entry.path = path + "/" + kFront;
      ExportedStill still(connection, root, snapshot.id, path, to);
      archive::each_file(root, snapshot.directory, is_for_people, [&](int file, const std::string& name) {
        const auto size = archive::file_size(file, name);
        to.add(path + "/" + name, file, size, true);
        ++counts.files;
        counts.bytes += size;
        if (name == "screenshot/thumbnail.jpg") entry.thumbnail = path + "/" + name;
        const auto copy = as_it_was(name);
        if (copy.empty() || ::lseek(file, 0, SEEK_SET) != 0) return;
        add_text(to, path + "/" + copy, still.with_files(archive::read_rest(file, name)));
        ++counts.files;
        if (name == serve::kStillPage) entry.path = path + "/" + copy;
      });
      counts.files += still.files();
      counts.bytes += still.bytes();
      if (page.snapshots.size() < kMostOnPage) page.snapshots.push_back(std::move(entry));
      auto listed = listed_page(snapshot, captures_in(captures, snapshot.id));
      listed.path = path;
      list.add(listed);
      ++counts.snapshots;
      told(counts);
    }
  });
  to.add(wacz::PageList::kPath, list.file(), list.size(), false);
  page.bytes = counts.bytes;
  add_text(to, kFront, archive::render_crawl_html(page));
  return counts;
}

wacz::WrittenPage listed_page(const store::ExportedSnapshot& snapshot, std::span<const store::Capture> captures) {
  const auto key = warc::url_key(snapshot.url);
  const store::Capture* found = nullptr;
  for (const auto& capture : captures) // an answer before the first success is that of a check, which led to the page
    if (capture.key == key && (found == nullptr || (found->status / 100 != 2 && capture.status / 100 == 2)))
      found = &capture;
  return {snapshot.id,
          snapshot.url,
          found == nullptr ? snapshot.date : found->date,
          snapshot.title,
          "",
          snapshot.tags,
          snapshot.notes,
          snapshot.bookmarked};
}

std::span<const store::Capture> captures_in(const std::vector<store::Capture>& captures, const std::string& snapshot) {
  const auto before = [](const store::Capture& one, const std::string& id) { return one.snapshot_id < id; };
  const auto first = std::lower_bound(captures.begin(), captures.end(), snapshot, before);
  const auto last = std::find_if(first, captures.end(), [&](const auto& one) { return one.snapshot_id != snapshot; });
  return {first, last};
}

namespace {

constexpr std::string_view kPageInfo = "urn:pageinfo:";
constexpr std::size_t kMostUrls = 10'000; // of a page
constexpr std::int64_t kCandidates = 50;  // captures of a URL, of all crawls

std::set<std::string> keys_in(const archive::Root& root, const store::Capture& info) {
  const auto file = root.open_file(info.file);
  if (!file) return {};
  const auto records = nlohmann::json::array({warc::replay_record(info, file.get())});
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
  store::CaptureQuery query;
  query.limit = kCandidates;
  for (auto& one : store::captures_closest(connection, key, at, query))
    if (one.crawl_id == crawl && one.mime != "warc/revisit") return std::move(one);
  return std::nullopt;
}

} // namespace holdfast::cli
