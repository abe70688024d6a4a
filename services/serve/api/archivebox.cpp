// The paths of ArchiveBox's API by which its browser extension and scripts add pages and list them: the same names of
// members, with the values of this collection.
#include "lib/base/error.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/text/url.hpp"
#include "lib/catalog/list.hpp"
#include "lib/catalog/operation.hpp"
#include "lib/store/crawl.hpp"
#include "lib/store/find.hpp"
#include "services/serve/api/table.hpp"

#include <algorithm>

namespace holdfast::serve {

namespace {

using namespace schema;

constexpr int kPageOfSnapshots = 200;
constexpr const char* kNone = "00000000-0000-0000-0000-000000000000"; // no snapshot is before it

constexpr ApiField kCliAdd[] = {
    {"urls", kUrlList, "URLs to archive", true},
    {"tag", kText, "Tags, separated by commas"},
    {"formattedTags", kText, "Ignored: the browser extension sends the tags twice"},
    {"depth", R"({"type":"integer","minimum":0,"maximum":4})", "How many links to follow (0)"},
    {"parser", kText, "Ignored: these are URLs"},
    {"extract", kText, "Plugins, separated by commas"},
    {"plugins", kText, "Plugins, separated by commas"},
    {"extractors", kText, "Plugins, separated by commas"},
    {"update_all", kFlag, "As update"},
    {"update", kFlag, "Run only what failed or is missing"},
    {"overwrite", kFlag, "Archive again, then remove older snapshots"},
    {"index_only", kFlag, "Ignored: pages are always archived"},
    {"init", kFlag, "Ignored"},
};
constexpr ApiField kCheckToken[] = {{"token", kText, "The token, in place of a header", true}};
constexpr ApiField kCliRemove[] = {
    {"filter_patterns", kUrlList, "URLs of pages", true},
    {"filter_type", R"({"type":"string","enum":["exact"]})", "URLs are not searched for parts (exact)"},
    {"delete", kFlag, "Ignored: files go with their snapshot"},
    {"after", R"({"type":"integer","minimum":0,"maximum":0})", "Snapshots are not chosen by their time (0)"},
    {"before", R"({"type":"integer","minimum":9999999999,"maximum":999999999999999})", "The same"},
};
constexpr ApiField kCoreSnapshots[] = {
    {"limit", kLimit, "At most this many (200)"},
    {"offset", R"({"type":"integer","minimum":0,"maximum":100000})", "Leave out this many of the newest (0)"},
    {"page", R"({"type":"integer","minimum":0,"maximum":100000})",
     "Leave out so many times the limit, without an offset (0)"},
    {"url", kWords, "Only of this URL"},
    {"tag", kWord, "Only with this tag"},
    {"search", kWord, "Only if the URL contains this"},
    {"status", kWord, "Only with this status"},
    {"created_at__gte", kTime, "Only what was added since this time"},
    {"with_archiveresults", kFlag, "Ignored: GET /api/v1/snapshots/ID has the results"},
};

Response cli_add(const ApiCall& call) {
  nlohmann::json body{{"urls", call.body["urls"]},
                      {"update", call.checked("update") || call.checked("update_all")},
                      {"overwrite", call.checked("overwrite")}};
  if (const auto tag = call.text("tag"); !tag.empty()) body["tags"] = base::split(tag, ",");
  for (const char* name : {"extract", "extractors", "plugins"})
    if (const auto plugins = call.text(name); !plugins.empty()) body["plugins"] = base::split(plugins, ",");
  if (call.body.contains("depth")) body["max_depth"] = call.body["depth"];
  auto planned = call.options.plan(body);
  planned.crawl.id = call.new_id;
  planned.crawl["created_by"] = call.caller.by();
  store::crawl_add(call.connection, planned.crawl, planned.seeds);
  auto urls = Json::array();
  for (const auto& seed : planned.seeds)
    urls.push_back(seed.url);
  return json_response(
      {{"success", true},
       {"errors", Json::array()},
       {"result", {{"crawl_id", planned.crawl.id}, {"num_snapshots", urls.size()}, {"queued_urls", urls}}},
       {"result_format", "json"},
       {"stdout", "crawl " + planned.crawl.id + ": queued"},
       {"stderr", ""}});
}

Response check_token(const ApiCall& call) { return json_response({{"success", true}, {"user_id", call.caller.by()}}); }

Response cli_remove(const ApiCall& call) {
  auto removed = Json::array();
  for (const auto& pattern : call.body["filter_patterns"]) {
    const auto url = base::parse_url(pattern.get<std::string>()).text;
    for (store::Found found = store::find(call.connection, url, store::FindAs::newest); !found.id.empty();) {
      if (!catalog::command(call.connection, "removeSnapshot", found.id, call.caller.by())) break;
      removed.push_back(found.id);
      try {
        found = store::find(call.connection, url, store::FindAs::newest);
      } catch (const base::Error&) { // that was the last
        break;
      }
    }
  }
  return json_response({{"success", true},
                        {"errors", Json::array()},
                        {"result", {{"removed_count", removed.size()}, {"removed_snapshot_ids", removed}}},
                        {"result_format", "json"}});
}

Response core_snapshots(const ApiCall& call) {
  const auto limit = call.number("limit", kPageOfSnapshots),
             offset = call.number("offset", 0) > 0 ? call.number("offset", 0)
                                                   : std::min(call.number("page", 0), 100'000 / limit) * limit;
  catalog::ListQuery query{"snapshots", limit};
  query.by("url", call.parameter("search")).by("exact_url", call.parameter("url"));
  query.by("tag", call.parameter("tag")).by("status", call.parameter("status"));
  query.by("since", call.parameter("created_at__gte"));
  if (offset > 0) query.by("before", catalog::snapshot_number(call.connection, offset, query).value_or(kNone));
  auto items = Json::array();
  for (const auto& row : array_of(catalog::list_json(call.connection, query)))
    items.push_back({{"TYPE", "core.models.Snapshot"},
                     {"id", row["id"]},
                     {"crawl_id", row["crawl_id"]},
                     {"url", row["url"]},
                     {"title", row["title"]},
                     {"tags", row["tags"]},
                     {"status", row["status"]},
                     {"created_at", row["created_at"]},
                     {"bookmarked_at", row["created_at"]},
                     {"downloaded_at", row["sealed_at"]},
                     {"archive_path", row["directory"]}});
  return json_response(
      {{"count", items.size()}, {"limit", limit}, {"offset", offset}, {"num_items", items.size()}, {"items", items}});
}

constexpr ApiOperation kArchiveBox[] = {
    {"POST",
     "v1/auth/check_api_token",
     "archiveboxCheckToken",
     "Whether a token may add pages",
     &check_token,
     "ArchiveBoxToken",
     {},
     kCheckToken},
    {"POST",
     "v1/cli/add",
     "archiveboxAdd",
     "Add URLs, as ArchiveBox's API does",
     &cli_add,
     "ArchiveBoxAnswer",
     {},
     kCliAdd},
    {"POST",
     "v1/cli/remove",
     "archiveboxRemove",
     "Delete the snapshots of URLs, as ArchiveBox's API does",
     &cli_remove,
     "ArchiveBoxAnswer",
     {},
     kCliRemove},
    {"GET",
     "v1/core/snapshots",
     "archiveboxSnapshots",
     "List snapshots, as ArchiveBox's API does",
     &core_snapshots,
     "ArchiveBoxSnapshots",
     kCoreSnapshots,
     {}},
};

} // namespace

std::span<const ApiOperation> api_archivebox() { return kArchiveBox; }

} // namespace holdfast::serve
