// Operations on crawls, snapshots and schedules. Each calls the function of lib/store that the verb of its name calls.
#include "lib/base/duration.hpp"
#include "lib/base/error.hpp"
#include "lib/store/control.hpp"
#include "lib/store/live.hpp"
#include "lib/store/schedule.hpp"
#include "lib/store/token.hpp"
#include "services/serve/api_table.hpp"

namespace holdfast::serve {

namespace {

using namespace schema;

constexpr int kBatchesAtOnce = 20; // of a cancelled crawl; its workers and the runner close the rest

// As the options of `holdfast add`, which services/cli/serve_plan.cpp makes of them.
constexpr ApiField kUrls{"urls", kUrlList, "URLs to archive"};
constexpr ApiField kLines{"text", R"({"type":"string","maxLength":67108864})",
                          "A list of URLs, bookmarks, a feed or a sitemap, as in a file"};
constexpr ApiField kFile{"file", R"({"type":"string","contentEncoding":"base64","maxLength":90000000})",
                         "The bytes of such a file, in any encoding or packed by gzip, as base64"};
constexpr ApiField kParser{"parser",
                           R"({"type":"string",
"enum":["auto","txt","jsonl","json","netscape","html","csv","rss","sitemap","opml","xbel","pocket","pinboard"]})",
                           "What the text is (auto)"};
constexpr ApiField kDepth{"depth", R"({"type":"integer","minimum":0,"maximum":16})", "How many links to follow (0)"};
constexpr ApiField kMaxUrls{"max_urls", kCount, "At most this many pages; 0: no limit"};
constexpr ApiField kMaxBytes{"max_bytes", kText, "Keep no more than this in all: 500m"};
constexpr ApiField kMaxPageBytes{"max_page_bytes", kText, "Keep no more than this of one page: 100m"};
constexpr ApiField kMaxTime{"max_time", kText, "Stop after this long: 2h"};
constexpr ApiField kSame{"same", R"({"type":"string","enum":["host","domain","prefix"]})",
                         "Only follow links to the same host, domain or directory"};
constexpr ApiField kAllow{"allow", kTexts, "Only URLs that fit: example.com, *.example.com, or a regular expression"};
constexpr ApiField kDeny{"deny", kTexts, "No URLs that fit this"};
constexpr ApiField kLabel{"label", kText, "Name"};
constexpr ApiField kNotes{"notes", kText, "Notes"};
constexpr ApiField kTags{"tags", kTexts, "Tags of all pages"};
constexpr ApiField kPlugins{"plugins", kTexts, "Only these plugins"};
constexpr ApiField kPersona{"persona", kText, "Options, cookies and profile of this persona"};
constexpr ApiField kOptions{"options",
                            R"({"type":"object","additionalProperties":{"type":"string","maxLength":10000}})",
                            "Options for hooks, by name"};
constexpr ApiField kPriorityOf{"priority", kPriority, "Above 0: before other crawls"};
constexpr ApiField kParallel{"parallel", kCount, "At most this many pages at once"};
constexpr ApiField kDelay{"delay", kText, "Between two pages of a host that has no rule of its own: 2s"};
constexpr ApiField kRobots{"robots", kFlag, "Obey robots.txt"};
constexpr ApiField kPatience{"patience", R"({"type":"string","enum":["quick","normal","patient"]})",
                             "How pages are read: quick scrolls once; patient may take minutes (normal)"};
constexpr ApiField kIdentify{"identify", kText, "Whose crawl it is, in the user agent: a URL or an address of mail"};
constexpr ApiField kOnlyNew{"only_new", kFlag, "Leave out what is archived"};
constexpr ApiField kMaxAge{"max_age", kText, "With only_new or update: but not if that is older than this: 30d"};
constexpr ApiField kUpdate{"update", kFlag, "Run only hooks that failed or are missing"};
constexpr ApiField kOverwrite{"overwrite", kFlag, "Archive again, then remove older snapshots"};
constexpr ApiField kKeep{"keep", kText, "Remove it again after this long: 90d"};
constexpr ApiField kStrict{"strict", kFlag, "Add nothing if a line of the text cannot be used"};

constexpr ApiField kAdd[] = {kUrls,
                             kLines,
                             kFile,
                             kParser,
                             kDepth,
                             kMaxUrls,
                             kMaxBytes,
                             kMaxPageBytes,
                             kMaxTime,
                             kSame,
                             kAllow,
                             kDeny,
                             kLabel,
                             kNotes,
                             kTags,
                             kPlugins,
                             kPersona,
                             kOptions,
                             kPriorityOf,
                             kParallel,
                             kDelay,
                             kRobots,
                             kPatience,
                             kIdentify,
                             kOnlyNew,
                             kMaxAge,
                             kUpdate,
                             kOverwrite,
                             kKeep,
                             kStrict,
                             {"dry_run", kFlag, "Only check, and say what would be added"}};
constexpr ApiField kAddSchedule[] = {
    {"every", kText, "minutely, hourly, daily, weekly, monthly, yearly, \"every 30 minutes\", or cron's five fields",
     true},
    {"time_zone", kText, "For example Europe/Berlin (UTC)"},
    kUrls,
    kLines,
    kFile,
    kParser,
    kDepth,
    kMaxUrls,
    kMaxBytes,
    kMaxPageBytes,
    kMaxTime,
    kSame,
    kAllow,
    kDeny,
    kLabel,
    kTags,
    kPlugins,
    kPersona,
    kOptions,
    kPriorityOf,
    kParallel,
    kDelay,
    kRobots,
    kPatience,
    kIdentify,
    kOnlyNew,
    kMaxAge,
    kUpdate,
    kOverwrite,
    kKeep,
    kStrict};
constexpr ApiField kResume[] = {kReason[0], {"at", kText, "Not before this time: 2026-12-24T18:00:00Z"}};
constexpr ApiField kRetry[] = {{"ids", kIds, "Crawls and snapshots", true},
                               {"failed", kFlag, "Of crawls only what did not succeed"},
                               {"plugins", kTexts, "Only these plugins"}};
constexpr ApiField kChangeCrawl[] = {kLabel,      kNotes,      kAddTags,
                                     kRemoveTags, kPriorityOf, {"keep", kText, "How long it is kept: 90d, or forever"}};
constexpr std::string_view kLists =
    R"({"type":"object","additionalProperties":{"type":"array","items":{"type":"string","maxLength":2000}}})";
constexpr ApiField kScope[] = {{"add", kLists, "Patterns to add to allow, deny, hosts, domains, prefixes, schemes"},
                               {"remove", kLists, "Patterns to remove"}};
constexpr ApiField kChangeSnapshot[] = {
    {"title", kText, "Title to show; empty: that of the page"}, {"notes", kText, "Notes on it"}, kAddTags, kRemoveTags};

Json added(const store::NewCrawl& crawl, const PlannedAdd& planned) {
  Json json{{"id", crawl.id}, {"seeds", planned.seeds.size()}, {"left_out", planned.left_out}};
  if (!planned.problems.empty()) json["problems"] = planned.problems;
  return json;
}

Response add(const ApiCall& call) {
  auto planned = call.options.plan(call.body);
  auto& crawl = planned.crawl;
  crawl.id = call.new_id;
  crawl.created_by = call.caller.by();
  const bool dry = call.checked("dry_run");
  const auto& key = call.request.idempotency_key;
  if (key.size() > 255) throw base::Error(base::ErrorClass::usage, "Idempotency-Key: longer than 255 bytes");
  if (!dry && !key.empty())
    crawl.id = store::api_request_once(call.connection, call.caller.by(), key, call.request.body, crawl.id);
  const bool first = !dry && store::crawl_add(call.connection, crawl, planned.seeds);
  auto json = added(crawl, planned);
  json["added"] = first;
  if (dry) {
    json.erase("id");
    json["urls"] = Json::array();
    for (const auto& seed : planned.seeds)
      json["urls"].push_back(seed.url);
  }
  auto response = json_response(json, first ? 201 : 200);
  if (!dry) response.headers.emplace_back("Location", "/api/v1/crawls/" + crawl.id);
  return response;
}

Response add_schedule(const ApiCall& call) {
  auto planned = call.options.plan(call.body);
  store::NewSchedule schedule;
  schedule.id = call.new_id;
  schedule.label = planned.crawl.label;
  schedule.every = call.text("every");
  if (const auto zone = call.text("time_zone"); !zone.empty()) schedule.time_zone = zone;
  schedule.crawl = planned.crawl;
  schedule.crawl.created_by = call.caller.by();
  schedule.seeds = planned.seeds;
  store::schedule_add(call.connection, schedule);
  return json_response(array_of(store::schedules(call.connection, schedule.id).column("json")).at(0));
}

template <bool (*Act)(pg::Connection&, const std::string&, const store::Command&)>
Response on_crawl(const ApiCall& call) {
  const auto id = target(call, "crawl");
  return id ? changed(Act(call.connection, *id, command(call))) : not_found("crawl");
}

bool cancel_crawl(pg::Connection& connection, const std::string& id, const store::Command& order) {
  return store::crawl_cancel(connection, id, order, {}, kBatchesAtOnce);
}

enum class Steer { pause, resume, cancel };
template <Steer What>
Response on_snapshot(const ApiCall& call) {
  const auto id = target(call, "snapshot");
  const char* action = What == Steer::pause ? "pause" : What == Steer::resume ? "resume" : "cancel";
  return id ? changed(store::snapshot_command(call.connection, *id, action, command(call))) : not_found("snapshot");
}

Response retry(const ApiCall& call) {
  const auto urls = store::crawl_retry(call.connection, call.new_id, call.texts("ids"), call.checked("failed"),
                                       call.texts("plugins"), call.caller.by());
  return json_response({{"id", urls > 0 ? Json(call.new_id) : Json(nullptr)}, {"seeds", urls}});
}

Response change_crawl(const ApiCall& call) {
  const auto id = target(call, "crawl");
  if (!id) return not_found("crawl");
  const auto keep = call.text("keep");
  std::optional<std::chrono::milliseconds> time;
  if (!keep.empty() && keep != "forever") time = base::parse_duration(keep);
  store::Description description;
  if (call.body.contains("label")) description.label = call.text("label");
  if (call.body.contains("notes")) description.notes = call.text("notes");
  description.add_tags = call.texts("add_tags");
  description.remove_tags = call.texts("remove_tags");
  store::crawl_describe(call.connection, *id, description, call.caller.by());
  if (call.body.contains("priority"))
    store::crawl_priority(call.connection, *id, call.body["priority"].get<int>(), call.caller.by());
  if (!keep.empty()) store::crawl_keep(call.connection, *id, time);
  return changed(true);
}

Response change_scope(const ApiCall& call) {
  const auto id = target(call, "crawl");
  if (!id) return not_found("crawl");
  const auto lists = [&](const char* name) { return call.body.value(name, store::ScopeLists()); };
  return changed(store::crawl_scope(call.connection, *id, lists("add"), lists("remove"), call.caller.by()));
}

Response change_snapshot(const ApiCall& call) {
  const auto id = target(call, "snapshot");
  if (!id) return not_found("snapshot");
  store::Description description;
  if (call.body.contains("title")) description.title = call.text("title");
  if (call.body.contains("notes")) description.notes = call.text("notes");
  description.add_tags = call.texts("add_tags");
  description.remove_tags = call.texts("remove_tags");
  return changed(store::snapshot_describe(call.connection, *id, description, call.caller.by()));
}

// The runner deletes the files.
Response remove_crawl(const ApiCall& call) {
  const auto id = target(call, "crawl");
  if (!id) return not_found("crawl");
  store::crawl_remove(call.connection, *id, call.caller.by());
  return changed(true);
}

Response remove_snapshot(const ApiCall& call) {
  const auto id = target(call, "snapshot");
  return id ? changed(store::snapshot_remove(call.connection, *id, call.caller.by())) : not_found("snapshot");
}

Response enable_schedule(const ApiCall& call, bool enabled) {
  const auto id = store::schedule_find(call.connection, call.id);
  return changed(store::schedule_enable(call.connection, id, enabled));
}
Response pause_schedule(const ApiCall& call) { return enable_schedule(call, false); }
Response resume_schedule(const ApiCall& call) { return enable_schedule(call, true); }
Response remove_schedule(const ApiCall& call) {
  return changed(store::schedule_remove(call.connection, store::schedule_find(call.connection, call.id)));
}
Response run_schedule(const ApiCall& call) {
  const auto id = store::schedule_find(call.connection, call.id);
  const bool ran = store::schedule_run(call.connection, id, call.new_id);
  return json_response({{"changed", ran}, {"id", ran ? Json(call.new_id) : Json(nullptr)}});
}

constexpr ApiOperation kCrawlOperations[] = {
    {"POST", "v1/crawls", "addCrawl", "Add URLs as one crawl", &add, {}, kAdd, 201},
    {"PATCH",
     "v1/crawls/{id}",
     "changeCrawl",
     "Change label, notes, tags, priority, or how long it is kept",
     &change_crawl,
     {},
     kChangeCrawl},
    {"DELETE",
     "v1/crawls/{id}",
     "removeCrawl",
     "Delete a sealed crawl; the runner deletes its files",
     &remove_crawl,
     {},
     {}},
    {"POST", "v1/crawls/{id}/pause", "pauseCrawl", "Pause a crawl", &on_crawl<&store::crawl_pause>, {}, kReason},
    {"POST", "v1/crawls/{id}/resume", "resumeCrawl", "Resume a crawl", &on_crawl<&store::crawl_resume>, {}, kResume},
    {"POST", "v1/crawls/{id}/cancel", "cancelCrawl", "End a crawl for ever", &on_crawl<&cancel_crawl>, {}, kReason},
    {"POST", "v1/crawls/{id}/scope", "scopeCrawl", "Change what belongs to a crawl", &change_scope, {}, kScope},
    {"POST", "v1/retry", "retry", "Try crawls and snapshots again, as one new crawl", &retry, {}, kRetry},
    {"PATCH",
     "v1/snapshots/{id}",
     "changeSnapshot",
     "Change title, notes and tags of a snapshot",
     &change_snapshot,
     {},
     kChangeSnapshot},
    {"DELETE",
     "v1/snapshots/{id}",
     "removeSnapshot",
     "Delete a snapshot of a sealed crawl; the runner deletes its files",
     &remove_snapshot,
     {},
     {}},
    {"POST", "v1/snapshots/{id}/pause", "pauseSnapshot", "Pause a snapshot", &on_snapshot<Steer::pause>, {}, kReason},
    {"POST",
     "v1/snapshots/{id}/resume",
     "resumeSnapshot",
     "Resume a snapshot",
     &on_snapshot<Steer::resume>,
     {},
     kResume},
    {"POST",
     "v1/snapshots/{id}/cancel",
     "cancelSnapshot",
     "End a snapshot for ever",
     &on_snapshot<Steer::cancel>,
     {},
     kReason},
    {"POST", "v1/schedules", "addSchedule", "Make a schedule", &add_schedule, {}, kAddSchedule},
    {"POST",
     "v1/schedules/{id}/pause",
     "pauseSchedule",
     "Add no more crawls until it is resumed",
     &pause_schedule,
     {},
     {}},
    {"POST", "v1/schedules/{id}/resume", "resumeSchedule", "Resume a schedule", &resume_schedule, {}, {}},
    {"POST", "v1/schedules/{id}/run", "runSchedule", "Add its crawl now", &run_schedule, {}, {}},
    {"DELETE", "v1/schedules/{id}", "removeSchedule", "Remove a schedule; its pages stay", &remove_schedule, {}, {}},
};

} // namespace

std::span<const ApiOperation> api_crawls() { return kCrawlOperations; }

} // namespace holdfast::serve
