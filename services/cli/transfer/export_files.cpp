#include "services/cli/transfer/export_files.hpp"

#include "lib/archive/attempt.hpp"
#include "lib/archive/file_work.hpp"
#include "lib/archive/verify.hpp"
#include "lib/base/error.hpp"
#include "lib/base/sha256.hpp"
#include "lib/base/text/json.hpp"
#include "lib/base/text/url.hpp"
#include "lib/wacz/writer.hpp"
#include "lib/warc/capture.hpp"
#include "lib/warc/surt.hpp"
#include "services/capture/replay/replay_source.hpp"
#include "services/serve/http_message.hpp"
#include "services/serve/records.hpp"

#include <nlohmann/json.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

namespace holdfast::cli {

namespace {

constexpr std::int64_t kSnapshotsListed = 500;
constexpr const char* kFront = "index.html";
constexpr std::size_t kMostOnPage = 5000;     // snapshots
constexpr const char* kAsItWas = "as-it-was"; // the page as it stood, in the directory of a snapshot

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

constexpr std::size_t kMostFiles = 5000; // of a snapshot
constexpr std::string_view kEncoded = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789%-._~!*'()";

// Browsers take these types from a disk only by the ends of their names.
std::string name_end(const std::string& type) {
  constexpr std::array<std::pair<std::string_view, const char*>, 4> kEnds{
      {{"text/css", ".css"}, {"image/svg+xml", ".svg"}, {"text/html", ".html"}, {"application/xhtml+xml", ".xhtml"}}};
  for (const auto& [begin, end] : kEnds)
    if (type.starts_with(begin)) return end;
  return "";
}

// The page as it stood: the records that it shows become files beside it, so that it is shown from a disk, without a
// server.
class ExportedStill {
public:
  // `path`: of the exported snapshot.
  ExportedStill(pg::Connection& connection, const archive::Root& root, std::string snapshot, std::string path,
                Destination& to)
      : connection_(connection), root_(root), snapshot_(std::move(snapshot)), path_(std::move(path)), to_(to) {}

  // Returns the document with names of files in place of the URLs of records, and exports the files.
  std::string with_files(const std::string& document);
  std::uint64_t bytes() const noexcept { return bytes_; }
  std::size_t files() const noexcept { return names_.size(); }

private:
  std::string file_of(const std::string& url);

  pg::Connection& connection_;
  const archive::Root& root_;
  const std::string snapshot_, path_;
  Destination& to_;
  std::map<std::string, std::string> names_; // of the files, by URL
  std::uint64_t bytes_{0};
};

std::string ExportedStill::file_of(const std::string& url) {
  if (const auto known = names_.find(url); known != names_.end()) return known->second;
  auto& name = names_[url]; // empty while it is read: style sheets may import each other
  if (names_.size() > kMostFiles) return name;
  const auto body = serve::read_record(connection_, [this](const std::string& file) { return root_.open_file(file); },
                                       {snapshot_, url});
  if (!body) return name;
  name = base::sha256_hex(url).substr(0, 16) + name_end(body->type);
  const auto result = name; // the map may grow meanwhile
  const auto to = path_ + "/" + kAsItWas + "/r/" + result;
  if (body->file) {
    struct stat about {};
    if (::fstat(body->file.get(), &about) != 0) return result;
    bytes_ += static_cast<std::uint64_t>(about.st_size);
    to_.add(to, body->file.get(), static_cast<std::uint64_t>(about.st_size), true);
    return result;
  }
  const auto bytes = body->type.starts_with("text/css") ? with_files(body->bytes) : body->bytes;
  const auto file = wacz::temporary_file();
  wacz::write_all(file.get(), bytes);
  bytes_ += bytes.size();
  to_.add(to, file.get(), bytes.size(), true);
  return result;
}

std::string ExportedStill::with_files(const std::string& document) {
  std::string out;
  std::size_t done = 0;
  constexpr std::string_view kColon = "%3A";
  for (auto colon = document.find(kColon); colon != std::string::npos; colon = document.find(kColon, colon + 1)) {
    const auto at = document.find_last_not_of("htpscid", colon - 1) + 1; // npos + 1 is 0
    const auto rest = std::string_view(document).substr(at);
    if (at < done ||
        !(rest.starts_with("http%3A%2F%2F") || rest.starts_with("https%3A%2F%2F") || rest.starts_with("cid%3A")))
      continue;
    const auto before = std::string_view(document).substr(0, at);
    if (!before.ends_with("r/") && !before.ends_with('"')) continue; // in a document; in a style sheet
    const auto end = std::min(document.find_first_not_of(kEncoded, at), document.size());
    std::string url;
    if (!serve::percent_decode(rest.substr(0, end - at), false, url)) continue;
    const auto name = file_of(url);
    out.append(document, done, at - done).append(name.empty() ? "none" : name);
    done = end;
  }
  return out.append(document, done);
}

} // namespace

Exported export_files(pg::Connection& connection, const archive::Root& root, const store::ExportQuery& query,
                      Destination& to, const std::function<void(const Exported&)>& told) {
  Exported counts;
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
  if (counts.snapshots == 0) return counts;
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
