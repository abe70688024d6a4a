// What hooks did: results are started and finished by the owner only, and are final.
#include "tests/store/stage.hpp"

#include <doctest/doctest.h>

using namespace holdfast;
using namespace holdfast::test;

namespace {
const store::HookStart kHook{"wget", "on_Snapshot__35_wget.py", 4711, 123456789, 90s, true};
constexpr const char* kFull = R"({"output": "a title", "error": "", "output_json": {"a": [1]},
  "output_files": [{"path": "index.html", "size": 3}], "output_bytes": 3, "exit_code": 0, "wall_ms": 10, "user_ms": 4,
  "system_ms": 3, "peak_memory_bytes": 5000000000, "read_bytes": 6, "written_bytes": 7})";
} // namespace

TEST_CASE("a hook that runs is seen running, and its result holds what it did") {
  Stage stage;
  const auto crawl = stage.start({stage.seed("1")});
  const auto node = stage.node("the node");
  const auto lease = stage.claim_and_start(node).lease;
  store::result_start(stage.connection, node, lease, kHook);
  const auto running = store::running_hooks(stage.connection, crawl, 10);
  REQUIRE(running.size() == 1);
  CHECK(running[0].plugin == "wget");
  CHECK(running[0].hook_name == kHook.hook_name);
  CHECK(running[0].node == "the node");
  CHECK(running[0].url == stage.seed("1").url);
  CHECK(stage.value("select timeout from holdfast.v_running") == "00:01:30");

  store::result_finish(stage.connection, node, lease, "wget", kHook.hook_name, "succeeded", kFull);
  CHECK(store::running_hooks(stage.connection, crawl, 10).empty());
  const auto row = stage.row("select r.*, v.files, v.cpu_ms, v.counts from holdfast.archive_result r join "
                             "holdfast.v_result v using (snapshot_id)");
  CHECK(row.text("status") == "succeeded");
  CHECK(row.text("output") == "a title");
  CHECK(row.text("output_json") == R"({"a": [1]})");
  CHECK(row.integer("files") == 1);
  CHECK(row.integer("cpu_ms") == 7);
  CHECK(row.integer("peak_memory_bytes") == 5000000000);
  CHECK(row.integer("exit_code") == 0);
  CHECK(row.is_null("exit_signal"));
  CHECK(row.integer("start_ticks") == 123456789);
  CHECK(row.boolean("background"));
  CHECK(row.boolean("counts"));
}

TEST_CASE("starting and finishing may be repeated, and a final result is never overwritten") {
  Stage stage;
  stage.start({stage.seed("1")});
  const auto node = stage.node();
  const auto lease = stage.claim_and_start(node).lease;
  store::result_start(stage.connection, node, lease, kHook);
  store::result_start(stage.connection, node, lease, kHook);
  store::result_finish(stage.connection, node, lease, "wget", kHook.hook_name, "succeeded", kFull);
  store::result_finish(stage.connection, node, lease, "wget", kHook.hook_name, "failed", R"({"error": "later"})");
  store::result_start(stage.connection, node, lease, kHook);
  CHECK(stage.value("select status || ' ' || output || error from holdfast.archive_result") == "succeeded a title");
}

TEST_CASE("a result that was never started cannot be finished in silence") {
  Stage stage;
  stage.start({stage.seed("1")});
  const auto node = stage.node();
  const auto lease = stage.claim_and_start(node).lease;
  CHECK(refusal([&] { store::result_finish(stage.connection, node, lease, "wget", "hook", "succeeded", "{}"); }) ==
        "HF001");
}

TEST_CASE("results of an attempt that is no longer ours are refused") {
  Stage stage;
  stage.start({stage.seed("1")});
  const auto dead = stage.node(), node = stage.node();
  const auto old = stage.claim_and_start(dead).lease;
  store::result_start(stage.connection, dead, old, kHook);
  stage.expire(dead);
  const auto current = stage.claim_and_start(node).lease;
  const auto start = [&](const std::string& who, const store::Lease& lease) {
    return refusal([&] { store::result_start(stage.connection, who, lease, {"title", "hook", 1, 1, 1s, false}); });
  };
  CHECK(start(dead, old) == "HF003");
  CHECK(start(node, old) == "HF003");
  CHECK(refusal([&] {
          store::result_finish(stage.connection, dead, old, "wget", kHook.hook_name, "succeeded", "{}");
        }) == "HF003");
  CHECK(start(node, current) == "");
  // The lost attempt keeps its rows beside the new ones, and does not count.
  store::result_finish(stage.connection, node, current, "title", "hook", "succeeded", "{}");
  store::snapshot_seal(stage.connection, node, current, stage.succeeded());
  CHECK(stage.value("select string_agg(fence || ' ' || status || ' ' || counts, ', ' order by fence) from "
                    "holdfast.v_result") == "1 failed false, 2 succeeded true");
}

TEST_CASE("a result says how it ended, and a failure says why") {
  Stage stage;
  stage.start({stage.seed("1")});
  const auto node = stage.node();
  const auto lease = stage.claim_and_start(node).lease;
  const auto finish = [&](const std::string& status, const std::string& json) {
    return refusal([&] { store::result_finish(stage.connection, node, lease, "wget", kHook.hook_name, status, json); });
  };
  store::result_start(stage.connection, node, lease, kHook);
  CHECK(finish("failed", "{}") == "23514");
  CHECK(finish("nonsense", "{}") == "HF001");
  CHECK(finish("started", "{}") == "23514");
  CHECK(finish("skipped", R"({"error": "no wget here"})") == "");
  CHECK(stage.value("select status || ': ' || error from holdfast.archive_result") == "skipped: no wget here");
}

TEST_CASE("results of many snapshots are written together, each with its own answer") {
  Stage stage;
  stage.start(stage.seeds(1, 3));
  const auto node = stage.node();
  auto claims = store::snapshot_claim(stage.connection, node, 3, {});
  REQUIRE(claims.size() == 3);
  claims[1].lease.fence += 1;
  const store::HookStart hook{"wget", "on_Snapshot__10_wget", 42, 7, 60s, true};
  const std::string status = "succeeded", result = R"({"output": "page.html", "output_bytes": 12, "exit_code": 0})";
  const std::string other = "on_Snapshot__20_never";
  using enum store::Written;
  std::vector<store::StartRequest> starts;
  std::vector<store::FinishRequest> finishes;
  for (const auto& claim : claims) {
    starts.push_back({claim.lease, hook});
    finishes.push_back({claim.lease, hook.plugin, hook.hook_name, status, result});
  }
  finishes.push_back({claims[0].lease, hook.plugin, other, status, result});
  for (int i = 0; i < 2; ++i) { // a lost answer is asked for again
    CHECK(store::result_start_many(stage.connection, node, starts) == std::vector{written, lost, written});
    CHECK(stage.value("select count(*) from holdfast.archive_result") == "2");
  }
  for (int i = 0; i < 2; ++i)
    CHECK(store::result_finish_many(stage.connection, node, finishes) == std::vector{written, lost, written, unknown});
  CHECK(stage.value(
            "select count(*) from holdfast.archive_result where status = 'succeeded' and output = 'page.html' and "
            "output_bytes = 12 and exit_code = 0 and pid = 42 and start_ticks = 7 and timeout_ms = 60000 and "
            "background and ended_at is not null") == "2");
  CHECK(refusal([&] { store::require_written(claims[1].lease, lost); }) == "HF003");
  CHECK(refusal([&] { store::require_written(claims[0].lease, unknown); }) == "HF001");
}
