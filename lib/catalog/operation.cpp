#include "lib/catalog/operation.hpp"

#include "lib/base/error.hpp"
#include "lib/base/text/host.hpp"
#include "lib/base/text/time.hpp"
#include "lib/base/text/url.hpp"
#include "lib/base/uuid.hpp"
#include "lib/catalog/operation_work.hpp"
#include "lib/store/find.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace holdfast::catalog {

namespace {

using namespace schema;
using work::Answer;
using work::Call;

template <std::size_t First, std::size_t Rest>
constexpr auto joined(const Field (&first)[First], const Field (&rest)[Rest]) {
  std::array<Field, First + Rest> all{};
  std::copy(rest, rest + Rest, std::copy(first, first + First, all.begin()));
  return all;
}

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
    {"notify", kNames, "E-mail addresses, apprise:TAG or names of webhooks to notify (all webhooks of watch.matched)"}};
constexpr Field kEvery[] = {{"every", kText, "Interval, or two bounds of it: 1h, 15m..1d"}};
constexpr auto kWatchChange = joined(kEvery, kWatch);
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
constexpr Field kRule[] = {
    {"q", kWords, "Fill it with pages that have these words, as search finds them", false, "--words"},
    {"tag", kWord, "Fill it with pages with this tag"},
    {"host", kWord, "Fill it with pages of this host"},
    {"url", kWords, "Fill it with pages whose URL contains this"},
    {"outcome", kWord, "Only with this outcome"},
    {"since", kWord, "Only archived since: 2026-11-22"},
    {"until", kWord, "Only archived before"},
    {"crawl", kWord, "Only of this crawl"},
    {"captures", R"({"type":"string","enum":["newest","all"]})", "Of each URL: newest, all (newest)"}};
constexpr Field kNewShelf[] = {{"name", kWord, "Name", true}, kDescription};
constexpr auto kShelf = joined(kNewShelf, kRule);
constexpr Field kOldShelf[] = {{"name", kWord, "New name"},
                               kDescription,
                               {"cover", kWord, "Snapshot on it whose picture stands for it; empty: the first one"},
                               {"version", kCount, "Change it only if this is its version"}};
constexpr auto kShelfChange = joined(kOldShelf, kRule);
constexpr Field kShare[] = {{"snapshot", kId, "A snapshot"},
                            {"url", kWords, "A URL: all of its captures"},
                            {"shelf", kWord, "Name or id of a shelf"},
                            {"expires", kDuration, "How long the link is valid, at most 5 years (30d)"}};
constexpr Field kToken[] = {{"name", kWord, "Its name: lower case letters, digits, . _ -", true},
                            {"role", R"({"type":"string","enum":["reader","operator"]})",
                             "reader, or operator, which may also add and change (reader)"},
                            {"expires", kDuration, "How long it is valid (until it is revoked)"}};
constexpr Field kLevel[] = {{"level",
                             R"({"type":"string","enum":["trace","debug","info","warn","error","off","default"]})",
                             "default: what each has configured", true},
                            {"worker", kWord, "Only of this worker or runner"}};

// clang-format off
constexpr Operation kOperations[] = {
    {"PATCH", "v1/crawls/{id}", "changeCrawl", "Change label, notes, tags, priority, or how long it is kept",
     &work::change_crawl, kCrawl},
    {"DELETE", "v1/crawls/{id}", "removeCrawl", "Delete a sealed crawl; the runner deletes its files",
     "crawl_remove(:id, :by)", {}, "Remove", "sealed", true},
    {"POST", "v1/crawls/{id}/pause", "pauseCrawl", "Pause a crawl", "crawl_pause(:id, :by, :why)", kReason, "Pause",
     "open"},
    {"POST", "v1/crawls/{id}/resume", "resumeCrawl", "Resume a crawl", "crawl_resume(:id, :by, :why, :at)", kResume,
     "Resume", "paused"},
    {"POST", "v1/crawls/{id}/cancel", "cancelCrawl", "End a crawl for ever", &work::cancel_crawl, kReason, "Cancel",
     "!sealed", true},
    {"POST", "v1/crawls/{id}/scope", "scopeCrawl", "Change the scope of a crawl", &work::change_scope, kScope},
    {"POST", "v1/retry", "retry", "Retry crawls and snapshots, as one new crawl", &work::retry, kRetry, "", "", false,
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
     &work::change_watch, kWatchChange},
    {"POST", "v1/schedules/{id}/pause", "pauseSchedule", "Add no more crawls until it is resumed",
     "schedule_enable(:id, false)", {}, "Pause", "open"},
    {"POST", "v1/schedules/{id}/resume", "resumeSchedule", "Continue with its next time; missed runs are not made up",
     "schedule_enable(:id, true)", {}, "Resume", "paused"},
    {"POST", "v1/schedules/{id}/run", "runSchedule", "Add its crawl now, in addition to its times",
     &work::run_schedule, {}, "Run now", "", false, true, "ScheduleRun"},
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
    {"PUT", "v1/hosts/{id}", "setHost", "Set the delay and cap of a host; applies to the next claim", &work::set_host,
     kLimits},
    {"DELETE", "v1/hosts/{id}", "forgetHost", "Remove all limits of a host", "host_forget(:id, :by)", {},
     "Remove limits"},
    {"POST", "v1/hosts/{id}/pause", "pauseHost", "Pause a host", "host_pause(:id, :by, :why)", kReason, "Pause",
     "open"},
    {"POST", "v1/hosts/{id}/resume", "resumeHost", "Resume a host", "host_resume(:id, :by, :why)", kReason, "Resume",
     "paused"},
    {"POST", "v1/hosts/{id}/cancel", "cancelHost", "End all open pages of a host", &work::cancel_host, kReason},
    {"PUT", "v1/webhooks/{id}", "setWebhook", "Add a webhook, or change and resume one", &work::set_webhook, kWebhook},
    {"DELETE", "v1/webhooks/{id}", "removeWebhook", "Delete the webhook and its waiting deliveries",
     "webhook_remove(:id)", {}, "Remove", "", true},
    {"POST", "v1/webhooks/{id}/pause", "pauseWebhook", "Send nothing and record no deliveries until it is resumed",
     "webhook_enable(:id, false, :by)", {}, "Pause", "open"},
    {"POST", "v1/webhooks/{id}/resume", "resumeWebhook", "Resume a webhook", "webhook_enable(:id, true, :by)", {},
     "Resume", "paused"},
    {"POST", "v1/webhooks/{id}/retry", "retryWebhook", "Retry waiting and abandoned deliveries now",
     "webhook_retry(:id, :by)", {}, "Retry deliveries"},
    {"POST", "v1/webhooks/{id}/test", "testWebhook", "Send a test event", &work::test_webhook, {}, "Test", "", false, false,
     "WebhookTest"},
    {"PUT", "v1/personas/{id}", "setPersona", "Create a persona, or change one", &work::set_persona, kPersona},
    {"DELETE", "v1/personas/{id}", "removePersona", "Delete a persona and its state", "persona_remove(:id)", {},
     "Remove", "", true},
    {"POST", "v1/personas/{id}/sign-in", "signIn", "Open a browser on a worker, to sign in by hand", &work::sign_in, kSignIn,
     "", "", false, false, "SignIn"},
    {"DELETE", "v1/sign-ins/{id}", "cancelSignIn", "End the browser of a sign-in; nothing is saved",
     "sign_in_cancel(:id)"},
    {"POST", "v1/shelves", "addShelf", "Make a shelf: a set of pages, filled by hand or by a rule that stays live",
     &work::add_shelf, kShelf, "", "", false, false, "ShelfAdded"},
    {"PATCH", "v1/shelves/{id}", "changeShelf", "Change a shelf; - removes a part of its rule", &work::change_shelf,
     kShelfChange},
    {"DELETE", "v1/shelves/{id}", "removeShelf", "Delete a shelf and its links; its pages stay in the archive",
     "shelf_remove(:id)", {}, "Remove", "", true},
    {"POST", "v1/shelve", "shelve", "Put pages on a shelf, which is made if there is none", &work::shelve, kShelve, "", "",
     false, false, "Shelved"},
    {"POST", "v1/unshelve", "unshelve", "Take pages off a shelf; they stay in the archive",
     "unshelve(:ids, :shelf, :by)", std::span(kShelve).first(2)},
    {"POST", "v1/shares", "share", "Make a link by which anyone may read a snapshot, the captures of a URL or a shelf",
     &work::share, kShare, "", "", false, false, "Shared"},
    {"POST", "v1/shares/{id}/revoke", "revokeShare", "Make a link invalid, at once", "share_revoke(:id, :by)", {},
     "Revoke"},
    {"POST", "v1/tokens", "addToken", "Make a token of one's own, which is shown once", &work::add_token, kToken, "", "",
     false, false, "TokenAdded"},
    {"POST", "v1/tokens/{id}/revoke", "revokeToken",
     "Make a token of one's own invalid, at once, with all that were made with it",
     "own_token_revoke(:id, :by)", {}, "Revoke"},
    {"POST", "v1/pause", "pauseAll", "Workers claim nothing until it is resumed", "collection_pause(:by, :why)",
     kReason},
    {"POST", "v1/resume", "resumeAll", "Workers claim again", "collection_resume(:by, :why)", kReason},
    {"PUT", "v1/log-level", "setLogLevel", "Change the log level of running workers and runners", &work::set_log_level,
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
  if (name == "id" || name == "by") {
    params.add(name == "id" ? call.id : call.by);
    return;
  }
  const auto field =
      std::find_if(operation.body.begin(), operation.body.end(), [&](const auto& one) { return one.name == name; });
  if (field == operation.body.end())
    throw base::Error(base::ErrorClass::bug, std::string(operation.name) + " has no " + std::string(name));
  const auto& schema = schema_of(*field);
  const auto given = call.body.find(name);
  if (schema["type"] == "array")
    params.add(call.texts(name)); // not given: an empty one
  else if (given == call.body.end())
    params.add(std::nullopt);
  else
    params.add(schema.contains("x-time") ? base::canonical_timestamp(*given) : given->get<std::string>());
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
  return work::say_changed(changed != "0" && changed != "f");
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
      {"v1/personas/", "persona"}, {"v1/shelves/", "shelf"},      {"v1/shares/", "share"},
      {"v1/tokens/", "token"}};
  for (const auto& [below, kind] : kinds)
    if (path.starts_with(below)) return kind;
  return {};
}

std::span<const Field> watch_fields() { return kWatch; }
std::span<const Field> rule_fields() { return kRule; }

std::span<const Operation> operations() { return kOperations; }

const Operation& operation(std::string_view name) {
  const auto* const found =
      std::find_if(std::begin(kOperations), std::end(kOperations), [&](const auto& one) { return one.name == name; });
  if (found == std::end(kOperations)) throw base::Error(base::ErrorClass::bug, "no operation " + std::string(name));
  return *found;
}

bool command(pg::Connection& connection, std::string_view name, const std::string& id, const std::string& by,
             const nlohmann::json& body) {
  const auto new_id = base::new_uuid();
  return operation(name).run({connection, id, new_id, body, by}).value("changed", true);
}

} // namespace holdfast::catalog
