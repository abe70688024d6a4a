#include "lib/catalog/operation.hpp"

#include "lib/base/error.hpp"
#include "lib/base/text/host.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/text/time.hpp"
#include "lib/base/text/url.hpp"
#include "lib/base/uuid.hpp"
#include "lib/catalog/list.hpp"
#include "lib/formats/selector.hpp"
#include "lib/store/call.hpp"
#include "lib/store/crawl.hpp"
#include "lib/store/find.hpp"
#include "lib/store/persona.hpp"
#include "lib/store/token.hpp"

#include <algorithm>
#include <regex>
#include <utility>

namespace holdfast::catalog {

namespace {

using namespace schema;
using Answer = nlohmann::ordered_json;
using Call = OperationCall;

constexpr std::string_view kLists =
    R"({"type":"object","additionalProperties":{"type":"array","items":{"type":"string","maxLength":2000}}})";
constexpr Field kAddTags{"add_tags", kNames, "Tags to add; a crawl's tags are also those of its snapshots", false,
                         "-t,--tag"};
constexpr Field kRemoveTags{"remove_tags", kNames, "Tags to remove", false, "--untag"};
constexpr Field kNotes{"notes", kText, "Notes on it"};
constexpr Field kReason[] = {{"why", kText, "A reason, shown to others"}};
constexpr Field kResume[] = {kReason[0], {"at", kTime, "Not before this time: 2026-12-24T18:00:00Z"}};
constexpr Field kRetry[] = {
    {"ids", kIds, "Crawls and snapshots", true},
    {"failed", kFlag, "Only failed or partial pages"},
    {"plugins", kNames, "Only this plugin (with failed: only where it failed)", false, "-p,--plugin,--plugins"}};
constexpr Field kCrawl[] = {{"label", kText, "Name of a crawl"},
                            kNotes,
                            kAddTags,
                            kRemoveTags,
                            {"priority", kPriority, "Above 0: before other crawls; below 0: after them"},
                            {"keep", kText, "Keep for this time: 90d, or forever"}};
constexpr Field kScope[] = {{"add", kLists, "Patterns to add to allow, deny, hosts, domains, prefixes, schemes"},
                            {"remove", kLists, "Patterns to remove"}};
constexpr Field kSnapshot[] = {
    {"title", kText, "Title of a snapshot; empty: that of the page"}, kNotes, kAddTags, kRemoveTags};
constexpr Field kLimits[] = {{"delay", kDuration, "Minimum time between two of its pages: 5s"},
                             {"parallel", kCount, "Maximum number of its pages at once; 0: no limit"}};
constexpr Field kSignIn[] = {{"url", kText, "First page of the browser: the login", true}};
constexpr Field kWebhook[] = {{"url", kText, "URL of the receiver, or mailto:ADDRESS", true},
                              {"events", kNames,
                               "Events to deliver: crawl.sealed, snapshot.failed, page.changed, watch.matched, "
                               "worker.lapsed, persona.signed_out (all)",
                               false, "--on"}};
constexpr Field kWatch[] = {
    {"when", kText,
     "Condition: text changes by 1%; look changes by 5%; links changes; title changes; word 'sold out' appears; number "
     "in '#price' below 100; page is gone or back; several with or (anything changes)"},
    {"select", kText, "Only this part of the page counts: a selector such as #price or main .news"},
    {"ignore", kTexts, "Parts that do not count: selectors, or regular expressions between slashes"},
    {"notify", kNames, "E-mail addresses or names of webhooks to notify (all webhooks of watch.matched)"}};
constexpr Field kWatchChange[] = {
    {"every", kText, "Interval, or two bounds of it: 1h, 15m..1d"}, kWatch[0], kWatch[1], kWatch[2], kWatch[3]};
constexpr std::string_view kStrings = R"({"type":"object","additionalProperties":{"type":"string","maxLength":10000}})";
constexpr Field kPersona[] = {
    {"options", kStrings, "Set an option of a plugin, for example WGET_TIMEOUT=60; no secrets", false, "--option"},
    {"unset", kNames, "Option to remove"},
    {"hosts", kNames, "Hosts whose crawls use it unless they name another; - for none", false, "--host"},
    {"worker_label", kWord, "Only workers with this label, or of the machine of this name; empty: any"},
    {"checks", kTexts,
     "Checks of a signed-in page: text=Log out, selector=#account, cookie=sid; or of a signed-out one: "
     "not-text=Sign in, not-selector=form.login, redirect=https://press.example/login; then maybe @URL of a page of "
     "the site that it is for; - for none. At first: login, a page with one field for a password",
     false, "--check"},
    {"check_every", kText,
     "Also capture the pages of the checks this often, and keep them a day: hourly, daily, every 30 minutes; empty: "
     "never"},
    {"notes", kText, "Purpose"}};
constexpr Field kShelve[] = {{"shelf", kWord, "Name or id of a shelf", true},
                             {"ids", kIds, "Snapshots, or crawls for all of their snapshots", true},
                             {"place", kWord,
                              "first, last, before ID or after ID of a page on the shelf; pages that are on it move "
                              "there (new pages at the end)"}};
constexpr Field kDescription{"description", kText, "Text about it"};
constexpr Field kShelf[] = {
    {"name", kWord, "Name", true},
    kDescription,
    {"q", kWords, "Fill it with pages that have these words, as search finds them", false, "--words"},
    {"tag", kWord, "Fill it with pages with this tag"},
    {"host", kWord, "Fill it with pages of this host"},
    {"url", kWords, "Fill it with pages whose URL contains this"},
    {"outcome", kWord, "Only with this outcome"},
    {"since", kWord, "Only archived since: 2026-11-22"},
    {"until", kWord, "Only archived before"},
    {"crawl", kWord, "Only of this crawl"},
    {"captures", R"({"type":"string","enum":["newest","all"]})", "Of each URL: newest, all (newest)"}};
constexpr auto kRule = std::span(kShelf).subspan(2);
constexpr Field kShelfChange[] = {{"name", kWord, "New name"},
                                  kDescription,
                                  {"cover", kWord, "Snapshot on it whose picture stands for it; empty: the first one"},
                                  {"version", kCount, "Change it only if this is its version"},
                                  kRule[0],
                                  kRule[1],
                                  kRule[2],
                                  kRule[3],
                                  kRule[4],
                                  kRule[5],
                                  kRule[6],
                                  kRule[7],
                                  kRule[8]};
constexpr Field kShare[] = {{"snapshot", kId, "A snapshot"},
                            {"url", kWords, "A URL: all of its captures"},
                            {"shelf", kWord, "Name or id of a shelf"},
                            {"expires", kDuration, "How long the link is valid, at most 5 years (30d)"}};
constexpr Field kLevel[] = {{"level",
                             R"({"type":"string","enum":["trace","debug","info","warn","error","off","default"]})",
                             "default: what each has configured", true},
                            {"worker", kWord, "Only of this worker or runner"}};

Answer say_changed(bool value) { return {{"changed", value}}; }

Answer cancel_crawl(const Call& call) {
  constexpr int kBatch = 1000; // snapshots closed in one transaction
  const bool open =
      call.connection
          .call("select status <> 'sealed' and stopping_at is null from holdfast.v_crawl where id = $1::uuid", call.id)
          .value();
  std::int64_t left =
      call.connection.call("select holdfast.crawl_cancel($1::uuid, $2, $3)", call.id, call.by, call.text("why"))
          .value();
  // Pages on a worker that has not received the command yet are closed by it; the workers also do this without us.
  int batches = 0;
  for (auto before = left + 1; left > 0 && left < before && batches < call.most_batches; ++batches) {
    before = left;
    left = store::call_for<std::int64_t>(call.connection, "crawl_stop_step", call.id, kBatch);
  }
  return say_changed(open);
}

Answer retry(const Call& call) {
  const std::int64_t urls = store::call(call.connection, "crawl_retry", call.new_id, call.texts("ids"),
                                        call.body.value("failed", false), call.texts("plugins"), call.by)
                                .value();
  return {{"id", urls > 0 ? Answer(call.new_id) : Answer(nullptr)}, {"seeds", urls}};
}

Answer change_crawl(const Call& call) {
  const auto keep = call.text("keep");
  std::optional<std::chrono::milliseconds> time;
  if (!keep.empty() && keep != "forever") time = base::parse_duration(keep);
  bool any = !call.body.contains("priority") || call.body.size() > 1;
  for (const char* name : {"label", "notes", "add_tags", "remove_tags"})
    if (call.body.contains(name)) {
      store::call(call.connection, "crawl_describe", call.id, call.given<std::string>("label"),
                  call.given<std::string>("notes"), call.texts("add_tags"), call.texts("remove_tags"), call.by);
      break;
    }
  if (const auto priority = call.given<int>("priority"))
    any |= store::call_for<std::int64_t>(call.connection, "crawl_priority", call.id, *priority, call.by) > 0;
  if (!keep.empty()) store::call(call.connection, "crawl_keep", call.id, time);
  return say_changed(any);
}

// Judges the open snapshots by the new scope too, unless the crawl is paused (then that happens when it is resumed).
Answer change_scope(const Call& call) {
  constexpr int kBatch = 1000; // snapshots judged in one transaction
  const auto lists = [&](const char* name) {
    return store::json_text(call.body.value(name, nlohmann::json::object()));
  };
  const bool changed = store::call_for<std::int64_t>(call.connection, "crawl_scope", call.id, lists("add"),
                                                     lists("remove"), call.by) > 0;
  while (changed && !store::call_for<bool>(call.connection, "crawl_judge_step", call.id, kBatch)) {
  }
  return say_changed(changed);
}

Answer run_schedule(const Call& call) {
  if (!store::call(call.connection, "schedule_run", call.id, call.new_id).value().is_null())
    return {{"changed", true}, {"id", call.new_id}};
  const auto rows = list(call.connection, ListQuery{"schedules", 1}.by("schedule", call.id));
  const auto row = rows.one();
  if (row["last_status"].value_or("sealed") != "sealed")
    throw base::Error(base::ErrorClass::refused, "schedule " + call.id + " was left out: its last crawl is still open",
                      "holdfast show " + row.text("last_crawl_id"));
  return {{"changed", false}, {"id", nullptr}, {"note", row["note"].value_or("")}};
}

Answer change_watch(const Call& call) {
  watch_of(call.body); // throws
  const bool changed = store::call(call.connection, "watch_change", call.id, call.given<std::string>("every"),
                                   call.given<std::string>("when"), call.given<std::string>("select"),
                                   call.texts("ignore"), call.texts("notify"), call.by)
                           .value();
  return say_changed(changed);
}

Answer set_host(const Call& call) {
  std::optional<std::chrono::milliseconds> delay;
  if (const auto text = call.text("delay"); !text.empty()) delay = base::parse_duration(text);
  const auto parallel = call.given<int>("parallel");
  if (!delay && !parallel) throw base::Error(base::ErrorClass::usage, "nothing to set: give delay or parallel");
  store::call(call.connection, "host_set", call.id, delay, parallel, call.by);
  return say_changed(true);
}
// Every open snapshot of the host, in every crawl.
Answer cancel_host(const Call& call) {
  for (bool any = false;; any = true)
    if (store::call_for<std::int64_t>(call.connection, "host_cancel", call.id, call.by, call.text("why")) == 0)
      return say_changed(any);
}

Answer set_webhook(const Call& call) {
  const bool web = call.text("url").starts_with("http");
  const auto url = web ? base::parse_url(call.text("url")) : base::Url{};
  if (web && !call.allow_private && base::is_private_host(url.host))
    throw base::Error(base::ErrorClass::refused, "\"" + url.host + "\" is not a public host",
                      "set urls.allow_private to true to send to your own network");
  store::call(call.connection, "webhook_set", call.id, web ? url.text : call.text("url"), call.texts("events"),
              call.by);
  return say_changed(true);
}
Answer test_webhook(const Call& call) {
  const std::int64_t delivery = store::call(call.connection, "webhook_test", call.id, call.by).value();
  return {{"changed", true}, {"delivery", delivery}};
}

Answer set_persona(const Call& call) {
  nlohmann::json change = {{"options", call.body.value("options", nlohmann::json::object())}};
  for (const auto& name : call.texts("unset"))
    change["options"][name] = nullptr;
  for (const char* name : {"worker_label", "check_every", "notes"})
    if (call.body.contains(name)) change[name] = call.body[name];
  if (call.body.contains("hosts")) {
    auto hosts = call.texts("hosts");
    std::erase(hosts, "-");
    change["hosts"] = hosts;
  }
  if (call.body.contains("checks")) {
    change["checks"] = nlohmann::json::array();
    for (const auto& text : call.body["checks"].get<std::vector<std::string>>()) // with commas in them
      if (text != "-") change["checks"].push_back(store::parse_check(text));
  }
  store::persona_set(call.connection, call.id, change, call.by);
  return say_changed(true);
}
Answer sign_in(const Call& call) {
  store::call(call.connection, "sign_in_ask", call.new_id, call.id, base::parse_url(call.text("url")).text, call.by);
  return {{"changed", true}, {"sign_in", call.new_id}};
}

// Fields of the rule that are given, null for one to remove; null: none is given.
nlohmann::json rule_of(const nlohmann::json& body) {
  nlohmann::json rule;
  for (const auto& field : kRule)
    if (const std::string name(field.name); body.contains(name)) {
      const auto& value = body[name];
      const bool removed = value == "" || value == "-" || value == "newest";
      rule[name] = removed ? nlohmann::json(nullptr) : value;
    }
  return rule;
}
std::optional<std::string> rule_text(const nlohmann::json& rule) {
  return rule.is_null() ? std::nullopt : std::optional(store::json_text(rule));
}

Answer add_shelf(const Call& call) {
  auto rule = rule_of(call.body);
  store::call(call.connection, "shelf_add", call.new_id, call.text("name"), call.given<std::string>("description"),
              rule_text(rule), call.by);
  return {{"changed", true}, {"shelf", call.new_id}};
}
Answer change_shelf(const Call& call) {
  return say_changed(store::call_for<bool>(call.connection, "shelf_change", call.id,
                                           call.given<std::int64_t>("version"), call.given<std::string>("name"),
                                           call.given<std::string>("description"), call.given<std::string>("cover"),
                                           rule_text(rule_of(call.body)), call.by));
}
Answer shelve(const Call& call) {
  const auto rows = store::call(call.connection, "shelve", call.new_id, call.texts("ids"), call.text("shelf"),
                                call.given<std::string>("place"), call.by);
  const auto pages = rows.one().integer("changed");
  return {{"changed", pages > 0}, {"pages", pages}};
}

Answer share(const Call& call) {
  store::SharedThing what{call.given<std::string>("snapshot"), std::nullopt, call.given<std::string>("shelf")};
  if (call.body.contains("url")) what.url = base::parse_url(call.text("url")).text;
  const auto secret = store::share_add(call.connection, call.new_id, what,
                                       base::parse_duration(call.body.value("expires", "30d")), call.by);
  return {{"changed", secret.has_value()},
          {"id", store::share_id(call.new_id)},
          {"link", secret ? Answer("share/" + *secret) : Answer(nullptr)}};
}

Answer set_log_level(const Call& call) {
  const auto level = call.text("level"), worker = call.text("worker");
  store::call(call.connection, "log_level_set",
              worker.empty() ? std::nullopt : std::optional(store::find(call.connection, worker).id),
              level == "default" ? std::nullopt : std::optional(level));
  return say_changed(true);
}

// clang-format off
constexpr Operation kOperations[] = {
    {"PATCH", "v1/crawls/{id}", "changeCrawl", "Change label, notes, tags, priority, or how long it is kept",
     &change_crawl, kCrawl},
    {"DELETE", "v1/crawls/{id}", "removeCrawl", "Delete a sealed crawl; the runner deletes its files",
     "crawl_remove(:id, :by)", {}, "Remove", "sealed", true},
    {"POST", "v1/crawls/{id}/pause", "pauseCrawl", "Pause a crawl", "crawl_pause(:id, :by, :why)", kReason, "Pause",
     "open"},
    {"POST", "v1/crawls/{id}/resume", "resumeCrawl", "Resume a crawl", "crawl_resume(:id, :by, :why, :at)", kResume,
     "Resume", "paused"},
    {"POST", "v1/crawls/{id}/cancel", "cancelCrawl", "End a crawl for ever", &cancel_crawl, kReason, "Cancel",
     "!sealed", true},
    {"POST", "v1/crawls/{id}/scope", "scopeCrawl", "Change the scope of a crawl", &change_scope, kScope},
    {"POST", "v1/retry", "retry", "Retry crawls and snapshots, as one new crawl", &retry, kRetry, "", "", false,
     true, "Retried"},
    {"PATCH", "v1/snapshots/{id}", "changeSnapshot", "Change title, notes and tags of a snapshot",
     "snapshot_describe(:id, :title, :notes, :add_tags, :remove_tags, :by)", kSnapshot},
    {"DELETE", "v1/snapshots/{id}", "removeSnapshot",
     "Delete a snapshot of a sealed crawl; the runner deletes its files", "snapshot_remove(:id, :by)", {}, "Remove",
     "sealed", true},
    {"POST", "v1/snapshots/{id}/pause", "pauseSnapshot", "Pause a snapshot",
     "snapshot_command(:id, 'pause', :by, :why)", kReason, "Pause", "open"},
    {"POST", "v1/snapshots/{id}/resume", "resumeSnapshot", "Resume a snapshot",
     "snapshot_command(:id, 'resume', :by, :why, :at)", kResume, "Resume", "paused"},
    {"POST", "v1/snapshots/{id}/cancel", "cancelSnapshot", "End a snapshot for ever",
     "snapshot_command(:id, 'cancel', :by, :why)", kReason, "Cancel", "!sealed", true},
    {"PATCH", "v1/schedules/{id}", "changeWatch", "Change a watch, or make a schedule one; - empties a list",
     &change_watch, kWatchChange},
    {"POST", "v1/schedules/{id}/pause", "pauseSchedule", "Add no more crawls until it is resumed",
     "schedule_enable(:id, false)", {}, "Pause", "open"},
    {"POST", "v1/schedules/{id}/resume", "resumeSchedule", "Continue with its next time; missed runs are not made up",
     "schedule_enable(:id, true)", {}, "Resume", "paused"},
    {"POST", "v1/schedules/{id}/run", "runSchedule", "Add its crawl now, in addition to its times", &run_schedule, {},
     "Run now", "", false, true, "ScheduleRun"},
    {"POST", "v1/schedules/{id}/relearn", "relearnSchedule",
     "Forget what is noise on the page of a watch; its next two captures learn it again", "watch_relearn(:id)", {}},
    {"DELETE", "v1/schedules/{id}", "removeSchedule", "Delete the schedule; its archived pages stay",
     "schedule_remove(:id)", {}, "Remove", "", true},
    {"POST", "v1/workers/{id}/pause", "pauseWorker", "A worker releases its pages and claims none until it is resumed",
     "worker_pause(:id, :by, :why)", kReason},
    {"POST", "v1/workers/{id}/resume", "resumeWorker", "Resume a worker", "worker_resume(:id, :by, :why)", kReason},
    {"POST", "v1/workers/{id}/cancel", "cancelWorker", "A worker releases its pages and ends",
     "worker_cancel(:id, :by, :why)", kReason},
    {"POST", "v1/workers/{id}/drain", "drainWorker", "A worker or runner finishes what it has, and ends",
     "worker_drain(:id, :by, :why)", kReason},
    {"PUT", "v1/hosts/{id}", "setHost", "Set the delay and cap of a host; applies to the next claim", &set_host,
     kLimits},
    {"DELETE", "v1/hosts/{id}", "forgetHost", "Remove all limits of a host", "host_forget(:id, :by)", {},
     "Remove limits"},
    {"POST", "v1/hosts/{id}/pause", "pauseHost", "Pause a host", "host_pause(:id, :by, :why)", kReason, "Pause",
     "open"},
    {"POST", "v1/hosts/{id}/resume", "resumeHost", "Resume a host", "host_resume(:id, :by, :why)", kReason, "Resume",
     "paused"},
    {"POST", "v1/hosts/{id}/cancel", "cancelHost", "End all open pages of a host", &cancel_host, kReason},
    {"PUT", "v1/webhooks/{id}", "setWebhook", "Add a webhook, or change and resume one", &set_webhook, kWebhook},
    {"DELETE", "v1/webhooks/{id}", "removeWebhook", "Delete the webhook and its waiting deliveries",
     "webhook_remove(:id)", {}, "Remove", "", true},
    {"POST", "v1/webhooks/{id}/pause", "pauseWebhook", "Send nothing and record no deliveries until it is resumed",
     "webhook_enable(:id, false, :by)", {}, "Pause", "open"},
    {"POST", "v1/webhooks/{id}/resume", "resumeWebhook", "Resume a webhook", "webhook_enable(:id, true, :by)", {},
     "Resume", "paused"},
    {"POST", "v1/webhooks/{id}/retry", "retryWebhook", "Retry waiting and abandoned deliveries now",
     "webhook_retry(:id, :by)", {}, "Retry deliveries"},
    {"POST", "v1/webhooks/{id}/test", "testWebhook", "Send a test event", &test_webhook, {}, "Test", "", false, false,
     "WebhookTest"},
    {"PUT", "v1/personas/{id}", "setPersona", "Create a persona, or change one", &set_persona, kPersona},
    {"DELETE", "v1/personas/{id}", "removePersona", "Delete a persona and its state", "persona_remove(:id)", {},
     "Remove", "", true},
    {"POST", "v1/personas/{id}/sign-in", "signIn", "Open a browser on a worker, to sign in by hand", &sign_in, kSignIn,
     "", "", false, false, "SignIn"},
    {"DELETE", "v1/sign-ins/{id}", "cancelSignIn", "End the browser of a sign-in; nothing is saved",
     "sign_in_cancel(:id)"},
    {"POST", "v1/shelves", "addShelf", "Make a shelf: a set of pages, filled by hand or by a rule that stays live",
     &add_shelf, kShelf, "", "", false, false, "ShelfAdded"},
    {"PATCH", "v1/shelves/{id}", "changeShelf", "Change a shelf; - removes a part of its rule", &change_shelf,
     kShelfChange},
    {"DELETE", "v1/shelves/{id}", "removeShelf", "Delete a shelf and its links; its pages stay in the archive",
     "shelf_remove(:id)", {}, "Remove", "", true},
    {"POST", "v1/shelve", "shelve", "Put pages on a shelf, which is made if there is none", &shelve, kShelve, "", "",
     false, false, "Shelved"},
    {"POST", "v1/unshelve", "unshelve", "Take pages off a shelf; they stay in the archive",
     "unshelve(:ids, :shelf, :by)", std::span(kShelve).first(2)},
    {"POST", "v1/shares", "share", "Make a link by which anyone may read a snapshot, the captures of a URL or a shelf",
     &share, kShare, "", "", false, false, "Shared"},
    {"POST", "v1/shares/{id}/revoke", "revokeShare", "Make a link invalid, at once", "share_revoke(:id, :by)", {},
     "Revoke"},
    {"POST", "v1/pause", "pauseAll", "Workers claim nothing until it is resumed", "collection_pause(:by, :why)",
     kReason},
    {"POST", "v1/resume", "resumeAll", "Workers claim again", "collection_resume(:by, :why)", kReason},
    {"PUT", "v1/log-level", "setLogLevel", "Change the log level of running workers and runners", &set_log_level,
     kLevel},
};
// clang-format on

} // namespace

std::vector<std::string> OperationCall::texts(std::string_view name) const {
  return body.value(name, std::vector<std::string>());
}

namespace {

// An argument of a function of the database: what the call is about, or a member of the body.
void add_argument(pg::Params& params, const Operation& operation, const Call& call, std::string_view name) {
  if (name == "id") params.add(call.id);
  if (name == "by") params.add(call.by);
  for (const auto& field : operation.body) {
    if (field.name != name) continue;
    const auto& schema = schema_of(field);
    const auto given = call.body.find(name);
    if (schema["type"] == "array")
      params.add(call.texts(name)); // not given: an empty one
    else if (given == call.body.end())
      params.add(std::nullopt);
    else
      params.add(schema.contains("x-time") ? base::canonical_timestamp(*given) : given->get<std::string>());
  }
}

// Calls "crawl_pause(:id, :by, :why)". PostgreSQL has the types of the arguments: no two such functions share a name.
Answer call_function(const Operation& operation, const Call& call) {
  pg::Params params;
  std::string sql = "select holdfast.";
  for (auto rest = operation.work.function; !rest.empty();) {
    const auto name = std::min(rest.find(':'), rest.size());
    sql += rest.substr(0, name);
    rest.remove_prefix(name);
    if (rest.empty()) break;
    const auto end = rest.find_first_of(",)");
    add_argument(params, operation, call, rest.substr(1, end - 1));
    sql += "$" + std::to_string(params.values().size());
    rest.remove_prefix(end);
  }
  const std::string changed = call.connection.call(sql, params).value(); // a count, a boolean, or void
  return say_changed(changed != "0" && changed != "f");
}

std::string canonical_host(const std::string& name) {
  const auto host = base::host_named(name);
  if (!host) throw base::Error(base::ErrorClass::usage, "\"" + name + "\" is not a host name");
  return *host;
}

} // namespace

Answer Operation::run(const OperationCall& given) const {
  const auto what = kind();
  using store::FindAs;
  const auto id = what == "host"       ? canonical_host(given.id)
                  : what == "schedule" ? store::find(given.connection, given.id, FindAs::schedule).id
                  : what == "shelf"    ? store::find(given.connection, given.id, FindAs::shelf).id
                                       : given.id;
  const OperationCall call{given.connection,  id, given.new_id, given.body, given.by, given.allow_private,
                           given.most_batches};
  return work.code != nullptr ? work.code(call) : call_function(*this, call);
}

std::string_view Operation::kind() const noexcept {
  static constexpr std::pair<std::string_view, std::string_view> kinds[] = {
      {"v1/crawls/", "crawl"},     {"v1/snapshots/", "snapshot"}, {"v1/workers/", "process"},
      {"v1/hosts/", "host"},       {"v1/schedules/", "schedule"}, {"v1/webhooks/", "webhook"},
      {"v1/personas/", "persona"}, {"v1/shelves/", "shelf"},      {"v1/shares/", "share"}};
  for (const auto& [below, kind] : kinds)
    if (path.starts_with(below)) return kind;
  return {};
}

std::span<const Field> watch_fields() { return kWatch; }

nlohmann::json watch_of(const nlohmann::json& body) {
  nlohmann::json watch;
  for (const auto& field : kWatch)
    if (const std::string name(field.name); body.contains(name)) watch[name] = body[name];
  if (const auto select = body.value("select", ""); !select.empty() && select != "-") formats::Selector{select};
  for (const auto& one : body.value("ignore", std::vector<std::string>()))
    if (one.size() > 2 && one.starts_with("/") && one.ends_with("/")) try {
        std::regex(one.substr(1, one.size() - 2), std::regex::ECMAScript);
      } catch (const std::regex_error&) {
        throw base::Error(base::ErrorClass::usage, "not a regular expression: " + one, "for example '/[0-9]+ views/'");
      }
    else if (one != "-")
      formats::Selector{one};
  return watch;
}

std::span<const Operation> operations() { return kOperations; }

const Operation& operation(std::string_view name) {
  return *std::find_if(std::begin(kOperations), std::end(kOperations),
                       [&](const auto& one) { return one.name == name; });
}

bool command(pg::Connection& connection, std::string_view name, const std::string& id, const std::string& by,
             const nlohmann::json& body) {
  const auto new_id = base::new_uuid();
  return operation(name).run({connection, id, new_id, body, by}).value("changed", true);
}

} // namespace holdfast::catalog
