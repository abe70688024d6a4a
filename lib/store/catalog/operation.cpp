#include "lib/store/catalog/operation.hpp"

#include "lib/base/duration.hpp"
#include "lib/base/error.hpp"
#include "lib/base/text.hpp"
#include "lib/base/timestamp.hpp"
#include "lib/base/url.hpp"
#include "lib/store/catalog/view.hpp"
#include "lib/store/control.hpp"
#include "lib/store/host.hpp"
#include "lib/store/persona.hpp"
#include "lib/store/schedule.hpp"
#include "lib/store/sign_in.hpp"
#include "lib/store/webhook.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::store {

namespace {

using namespace schema;
using Answer = nlohmann::ordered_json;
using Call = OperationCall;

constexpr std::string_view kLists =
    R"({"type":"object","additionalProperties":{"type":"array","items":{"type":"string","maxLength":2000}}})";
constexpr Field kAddTags{"add_tags", kTexts, "Tags to add; a crawl's tags are also those of its snapshots", false,
                         "-t,--tag"};
constexpr Field kRemoveTags{"remove_tags", kTexts, "Tags to remove", false, "--untag"};
constexpr Field kNotes{"notes", kText, "Notes on it"};
constexpr Field kReason[] = {{"why", kText, "A reason, shown to others"}};
constexpr Field kResume[] = {kReason[0], {"at", kTime, "Not before this time: 2026-12-24T18:00:00Z"}};
constexpr Field kRetry[] = {
    {"ids", kIds, "Crawls and snapshots", true},
    {"failed", kFlag, "Only failed or partial pages"},
    {"plugins", kTexts, "Only this plugin (with failed: only where it failed)", false, "-p,--plugin,--plugins"}};
constexpr Field kCrawl[] = {{"label", kText, "Name of a crawl"},
                            kNotes,
                            kAddTags,
                            kRemoveTags,
                            {"priority", kPriority, "Above 0: before other crawls; below 0: after them"},
                            {"keep", kText, "How long it is kept: 90d, or forever"}};
constexpr Field kScope[] = {{"add", kLists, "Patterns to add to allow, deny, hosts, domains, prefixes, schemes"},
                            {"remove", kLists, "Patterns to remove"}};
constexpr Field kSnapshot[] = {
    {"title", kText, "Title of a snapshot; empty: that of the page"}, kNotes, kAddTags, kRemoveTags};
constexpr Field kLimits[] = {{"delay", kDuration, "Minimum time between two of its pages: 5s"},
                             {"parallel", kCount, "Maximum number of its pages at once; 0: no limit"}};
constexpr Field kSignIn[] = {{"url", kText, "Where the browser begins: the page with the login", true}};
constexpr Field kWebhook[] = {
    {"url", kText, "Where to send", true},
    {"events", kTexts, "What it is told: crawl.sealed, snapshot.failed, worker.lapsed, persona.signed_out (all)", false,
     "--on"}};
constexpr std::string_view kStrings = R"({"type":"object","additionalProperties":{"type":"string","maxLength":10000}})";
constexpr Field kPersona[] = {
    {"options", kStrings, "Option for hooks, as NAME=VALUE; none that is secret", false, "--option"},
    {"unset", kTexts, "Option to remove"},
    {"hosts", kTexts, "Crawls with seeds on these hosts, or below them, use it unless they name another; - for none",
     false, "--host"},
    {"worker_label", kWord, "Only workers with this label, or of the machine of this name; empty: any"},
    {"checks", kTexts,
     "What its pages show while it is signed in: text=Log out, selector=#account, cookie=sid; or when it is not: "
     "not-text=Sign in, not-selector=form.login, redirect=https://press.example/login; then maybe @URL of a page of "
     "the site that it is for; - for none. At first: login, a page with one field for a password",
     false, "--check"},
    {"check_every", kText,
     "Also capture the pages that checks name so often, and keep them a day: hourly, daily, every 30 minutes; empty: "
     "never"},
    {"notes", kText, "What it is for"}};
constexpr Field kLevel[] = {{"level",
                             R"({"type":"string","enum":["trace","debug","info","warn","error","off","default"]})",
                             "default: what each has configured", true},
                            {"worker", kWord, "Only of this worker or runner"}};

Answer say_changed(bool value) { return {{"changed", value}}; }

Command command_of(const Call& call) {
  Command command{call.by, call.text("why"), call.text("at")};
  if (!command.at.empty()) command.at = base::canonical_timestamp(command.at);
  return command;
}

Answer given(const Call& call, const char* kind, const char* action) {
  return say_changed(give(call.connection, kind, action, call.id, command_of(call)));
}

Answer cancel_crawl(const Call& call) {
  return say_changed(crawl_cancel(call.connection, call.id, command_of(call), {}, call.most_batches));
}

Answer retry(const Call& call) {
  const auto urls = crawl_retry(call.connection, call.new_id, call.texts("ids"), call.body.value("failed", false),
                                call.texts("plugins"), call.by);
  return {{"id", urls > 0 ? Answer(call.new_id) : Answer(nullptr)}, {"seeds", urls}};
}

Description description_of(const Call& call) {
  return {call.given<std::string>("label"), call.given<std::string>("title"), call.given<std::string>("notes"),
          call.texts("add_tags"), call.texts("remove_tags")};
}

Answer change_crawl(const Call& call) {
  const auto keep = call.text("keep");
  std::optional<std::chrono::milliseconds> time;
  if (!keep.empty() && keep != "forever") time = base::parse_duration(keep);
  for (const char* name : {"label", "notes", "add_tags", "remove_tags"})
    if (call.body.contains(name)) {
      crawl_describe(call.connection, call.id, description_of(call), call.by);
      break;
    }
  bool any = !call.body.contains("priority") || call.body.size() > 1;
  if (const auto priority = call.given<int>("priority"))
    any |= crawl_priority(call.connection, call.id, *priority, call.by);
  if (!keep.empty()) crawl_keep(call.connection, call.id, time);
  return say_changed(any);
}

Answer change_scope(const Call& call) {
  const auto lists = [&](const char* name) { return call.body.value(name, ScopeLists()); };
  return say_changed(crawl_scope(call.connection, call.id, lists("add"), lists("remove"), call.by));
}

Answer change_snapshot(const Call& call) {
  return say_changed(snapshot_describe(call.connection, call.id, description_of(call), call.by));
}

Answer remove_crawl(const Call& call) {
  crawl_remove(call.connection, call.id, call.by);
  return say_changed(true);
}
Answer remove_snapshot(const Call& call) { return say_changed(snapshot_remove(call.connection, call.id, call.by)); }

Answer enable_schedule(const Call& call, bool enabled) {
  return say_changed(schedule_enable(call.connection, schedule_find(call.connection, call.id), enabled));
}
Answer remove_schedule(const Call& call) {
  return say_changed(schedule_remove(call.connection, schedule_find(call.connection, call.id)));
}
Answer run_schedule(const Call& call) {
  const auto id = schedule_find(call.connection, call.id);
  if (schedule_run(call.connection, id, call.new_id)) return {{"changed", true}, {"id", call.new_id}};
  const auto rows = schedules(call.connection, id);
  const auto row = rows.one();
  if (row["last_status"].value_or("sealed") != "sealed")
    throw base::Error(base::ErrorClass::refused, "schedule " + id + " was left out: its last crawl is still open",
                      "holdfast show " + row.text("last_crawl_id"));
  return {{"changed", false}, {"id", nullptr}, {"note", row["note"].value_or("")}};
}

std::string host_of(const Call& call) {
  const auto url = base::try_parse_url("http://" + call.id + "/");
  if (!url || call.id.find_first_of("/?#@") != std::string::npos)
    throw base::Error(base::ErrorClass::usage, "\"" + call.id + "\" is not a host name");
  return url->host;
}

Answer set_host(const Call& call) {
  HostLimits limits;
  if (const auto delay = call.text("delay"); !delay.empty()) limits.delay = base::parse_duration(delay);
  limits.parallel = call.given<int>("parallel");
  if (!limits.delay && !limits.parallel)
    throw base::Error(base::ErrorClass::usage, "nothing to set: give delay or parallel");
  host_set(call.connection, host_of(call), limits, call.by);
  return say_changed(true);
}
Answer forget_host(const Call& call) { return say_changed(host_forget(call.connection, host_of(call), call.by)); }
Answer given_host(const Call& call, const char* action) {
  return say_changed(give(call.connection, "host", action, host_of(call), command_of(call)));
}
Answer cancel_host(const Call& call) {
  return say_changed(host_cancel(call.connection, host_of(call), command_of(call)) > 0);
}

Answer set_webhook(const Call& call) {
  webhook_set(call.connection, call.id, webhook_url(call.text("url"), call.allow_private), call.texts("events"),
              call.by);
  return say_changed(true);
}
Answer enable_webhook(const Call& call, bool enabled) {
  webhook_enable(call.connection, call.id, enabled, call.by);
  return say_changed(true);
}
Answer retry_webhook(const Call& call) { return say_changed(webhook_retry(call.connection, call.id, call.by) > 0); }
Answer test_webhook(const Call& call) {
  return {{"changed", true}, {"delivery", webhook_test(call.connection, call.id, call.by)}};
}
Answer remove_webhook(const Call& call) {
  webhook_remove(call.connection, call.id);
  return say_changed(true);
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
      if (text != "-") change["checks"].push_back(parse_check(text));
  }
  persona_set(call.connection, call.id, change, call.by);
  return say_changed(true);
}
Answer sign_in(const Call& call) {
  sign_in_ask(call.connection, call.new_id, call.id, call.text("url"), call.by);
  return {{"changed", true}, {"sign_in", call.new_id}};
}
Answer cancel_sign_in(const Call& call) { return say_changed(sign_in_cancel(call.connection, call.id)); }
Answer remove_persona(const Call& call) {
  persona_remove(call.connection, call.id);
  return say_changed(true);
}

Answer set_log_level(const Call& call) {
  const auto level = call.text("level"), worker = call.text("worker");
  log_level_set(call.connection, worker.empty() ? "" : find(call.connection, worker).id,
                level == "default" ? "" : level);
  return say_changed(true);
}

// clang-format off: a row a line, two if need be
constexpr Operation kOperations[] = {
    {"PATCH", "v1/crawls/{id}", "changeCrawl", "Change label, notes, tags, priority, or how long it is kept",
     &change_crawl, kCrawl},
    {"DELETE", "v1/crawls/{id}", "removeCrawl", "Delete a sealed crawl; the runner deletes its files", &remove_crawl},
    {"POST", "v1/crawls/{id}/pause", "pauseCrawl", "Pause a crawl",
     [](const Call& call) { return given(call, "crawl", "pause"); }, kReason},
    {"POST", "v1/crawls/{id}/resume", "resumeCrawl", "Resume a crawl",
     [](const Call& call) { return given(call, "crawl", "resume"); }, kResume},
    {"POST", "v1/crawls/{id}/cancel", "cancelCrawl", "End a crawl for ever", &cancel_crawl, kReason},
    {"POST", "v1/crawls/{id}/scope", "scopeCrawl", "Change what belongs to a crawl", &change_scope, kScope},
    {"POST", "v1/retry", "retry", "Try crawls and snapshots again, as one new crawl", &retry, kRetry},
    {"PATCH", "v1/snapshots/{id}", "changeSnapshot", "Change title, notes and tags of a snapshot", &change_snapshot,
     kSnapshot},
    {"DELETE", "v1/snapshots/{id}", "removeSnapshot",
     "Delete a snapshot of a sealed crawl; the runner deletes its files", &remove_snapshot},
    {"POST", "v1/snapshots/{id}/pause", "pauseSnapshot", "Pause a snapshot",
     [](const Call& call) { return given(call, "snapshot", "pause"); }, kReason},
    {"POST", "v1/snapshots/{id}/resume", "resumeSnapshot", "Resume a snapshot",
     [](const Call& call) { return given(call, "snapshot", "resume"); }, kResume},
    {"POST", "v1/snapshots/{id}/cancel", "cancelSnapshot", "End a snapshot for ever",
     [](const Call& call) { return given(call, "snapshot", "cancel"); }, kReason},
    {"POST", "v1/schedules/{id}/pause", "pauseSchedule", "Add no more crawls until it is resumed",
     [](const Call& call) { return enable_schedule(call, false); }},
    {"POST", "v1/schedules/{id}/resume", "resumeSchedule", "Continue with its next time; missed runs are not made up",
     [](const Call& call) { return enable_schedule(call, true); }},
    {"POST", "v1/schedules/{id}/run", "runSchedule", "Add its crawl now, in addition to its times", &run_schedule},
    {"DELETE", "v1/schedules/{id}", "removeSchedule", "Delete the schedule; its archived pages stay", &remove_schedule},
    {"POST", "v1/workers/{id}/pause", "pauseWorker", "A worker releases its pages and claims none until it is resumed",
     [](const Call& call) { return given(call, "worker", "pause"); }, kReason},
    {"POST", "v1/workers/{id}/resume", "resumeWorker", "Resume a worker",
     [](const Call& call) { return given(call, "worker", "resume"); }, kReason},
    {"POST", "v1/workers/{id}/cancel", "cancelWorker", "A worker releases its pages and ends",
     [](const Call& call) { return given(call, "worker", "cancel"); }, kReason},
    {"POST", "v1/workers/{id}/drain", "drainWorker", "A worker or runner finishes what it has, and ends",
     [](const Call& call) { return given(call, "worker", "drain"); }, kReason},
    {"PUT", "v1/hosts/{id}", "setHost", "Set the delay and cap of a host; applies to the next claim", &set_host,
     kLimits},
    {"DELETE", "v1/hosts/{id}", "forgetHost", "Remove all limits of a host", &forget_host},
    {"POST", "v1/hosts/{id}/pause", "pauseHost", "Pause a host",
     [](const Call& call) { return given_host(call, "pause"); }, kReason},
    {"POST", "v1/hosts/{id}/resume", "resumeHost", "Resume a host",
     [](const Call& call) { return given_host(call, "resume"); }, kReason},
    {"POST", "v1/hosts/{id}/cancel", "cancelHost", "End all open pages of a host", &cancel_host, kReason},
    {"PUT", "v1/webhooks/{id}", "setWebhook", "Add a webhook, or change and resume one", &set_webhook, kWebhook},
    {"DELETE", "v1/webhooks/{id}", "removeWebhook", "Delete the webhook and its waiting deliveries", &remove_webhook},
    {"POST", "v1/webhooks/{id}/pause", "pauseWebhook", "Send nothing and record no deliveries until it is resumed",
     [](const Call& call) { return enable_webhook(call, false); }},
    {"POST", "v1/webhooks/{id}/resume", "resumeWebhook", "Resume a webhook",
     [](const Call& call) { return enable_webhook(call, true); }},
    {"POST", "v1/webhooks/{id}/retry", "retryWebhook", "Retry waiting and abandoned deliveries now", &retry_webhook},
    {"POST", "v1/webhooks/{id}/test", "testWebhook", "Send a test event", &test_webhook},
    {"PUT", "v1/personas/{id}", "setPersona", "Create a persona, or change one", &set_persona, kPersona},
    {"DELETE", "v1/personas/{id}", "removePersona", "Delete a persona and its state", &remove_persona},
    {"POST", "v1/personas/{id}/sign-in", "signIn", "Open a browser on a worker, to sign in by hand", &sign_in, kSignIn},
    {"DELETE", "v1/sign-ins/{id}", "cancelSignIn", "End the browser of a sign-in; nothing of it is kept",
     &cancel_sign_in},
    {"POST", "v1/pause", "pauseAll", "Workers claim nothing until it is resumed",
     [](const Call& call) { return given(call, "collection", "pause"); }, kReason},
    {"POST", "v1/resume", "resumeAll", "Workers claim again",
     [](const Call& call) { return given(call, "collection", "resume"); }, kReason},
    {"PUT", "v1/log-level", "setLogLevel", "Change the log level of running workers and runners", &set_log_level,
     kLevel},
};
// clang-format on

} // namespace

std::vector<std::string> OperationCall::texts(const char* name) const {
  return base::split(base::join(body.value(name, std::vector<std::string>()), ","), ",");
}

std::string_view Operation::kind() const noexcept {
  static constexpr std::pair<std::string_view, std::string_view> kinds[] = {
      {"v1/crawls/", "crawl"},       {"v1/snapshots/", "snapshot"}, {"v1/workers/", "process"}, {"v1/hosts/", "host"},
      {"v1/schedules/", "schedule"}, {"v1/webhooks/", "webhook"},   {"v1/personas/", "persona"}};
  for (const auto& [below, kind] : kinds)
    if (path.starts_with(below)) return kind;
  return {};
}

std::span<const Operation> operations() { return kOperations; }

const Operation& operation(std::string_view name) {
  return *std::find_if(std::begin(kOperations), std::end(kOperations),
                       [&](const auto& one) { return one.name == name; });
}

} // namespace holdfast::store
