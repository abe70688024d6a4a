#include "lib/base/characters.hpp"
#include "lib/base/duration.hpp"
#include "lib/html/parts.hpp"
#include "lib/store/capture.hpp"
#include "lib/store/catalog/view.hpp"
#include "lib/store/live.hpp"
#include "lib/warc/surt.hpp"
#include "services/serve/embedded.hpp"
#include "services/serve/pages.hpp"
#include "services/serve/parts.hpp"

#include <nlohmann/json.hpp>

#include <set>
#include <tuple>

namespace holdfast::serve {

namespace {

constexpr std::size_t kFilesShown = 12; // of a result
constexpr std::size_t kLongestHookError = 600;
constexpr std::size_t kDigestShown = 16;
constexpr std::int64_t kCapturesShown = 100; // of a URL

// "2026-01-31 23:59:59.5+00" -> "20260131235959"
std::string timestamp(const std::string& time) {
  std::string digits;
  for (const char c : time.substr(0, time.find('.')))
    if (base::is_digit(c) && digits.size() < 14) digits += c;
  return digits;
}

Html head(const PageRequest& request, const store::Snapshot& snapshot) {
  html::Facts facts;
  if (snapshot.http_status > 0)
    facts.add("Response", "HTTP " + std::to_string(snapshot.http_status) + " " + snapshot.mime);
  facts.add("Depth", snapshot.depth);
  if (snapshot.bytes > 0)
    facts.add("Kept", html::with_sub(size_of(snapshot.bytes),
                                     "in " + html::counted(static_cast<std::uint64_t>(snapshot.files), "file")));
  if (snapshot.resources)
    facts.add("Resources", html::with_sub(std::to_string(*snapshot.resources),
                                          snapshot.resources_missing == 0
                                              ? std::string("all recorded")
                                              : std::to_string(snapshot.resources_missing) + " missing"));
  facts.add("Attempts", snapshot.attempts);
  facts.add("Owners lost", number_unless_zero(snapshot.lapses));
  facts.add("Worker", snapshot.owner);
  facts.add("Added", when(snapshot.created_at));
  facts.add("Sealed", when(snapshot.sealed_at));
  facts.add("Tags", tag_links(snapshot.tags));
  facts.add("Manifest", snapshot.manifest_sha256.substr(0, kDigestShown));
  if (const auto score = store::replay_score(request.connection, snapshot.id))
    facts.add("Replay", html::with_sub(std::to_string(static_cast<int>(*score * 100)) + " %", "like the capture"));
  const auto& replay = snapshot.directory.empty() ? std::string() : request.links.replay;
  const bool files = request.links.shown() && !snapshot.directory.empty();
  return html::fill(embedded::snapshot_html,
                    {{"state", state_badge(snapshot.status, snapshot.outcome)},
                     {"id", snapshot.id},
                     {"name", snapshot.name()},
                     {"url", html::outside_link(snapshot.url, snapshot.url)},
                     {"files", files ? request.links.file(snapshot.directory + "/index.html") : ""},
                     {"replay", replay.empty() ? "" : replay + timestamp(snapshot.sealed_at) + "/" + snapshot.url},
                     {"captures", replay.empty() ? "" : replay + "*/" + snapshot.url},
                     {"crawl", snapshot.crawl_id},
                     {"why", sentence(store::why(request.connection, snapshot.id).reason)},
                     {"facts", facts.html()}});
}

struct File {
  std::string href, name, type;
};

// The files of a result that the browser can open.
std::vector<File> files_of(const store::ShownResult& result, const std::string& directory, const Links& links) {
  std::vector<File> files;
  const auto list = nlohmann::json::parse(result.files_json, nullptr, false);
  if (directory.empty() || !links.shown() || !list.is_array()) return files;
  for (const auto& file : list) {
    if (!file.is_object() || !file.contains("path") || !file["path"].is_string()) continue;
    const auto name = file["path"].get<std::string>();
    files.push_back(
        {links.file(directory + "/" + result.plugin + "/" + name), name, file.value("type", std::string())});
  }
  return files;
}

// Where the error output of a failed hook is shown; empty: nowhere.
std::string errors_of(const store::ShownResult& result, const std::string& directory, const Links& links) {
  if (result.status != "failed" || directory.empty() || !links.shown()) return "";
  return links.file(directory + "/index.html") + "#" + result.plugin + "/" + result.hook;
}

Html output_of(const store::ShownResult& result, const std::vector<File>& files, const std::string& errors) {
  html::List shown;
  for (std::size_t i = 0; i < std::min(files.size(), kFilesShown); ++i)
    shown.push_back({{"href", files[i].href}, {"name", files[i].name}});
  return html::fill(
      embedded::output_html,
      {{"output", result.output},
       {"error", cut(result.error, kLongestHookError)},
       {"errors", errors},
       {"files", std::move(shown)},
       {"more", files.size() > kFilesShown ? html::counted(files.size() - kFilesShown, "more file") : ""}});
}

Html acts(const store::Snapshot& snapshot, const PageRequest& request) {
  const bool sealed = snapshot.status == "sealed";
  auto acts = acts_on("snapshot", snapshot.id, snapshot.status);
  if (sealed) acts.insert(acts.begin(), {"retry", "Archive again", snapshot.id});
  return buttons(acts, sealed ? "/crawl/" + snapshot.crawl_id : request.here);
}

// All captures of the snapshot's URL, the latest first; of each snapshot the first record.
Html captures_of(const PageRequest& request, const store::Snapshot& snapshot) {
  store::CaptureQuery query;
  std::tie(query.first, query.end) = warc::key_range(snapshot.url, warc::Match::exact);
  query.newest = true;
  query.limit = kCapturesShown;
  Table table({{"Captured", "nw"}, {"Snapshot", "nw"}, {"Status", "n"}, {"Type", "nw"}, {"Replay", "nw"}},
              "Captures of this URL");
  std::set<std::string> shown;
  for (const auto& capture : store::captures(request.connection, query)) {
    if (!shown.insert(capture.snapshot_id).second) continue;
    const auto href = request.links.replay + warc::timestamp_of(capture.date) + "/" + capture.url;
    table.row({when(capture.date),
               capture.snapshot_id == snapshot.id ? Html(html::Literal("this one"))
                                                  : snapshot_link(capture.snapshot_id, short_id(capture.snapshot_id)),
               number_unless_zero(capture.status), capture.mime,
               request.links.replay.empty() ? Html() : html::outside_link(href, "Open as it was")});
  }
  return shown.empty() ? Html() : table.html("");
}

} // namespace

std::optional<Page> snapshot_page(const PageRequest& request) {
  const auto snapshot = store::find_snapshot(request.connection, request.id);
  if (!snapshot) return std::nullopt;
  Table table({{"Plugin", "nw"}, {"Status", "nw"}, {"Output", "long"}, {"Time", "n"}, {"Memory", "n"}, {"Size", "n"}},
              "Results of the hooks");
  Html shot;
  for (const auto& result : store::results(request.connection, request.id)) {
    const auto files = files_of(result, snapshot->directory, request.links);
    for (const auto& file : files)
      if (shot.empty() && result.plugin == "screenshot" && file.type.starts_with("image/"))
        shot = html::fill(embedded::shot_html, {{"href", file.href}});
    table.row({result.plugin, html::status_badge(result.status),
               output_of(result, files, errors_of(result, snapshot->directory, request.links)),
               result.wall ? base::format_duration(*result.wall) : "", size_of(result.peak_memory_bytes),
               size_of(result.output_bytes)});
  }
  Page page{snapshot->name(), "", {{"head", head(request, *snapshot), "", false}}};
  if (request.may_change) page.sections.push_back({"acts", acts(*snapshot, request), "", false});
  page.sections.push_back({"shot", shot, ""});
  page.sections.push_back({"results", table.html("No hook has run yet."), "Results"});
  if (auto captures = captures_of(request, *snapshot); !captures.empty())
    page.sections.push_back({"captures", std::move(captures), "Captures of this URL"});
  return page;
}

} // namespace holdfast::serve
