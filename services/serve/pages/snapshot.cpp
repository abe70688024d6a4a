#include "lib/archive/page_text.hpp"
#include "lib/base/text/facts.hpp"
#include "lib/base/text/json.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/text/time.hpp"
#include "lib/catalog/list.hpp"
#include "lib/html/parts.hpp"
#include "lib/store/call.hpp"
#include "lib/store/find.hpp"
#include "lib/store/live.hpp"
#include "services/serve/embedded.hpp"
#include "services/serve/pages/pages.hpp"
#include "services/serve/pages/parts.hpp"

#include <nlohmann/json.hpp>

namespace holdfast::serve {

namespace {

constexpr std::size_t kFilesShown = 12; // of a result
constexpr std::size_t kLongestHookError = 600;
constexpr std::size_t kDigestShown = 16;

Html head(const PageRequest& request, const pg::Row& snapshot, bool still) {
  html::Facts facts;
  const std::string id = snapshot["id"], url = snapshot["url"], directory = snapshot["directory"].value_or("");
  const auto number_of = [&](const char* name) { return snapshot[name].value_or<std::int64_t>(0); };
  archive::add_facts(facts,
                     base::read_facts(base::strange_json(snapshot["facts"].value_or("{}"))).value_or(base::Facts()));
  facts.add("Depth", snapshot.integer("depth"));
  if (number_of("bytes") > 0)
    facts.add("Kept", html::with_sub(size_of(number_of("bytes")),
                                     "in " + html::counted(static_cast<std::uint64_t>(number_of("files")), "file")));
  facts.add("Attempts", number_of("attempts"));
  facts.add("Lost workers", number_unless_zero(number_of("lapses")));
  facts.add("Worker", snapshot["owner"].value_or(""));
  facts.add("Added", when(snapshot.text("created_at")));
  facts.add("Sealed", when(snapshot["sealed_at"].value_or("")));
  facts.add("Tags", tag_links(snapshot["tags"]));
  facts.add("Notes", snapshot["notes"].value_or(""));
  Html shelves;
  for (const auto shelf : store::call(request.connection, "shelves_of", snapshot.text("crawl_id"), id)) {
    if (!shelves.empty()) shelves += html::escaped(", ");
    shelves += html::link("/shelf/" + shelf.text("id"), shelf.text("name"));
  }
  facts.add("Shelves", std::move(shelves));
  facts.add("Manifest", snapshot["manifest_sha256"].value_or("").substr(0, kDigestShown));
  if (const auto score = store::call(request.connection, "replay_score", id).value().optional<double>())
    facts.add("Replay", html::with_sub(std::to_string(static_cast<int>(*score * 100)) + " %", "like the capture"));
  const auto& replay = directory.empty() ? std::string() : request.links.replay;
  const bool files = request.links.shown() && !directory.empty();
  const auto around = neighbours(request.connection, id);
  return html::fill(
      embedded::snapshot_html,
      {{"state", state_badge(snapshot["status"], snapshot["outcome"].value_or(""))},
       {"id", id},
       {"name", name_of(snapshot)},
       {"url", html::outside_link(url, url)},
       {"page", still ? "/page/" + id : ""},
       {"files", files ? request.links.file(directory + "/index.html") : ""},
       {"replay", replay.empty() ? "" : replay + timestamp(snapshot["sealed_at"].value_or("")) + "/" + url},
       {"time", when(captured_at(snapshot))},
       {"timeline", around.captures > 0 ? timeline_href(url) : ""},
       {"captures", html::counted(static_cast<std::uint64_t>(around.captures), "capture")},
       {"before", around.previous},
       {"after", around.next},
       {"crawl", snapshot.text("crawl_id")},
       {"why", sentence(store::why(request.connection, id).reason)},
       {"facts", facts.html()}});
}

struct File {
  std::string href, name, type;
};

std::vector<File> files_of(const pg::Row& result, const std::string& directory, const Links& links) {
  std::vector<File> files;
  const auto list = nlohmann::json::parse(result.text("files_json"), nullptr, false);
  if (directory.empty() || !links.shown() || !list.is_array()) return files;
  for (const auto& file : list) {
    if (!file.is_object() || !file.contains("path") || !file["path"].is_string()) continue;
    const auto name = file["path"].get<std::string>();
    files.push_back(
        {links.file(directory + "/" + result.text("plugin") + "/" + name), name, file.value("type", std::string())});
  }
  return files;
}

// Returns where the error output of a failed hook is shown; empty: nowhere.
std::string errors_of(const pg::Row& result, const std::string& directory, const Links& links) {
  if (result.text("status") != "failed" || directory.empty() || !links.shown()) return "";
  return links.file(directory + "/index.html") + "#" + result.text("plugin") + "/" + result.text("hook_name");
}

Html output_of(const pg::Row& result, const std::vector<File>& files, const std::string& errors) {
  html::List shown;
  for (std::size_t i = 0; i < std::min(files.size(), kFilesShown); ++i)
    shown.push_back({{"href", files[i].href}, {"name", files[i].name}});
  return html::fill(
      embedded::output_html,
      {{"output", result.text("output")},
       {"error", result.text("error") == result.text("output") ? "" : cut(result.text("error"), kLongestHookError)},
       {"errors", errors},
       {"files", std::move(shown)},
       {"more", files.size() > kFilesShown ? html::counted(files.size() - kFilesShown, "more file") : ""}});
}

Html acts(const pg::Row& snapshot, const PageRequest& request) {
  const bool sealed = snapshot.text("status") == "sealed";
  auto acts = acts_on("snapshot", request.id, snapshot.text("status"));
  if (sealed) acts.insert(acts.begin(), {"retry", "Archive again", request.id});
  return buttons(acts, sealed ? "/crawl/" + snapshot.text("crawl_id") : request.here);
}

} // namespace

std::string timestamp(const std::string& time) {
  std::string digits;
  for (const char c : time.substr(0, time.find('.')))
    if (base::is_digit(c) && digits.size() < 14) digits += c;
  return digits;
}

std::optional<Page> snapshot_page(const PageRequest& request) {
  const auto rows = catalog::list(request.connection, catalog::ListQuery{"snapshots", 1}.by("snapshot", request.id));
  if (rows.empty()) return std::nullopt;
  const auto snapshot = rows.one();
  const auto directory = snapshot["directory"].value_or("");
  Table table({{"Plugin", "nw"}, {"Status", "nw"}, {"Output", "long"}, {"Time", "n"}, {"Memory", "n"}, {"Size", "n"}},
              "Results of the hooks");
  Html shot;
  bool good = true; // no hook has failed
  const auto results = store::results(request.connection, request.id);
  const bool still = !still_href(snapshot, results, request.links).empty();
  for (const auto result : results) {
    const auto files = files_of(result, directory, request.links);
    for (const auto& file : files)
      if (shot.empty() && result.text("plugin") == "screenshot" && file.type.starts_with("image/"))
        shot =
            html::fill(embedded::shot_html, {{"href", still ? "/page/" + request.id : file.href}, {"src", file.href}});
    good &= result.text("status") != "failed";
    const auto wall = result["wall_ms"].optional<std::int64_t>();
    table.row({result.text("plugin"), html::status_badge(result.text("status")),
               output_of(result, files, errors_of(result, directory, request.links)),
               wall ? base::format_duration(std::chrono::milliseconds(*wall)) : "",
               size_of(result["peak_memory_bytes"].value_or<std::int64_t>(0)),
               size_of(result["output_bytes"].value_or<std::int64_t>(0))});
  }
  Page page{name_of(snapshot), "", {{"head", head(request, snapshot, still), "", false}}};
  if (request.may_change) {
    page.sections.push_back({"acts", acts(snapshot, request), "", false});
    const std::vector<Shareable> things{{"snapshot", request.id, "Link to this capture"},
                                        {"url", snapshot.text("url"), "Link to all captures of this page"}};
    page.sections.push_back({"edit",
                             html::fill(embedded::snapshot_edit_html,
                                        {{"id", request.id},
                                         {"back", request.here},
                                         {"share", directory.empty() ? Html() : share_form(things, request.here)},
                                         {"title", snapshot["title"].value_or("")},
                                         {"notes", snapshot["notes"].value_or("")}}),
                             "", false, false});
  }
  page.sections.push_back({"shot", shot, ""});
  page.sections.push_back({"results",
                           html::fill(embedded::results_html, {{"fold", snapshot.text("status") == "sealed" && good},
                                                               {"count", html::counted(results.size(), "hook")},
                                                               {"table", table.html("No hook has run yet.")}}),
                           "", false});
  return page;
}

} // namespace holdfast::serve
