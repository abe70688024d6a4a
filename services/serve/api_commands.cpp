// Operations on workers, hosts, webhooks and the whole collection. Each calls the function of lib/store that the verb
// of its name calls.
#include "lib/base/duration.hpp"
#include "lib/base/error.hpp"
#include "lib/base/url.hpp"
#include "lib/store/control.hpp"
#include "lib/store/host.hpp"
#include "lib/store/webhook.hpp"
#include "services/serve/api_table.hpp"

namespace holdfast::serve {

namespace {

using namespace schema;

constexpr ApiField kLimits[] = {{"delay", kText, "Least time between two of its pages: 5s"},
                                {"parallel", kCount, "Most of its pages at once; 0: no limit"}};
constexpr ApiField kWebhook[] = {
    {"url", kText, "Where to send", true},
    {"events", kTexts, "What it is told: crawl.sealed, snapshot.failed, worker.lapsed (all)"}};
constexpr ApiField kLevel[] = {{"level",
                                R"({"type":"string","enum":["trace","debug","info","warn","error","off","default"]})",
                                "default: what each has configured", true},
                               {"worker", kId, "Only of this worker or runner"}};

template <bool (*Act)(pg::Connection&, const std::string&, const store::Command&)>
Response on_worker(const ApiCall& call) {
  const auto id = target(call, "process");
  return id ? changed(Act(call.connection, *id, command(call))) : not_found("worker");
}

std::string host_of(const ApiCall& call) {
  const auto url = base::try_parse_url("http://" + call.id + "/");
  if (!url || call.id.find_first_of("/?#@") != std::string::npos)
    throw base::Error(base::ErrorClass::usage, "\"" + call.id + "\" is not a host name");
  return url->host;
}

Response set_host(const ApiCall& call) {
  store::HostLimits limits;
  if (const auto delay = call.text("delay"); !delay.empty()) limits.delay = base::parse_duration(delay);
  if (call.body.contains("parallel")) limits.parallel = call.body["parallel"].get<int>();
  if (!limits.delay && !limits.parallel)
    throw base::Error(base::ErrorClass::usage, "nothing to set: give delay or parallel");
  store::host_set(call.connection, host_of(call), limits, call.caller.by());
  return changed(true);
}

Response forget_host(const ApiCall& call) {
  return changed(store::host_forget(call.connection, host_of(call), call.caller.by()));
}
Response pause_host(const ApiCall& call) {
  return changed(store::host_pause(call.connection, host_of(call), command(call)));
}
Response resume_host(const ApiCall& call) {
  return changed(store::host_resume(call.connection, host_of(call), command(call)));
}
Response cancel_host(const ApiCall& call) {
  return changed(store::host_cancel(call.connection, host_of(call), command(call)) > 0);
}

Response set_webhook(const ApiCall& call) {
  store::webhook_set(call.connection, call.id, store::webhook_url(call.text("url"), call.options.allow_private),
                     call.texts("events"), call.caller.by());
  return changed(true);
}

Response pause_webhook(const ApiCall& call) {
  store::webhook_enable(call.connection, call.id, false, call.caller.by());
  return changed(true);
}
Response resume_webhook(const ApiCall& call) {
  store::webhook_enable(call.connection, call.id, true, call.caller.by());
  return changed(true);
}
Response retry_webhook(const ApiCall& call) {
  return changed(store::webhook_retry(call.connection, call.id, call.caller.by()) > 0);
}
Response test_webhook(const ApiCall& call) {
  return json_response({{"delivery", store::webhook_test(call.connection, call.id, call.caller.by())}});
}
Response remove_webhook(const ApiCall& call) {
  store::webhook_remove(call.connection, call.id);
  return changed(true);
}

Response pause_all(const ApiCall& call) { return changed(store::collection_pause(call.connection, command(call))); }
Response resume_all(const ApiCall& call) { return changed(store::collection_resume(call.connection, command(call))); }

Response set_log_level(const ApiCall& call) {
  const auto level = call.text("level");
  store::log_level_set(call.connection, call.text("worker"), level == "default" ? "" : level);
  return changed(true);
}

constexpr ApiOperation kCommandOperations[] = {
    {"POST",
     "v1/workers/{id}/pause",
     "pauseWorker",
     "A worker releases its pages and claims none until it is resumed",
     &on_worker<&store::worker_pause>,
     {},
     kReason},
    {"POST",
     "v1/workers/{id}/resume",
     "resumeWorker",
     "Resume a worker",
     &on_worker<&store::worker_resume>,
     {},
     kReason},
    {"POST",
     "v1/workers/{id}/cancel",
     "cancelWorker",
     "A worker releases its pages and ends",
     &on_worker<&store::worker_cancel>,
     {},
     kReason},
    {"POST",
     "v1/workers/{id}/drain",
     "drainWorker",
     "A worker or runner finishes what it has, and ends",
     &on_worker<&store::worker_drain>,
     {},
     kReason},
    {"PUT",
     "v1/hosts/{id}",
     "setHost",
     "Set the delay of a host and how many of its pages run at once",
     &set_host,
     {},
     kLimits},
    {"DELETE", "v1/hosts/{id}", "forgetHost", "Take all limits off a host", &forget_host, {}, {}},
    {"POST", "v1/hosts/{id}/pause", "pauseHost", "Pause a host", &pause_host, {}, kReason},
    {"POST", "v1/hosts/{id}/resume", "resumeHost", "Resume a host", &resume_host, {}, kReason},
    {"POST", "v1/hosts/{id}/cancel", "cancelHost", "End all open pages of a host", &cancel_host, {}, kReason},
    {"PUT", "v1/webhooks/{id}", "setWebhook", "Add a webhook, or change one", &set_webhook, {}, kWebhook},
    {"DELETE", "v1/webhooks/{id}", "removeWebhook", "Remove a webhook and what waits for it", &remove_webhook, {}, {}},
    {"POST", "v1/webhooks/{id}/pause", "pauseWebhook", "Send nothing until it is resumed", &pause_webhook, {}, {}},
    {"POST", "v1/webhooks/{id}/resume", "resumeWebhook", "Resume a webhook", &resume_webhook, {}, {}},
    {"POST",
     "v1/webhooks/{id}/retry",
     "retryWebhook",
     "Try at once what waits, and what was given up",
     &retry_webhook,
     {},
     {}},
    {"POST", "v1/webhooks/{id}/test", "testWebhook", "Send a test event", &test_webhook, {}, {}},
    {"POST", "v1/pause", "pauseAll", "Workers claim nothing until it is resumed", &pause_all, {}, kReason},
    {"POST", "v1/resume", "resumeAll", "Workers claim again", &resume_all, {}, kReason},
    {"PUT", "v1/log-level", "setLogLevel", "How much workers and runners log", &set_log_level, {}, kLevel},
};

} // namespace

std::span<const ApiOperation> api_commands() { return kCommandOperations; }

} // namespace holdfast::serve
