// Hooks: those that run now, and what they did. Results are written with the page that they belong to, once.
#include "lib/store/call.hpp"
#include "lib/store/live.hpp"
#include "tests/store/stage.hpp"

#include <doctest/doctest.h>

using namespace holdfast;
using namespace holdfast::test;

using What = store::PageAnswer::What;

namespace {

constexpr const char* kHook = "on_Snapshot__35_wget";
const std::string kRunning =
    "select coalesce(string_agg(plugin || '/' || hook_name, ' ' order by hook_name), '') from holdfast.v_running";

store::HookResult full_result() {
  auto result = Stage::result("wget", kHook);
  result.pid = 4711;
  result.background = true;
  result.output = "a title";
  result.output_json = R"({"a": [1]})";
  result.files = {{"index.html", "text/html", 3, "ab"}};
  result.bytes = 3;
  result.exit_code = 0;
  result.cost = store::HookCost{90s, 4ms, 3ms, 5'000'000'000, 6, 7};
  result.started = std::chrono::steady_clock::now() - 100s;
  return result;
}

} // namespace

TEST_CASE("a hook that runs is seen running, and its result holds what it did") {
  Stage stage;
  const auto crawl = stage.start({stage.seed("1")});
  const auto worker = stage.worker("the worker");
  const auto claim = stage.claim(worker);
  auto hook = stage.running(claim, "wget", kHook);
  hook.timeout = 90s;
  hook.background = true;
  hook.started = std::chrono::steady_clock::now() - 20s;
  hook.still_since = std::chrono::steady_clock::now() - 5s;
  store::worker_hooks(stage.connection, worker, {hook});
  const auto of_crawl = catalog::ListQuery{"running", 2}.by("crawl", crawl);
  const auto running = catalog::list(stage.connection, of_crawl);
  REQUIRE(running.size() == 1);
  CHECK(running[0].text("plugin") == "wget");
  CHECK(running[0].text("hook_name") == kHook);
  CHECK(running[0].text("worker") == "the worker");
  CHECK(running[0].text("url") == stage.seed("1").url);
  CHECK(running[0].text("running_for") >= "00:00:20");
  CHECK(running[0].text("running_for") < "00:00:30");
  const auto now = stage.row("select timeout, pid, background, no_progress_since - started_at between '14.9 seconds' "
                             "and '15.1 seconds' as still from holdfast.v_running");
  CHECK(now.text("timeout") == "00:01:30");
  CHECK(now.integer("pid") == 1);
  CHECK(now.boolean("background"));
  CHECK(now.boolean("still"));
  CHECK(stage.value("select status || ' ' || (ended_at is null) || ' ' || counts from holdfast.v_result") ==
        "started true true");

  auto page = stage.sealed(claim);
  page.results = {full_result()};
  stage.finish(worker, page);
  CHECK(catalog::list(stage.connection, of_crawl).empty()); // although the worker has not said so yet
  const auto row = stage.row(
      "select r.*, v.files, v.cpu_ms, v.counts, r.ended_at - r.started_at as took, clock_timestamp() - r.ended_at "
      "between '9 seconds' and '19 seconds' as lately from holdfast.archive_result r join holdfast.v_result v using "
      "(snapshot_id)");
  CHECK(row.text("status") == "succeeded");
  CHECK(row.text("output") == "a title");
  CHECK(row.text("output_json") == R"({"a": [1]})");
  CHECK(row.integer("files") == 1);
  CHECK(row.integer("cpu_ms") == 7);
  CHECK(row.integer("peak_memory_bytes") == 5000000000);
  CHECK(row.integer("exit_code") == 0);
  CHECK(row.is_null("exit_signal"));
  CHECK(row.integer("pid") == 4711);
  CHECK(row.text("process_id") == worker);
  CHECK(row.text("took") == "00:01:30");
  CHECK(row.boolean("lately"));
  CHECK(row.boolean("background"));
  CHECK(row.boolean("counts"));
}

TEST_CASE("a worker says which hooks it runs, and no others are shown, of it or of pages that it does not hold") {
  Stage stage;
  const auto crawl = stage.start(stage.seeds(1, 3));
  const auto worker = stage.worker(), other = stage.worker();
  const auto one = stage.claim(worker), two = stage.claim(worker), foreign = stage.claim(other);
  const auto hooks = [&](const std::string& who, const std::vector<store::ActiveHook>& all) {
    store::worker_hooks(stage.connection, who, all);
    return stage.value(kRunning);
  };
  CHECK(hooks(worker, {stage.running(one, "wget", "a"), stage.running(two, "wget", "b")}) == "wget/a wget/b");
  CHECK(hooks(other, {stage.running(foreign, "wget", "c")}) == "wget/a wget/b wget/c");
  CHECK(hooks(worker, {stage.running(two, "wget", "b"), stage.running(two, "dom", "d")}) == "wget/b wget/c dom/d");
  CHECK(stage.value("select count(*) from holdfast.v_result where status = 'started'") == "3");
  CHECK(catalog::list(stage.connection, catalog::ListQuery{"running", 2}.by("crawl", crawl)).size() == 2);
  // Pages of another worker, and of an attempt that is over.
  stage.release(worker, one);
  CHECK(hooks(worker, {stage.running(foreign, "wget", "e"), stage.running(one, "wget", "a")}) == "wget/c");
  CHECK(hooks(worker, {}) == "wget/c");
  CHECK(stage.value("select count(*) from holdfast.running_hook where process_id = $1::uuid", pg::Params::of(worker)) ==
        "0");
  store::call(stage.connection, "process_leave", other, 0, "done");
  CHECK(hooks(other, {stage.running(foreign, "wget", "c")}) == "");
  CHECK(stage.value("select count(*) from holdfast.running_hook") == "0"); // a worker that has left is not heard
}

TEST_CASE("a hook of a later attempt is not hidden by what another worker still says of an earlier one") {
  Stage stage;
  stage.start({stage.seed("1")});
  const auto slow = stage.worker("slow"), worker = stage.worker("worker");
  const auto old = stage.claim(slow);
  store::worker_hooks(stage.connection, slow, {stage.running(old, "wget", kHook)});
  stage.release(slow, old);
  const auto current = stage.claim(worker);
  CHECK(stage.value(kRunning) == "");
  store::worker_hooks(stage.connection, worker, {stage.running(current, "wget", kHook)});
  CHECK(stage.value("select worker || ' ' || fence from holdfast.v_running") == "worker 2");
  store::worker_hooks(stage.connection, slow, {stage.running(old, "wget", kHook)});
  CHECK(stage.value("select worker || ' ' || fence from holdfast.v_running") == "worker 2");
}

TEST_CASE("results of an attempt that was released are kept beside those of the one that counts") {
  Stage stage;
  stage.start({stage.seed("1")});
  const auto worker = stage.worker();
  auto released = stage.released(stage.claim(worker), 0ms, "chrome died");
  released.results = {stage.result("wget", kHook), stage.result("chrome", "on_Snapshot__50_shot", "failed")};
  CHECK(stage.finish(worker, released).what == What::released);
  CHECK(stage.value("select string_agg(hook_name || ' ' || status || ' ' || counts, ', ' order by hook_name) from "
                    "holdfast.v_result") ==
        "on_Snapshot__35_wget succeeded true, on_Snapshot__50_shot failed true"); // nothing else counts so far
  auto page = stage.sealed(stage.claim(worker));
  page.results = {stage.result("wget", kHook)};
  stage.finish(worker, page);
  CHECK(stage.value("select string_agg(fence || ' ' || hook_name || ' ' || counts, ', ' order by fence, hook_name) "
                    "from holdfast.v_result") ==
        "1 on_Snapshot__35_wget false, 1 on_Snapshot__50_shot false, 2 on_Snapshot__35_wget true");
  CHECK(stage.value("select error from holdfast.v_failure") == "a sentence");
}

TEST_CASE("what hooks did for a command or for a worker that leaves is no failure") {
  Stage stage;
  stage.start({stage.seed("1")});
  const auto worker = stage.worker();
  auto page = stage.released(stage.claim(worker));
  page.ending = "interrupted";
  page.results = {stage.result("wget", kHook, "failed")};
  stage.finish(worker, page);
  CHECK(stage.value("select count(*) from holdfast.archive_result") == "1");
  CHECK(stage.value("select count(*) from holdfast.v_failure") == "0");
}

TEST_CASE("the attempt of a lapsed worker names the hooks that ran, so that people know where to look") {
  Stage stage;
  stage.start(stage.seeds(1, 2));
  const auto dead = stage.worker("dead");
  const auto busy = stage.claim(dead), idle = stage.claim(dead);
  auto first = stage.running(busy, "chrome", "on_Snapshot__10_tab.bg"), second = stage.running(busy, "wget", kHook);
  first.started -= 2s;
  store::worker_hooks(stage.connection, dead, {second, first});
  stage.expire(dead);
  CHECK(store::call_for<int>(stage.connection, "lapse_process") == 2);
  const auto hooks = [&](const store::Claim& claim) {
    return stage.value("select ending || ' ' || hooks::text from holdfast.v_attempt where snapshot_id = $1::uuid",
                       pg::Params::of(claim.lease.snapshot_id));
  };
  CHECK(hooks(busy) == "lapsed {chrome/on_Snapshot__10_tab.bg,wget/on_Snapshot__35_wget}"); // as they were started
  CHECK(hooks(idle) == "lapsed {}");
  CHECK(stage.value("select count(*) from holdfast.running_hook") == "0");
  CHECK(stage.value("select count(*) from holdfast.archive_result") == "0");
}

TEST_CASE("a result says how it ended, and a failure says why") {
  Stage stage;
  stage.start({stage.seed("1")});
  const auto worker = stage.worker();
  auto page = stage.sealed(stage.claim(worker));
  const auto finish = [&](const std::string& status, const std::string& error) {
    page.results = {stage.result("wget", kHook, status)};
    page.results[0].error = error;
    return refusal([&] { stage.finish(worker, page); });
  };
  CHECK(finish("failed", "") == "23514");
  CHECK(finish("nonsense", "") == "23514");
  CHECK(finish("started", "") == "23514");
  CHECK(finish("skipped", "no wget here") == "");
  CHECK(stage.value("select status || ': ' || error from holdfast.archive_result") == "skipped: no wget here");
}

TEST_CASE("a hook has one result in one attempt") {
  Stage stage;
  stage.start({stage.seed("1")});
  const auto worker = stage.worker();
  auto page = stage.sealed(stage.claim(worker));
  page.results = {full_result(), full_result()};
  CHECK(refusal([&] { stage.finish(worker, page); }) == "23505");
  CHECK(stage.status(page.lease) == "started");
}
