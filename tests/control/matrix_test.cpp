// Every command in every state of what it is given to: what it answers, the state after it, and that a second time
// changes nothing. The Stage checks the invariants at the end.
#include "lib/store/call.hpp"
#include "lib/store/worker.hpp"
#include "tests/store/stage.hpp"

#include <doctest/doctest.h>

#include <map>

using namespace holdfast;
using namespace holdfast::test;

namespace {

struct Expected {
  bool changed;
  std::string after;
};
using Row = std::map<std::string, Expected>; // by action

// One snapshot of this crawl, in work.
store::Claim hold(Stage& stage, const std::string& worker, const std::string& crawl) {
  const auto claims = stage.claim_only(worker, 1, {crawl});
  REQUIRE(claims.size() == 1);
  REQUIRE(claims[0].lease.crawl_id == crawl);
  return claims[0];
}

// Its worker cannot seal it any more, and hears so, also with its next heartbeat.
bool taken(Stage& stage, const std::string& worker, const store::Claim& held) {
  if (store::worker_heartbeat(stage.connection, worker, 1h, {held.lease}, "{}").lost.empty()) return false;
  const auto answer = stage.seal(worker, held).what;
  return answer == store::PageAnswer::What::lost || answer == store::PageAnswer::What::cancelled;
}

std::string crawl_state(Stage& stage, const std::string& crawl) {
  return stage.value(
      "select status || case when stopping_at is not null and status <> 'sealed' then ' stopping' else '' end "
      "from holdfast.v_crawl where id = $1::uuid",
      pg::Params::of(crawl));
}

} // namespace

TEST_CASE("every command to a crawl, in every state") {
  Stage stage;
  const auto worker = stage.worker();
  const std::map<std::string, Row> matrix = {
      {"queued", {{"pause", {true, "paused"}}, {"resume", {false, "queued"}}, {"cancel", {true, "sealed"}}}},
      {"being expanded", {{"pause", {true, "paused"}}, {"resume", {false, "queued"}}, {"cancel", {true, "sealed"}}}},
      {"started", {{"pause", {true, "paused"}}, {"resume", {false, "started"}}, {"cancel", {true, "sealed"}}}},
      {"in work", {{"pause", {true, "paused"}}, {"resume", {false, "started"}}, {"cancel", {true, "sealed"}}}},
      {"paused", {{"pause", {false, "paused"}}, {"resume", {true, "queued"}}, {"cancel", {true, "sealed"}}}},
      {"stopping",
       {{"pause", {false, "started stopping"}},
        {"resume", {false, "started stopping"}},
        {"cancel", {false, "sealed"}}}},
      {"sealed", {{"pause", {false, "sealed"}}, {"resume", {false, "sealed"}}, {"cancel", {false, "sealed"}}}},
  };
  for (const auto& [state, row] : matrix)
    for (const auto& [action, expected] : row) {
      CAPTURE(state);
      CAPTURE(action);
      const bool seeds_only = state == "queued" || state == "being expanded";
      const auto crawl = seeds_only ? stage.add(stage.seeds(1, 3)) : stage.start(stage.seeds(1, 3));
      std::optional<store::CrawlLease> expanding;
      std::optional<store::Claim> held;
      if (state == "being expanded") expanding = store::crawl_claim(stage.connection, worker, 1min);
      if (state == "in work") held = hold(stage, worker, crawl);
      if (state == "paused") stage.command("pauseCrawl", crawl);
      if (state == "stopping")
        stage.run("select holdfast.crawl_stop($1::uuid, 'cancelled', 'bob', '', 1)", pg::Params::of(crawl));
      if (state == "sealed") stage.command("cancelCrawl", crawl);

      CHECK(stage.command(action + "Crawl", crawl, {{"why", "for a test"}}) == expected.changed);
      CHECK(crawl_state(stage, crawl) == expected.after);
      if (held && action == "pause") {
        CHECK(stage.value("select reason from holdfast.v_crawl where id = $1::uuid", pg::Params::of(crawl)) ==
              "paused by ann: for a test");
        CHECK(stage.value("select held from holdfast.v_control where action = 'pause' and target = $1",
                          pg::Params::of(crawl)) == "1");
      }
      CHECK_FALSE(stage.command(action + "Crawl", crawl));
      CHECK(crawl_state(stage, crawl) == expected.after);
      if (held) CHECK(taken(stage, worker, *held) == expected.changed);
      if (expanding)
        CHECK((refusal([&] { store::crawl_expand(stage.connection, worker, *expanding, 10); }) == pg::kStaleFence) ==
              expected.changed);
      // Whatever it was, it can be brought to its end.
      stage.command("cancelCrawl", crawl);
      stage.expand(worker);
      CHECK(crawl_state(stage, crawl) == "sealed");
      // What is sealed is neither excluded from nor given a new scope; it can be removed, and what is open cannot.
      CHECK(refusal([&] { stage.command("scopeCrawl", crawl, {{"add", {{"deny", {"x.test"}}}}}); }) == pg::kRefused);
      CHECK_NOTHROW(stage.command("removeCrawl", crawl));
    }
}

TEST_CASE("every command to a snapshot, in every state") {
  Stage stage;
  const auto worker = stage.worker();
  const std::map<std::string, Row> matrix = {
      {"queued", {{"pause", {true, "paused"}}, {"resume", {false, "queued"}}, {"cancel", {true, "sealed"}}}},
      {"started", {{"pause", {true, "paused"}}, {"resume", {false, "started"}}, {"cancel", {true, "sealed"}}}},
      {"paused", {{"pause", {false, "paused"}}, {"resume", {true, "queued"}}, {"cancel", {true, "sealed"}}}},
      {"excluded", {{"pause", {false, "paused"}}, {"resume", {false, "paused"}}, {"cancel", {true, "sealed"}}}},
      {"in a paused crawl", {{"pause", {true, "paused"}}, {"resume", {false, "paused"}}, {"cancel", {true, "sealed"}}}},
      {"sealed", {{"pause", {false, "sealed"}}, {"resume", {false, "sealed"}}, {"cancel", {false, "sealed"}}}},
  };
  for (const auto& [state, row] : matrix)
    for (const auto& [action, expected] : row) {
      CAPTURE(state);
      CAPTURE(action);
      const auto crawl = stage.start(stage.seeds(1, 2));
      std::optional<store::Claim> held;
      if (state == "started" || state == "sealed") {
        held = hold(stage, worker, crawl);
        if (state == "sealed") stage.seal(worker, *held);
      }
      const std::string id = held ? held->lease.snapshot_id
                                  : stage.value("select snapshot_id from holdfast.snapshot_queue where crawl_id = "
                                                "$1::uuid order by retry_at limit 1",
                                                pg::Params::of(crawl));
      const store::Lease lease{id, crawl, held ? held->lease.fence : 0};
      if (state == "paused") stage.command("pauseSnapshot", id);
      if (state == "in a paused crawl") stage.command("pauseCrawl", crawl);
      if (state == "excluded") {
        stage.command("scopeCrawl", crawl, {{"add", {{"deny", {"/1$"}}}}});
        stage.expand(worker);
      }

      CHECK(stage.command(action + "Snapshot", id) == expected.changed);
      CHECK(stage.status(lease) == expected.after);
      CHECK_FALSE(stage.command(action + "Snapshot", id));
      CHECK(stage.status(lease) == expected.after);
      if (held && state != "sealed" && expected.changed) CHECK(taken(stage, worker, *held));
      CHECK(refusal([&] { stage.command("removeSnapshot", id); }) == pg::kRefused); // its crawl is open
      stage.command("cancelCrawl", crawl);
      stage.expand(worker);
      CHECK(crawl_state(stage, crawl) == "sealed");
      CHECK(stage.command("removeSnapshot", id));
      CHECK_FALSE(stage.command("removeSnapshot", id));
      CHECK_FALSE(refusal([&] { stage.command(action + "Snapshot", id); }).empty());
    }
}

TEST_CASE("every command to a worker, in every state") {
  Stage stage;
  const auto crawl = stage.start(stage.seeds(1, 200));
  const std::map<std::string, Row> matrix = {
      {"idle", {{"pause", {true, "paused"}}, {"resume", {false, "works"}}, {"cancel", {true, "works, stop"}}}},
      {"in work", {{"pause", {true, "paused"}}, {"resume", {false, "works"}}, {"cancel", {true, "works, stop"}}}},
      {"draining", {{"pause", {true, "paused"}}, {"resume", {false, "works"}}, {"cancel", {true, "works, stop"}}}},
      {"paused", {{"pause", {false, "paused"}}, {"resume", {true, "works"}}, {"cancel", {true, "paused, stop"}}}},
      {"gone", {{"pause", {false, "gone"}}, {"resume", {false, "gone"}}, {"cancel", {false, "gone"}}}},
  };
  for (const auto& [state, row] : matrix)
    for (const auto& [action, expected] : row) {
      CAPTURE(state);
      CAPTURE(action);
      const auto worker = stage.worker();
      std::optional<store::Claim> held;
      if (state == "in work") held = hold(stage, worker, crawl);
      if (state == "draining")
        stage.run("update holdfast.process set draining = true where id = $1::uuid", pg::Params::of(worker));
      if (state == "paused") stage.command("pauseWorker", worker);
      if (state == "gone") store::call(stage.connection, "process_leave", worker, 0, "done");
      const auto command = [&] { return stage.command(action + "Worker", worker); };
      const auto now = [&] {
        return stage.value(
            "select case when status = 'exited' then 'gone' when paused_at is not null then 'paused' else 'works' "
            "end || coalesce(', ' || request, '') from holdfast.process where id = $1::uuid",
            pg::Params::of(worker));
      };
      CHECK(command() == expected.changed);
      CHECK(now() == expected.after);
      CHECK_FALSE(command());
      CHECK(now() == expected.after);
      if (held) CHECK(stage.status(held->lease) == (action == "pause" ? "queued" : "started"));
      if (now() != "works" && now() != "gone") CHECK(stage.claim_only(worker, 1, {crawl}).empty());
      if (action == "pause" && held) {
        const auto other = stage.worker();
        hold(stage, other, crawl);
        store::call(stage.connection, "process_leave", other, 0, "done");
      }
      if (state != "gone") store::call(stage.connection, "process_leave", worker, 0, "done");
    }
}

TEST_CASE("every command to a host, and to everything, in every state") {
  Stage stage;
  const std::map<std::string, Row> matrix = {
      {"unknown", {{"pause", {true, "paused"}}, {"resume", {false, ""}}, {"cancel", {true, ""}}}},
      {"with limits", {{"pause", {true, "paused"}}, {"resume", {false, "free"}}, {"cancel", {true, "free"}}}},
      {"in work", {{"pause", {true, "paused"}}, {"resume", {false, ""}}, {"cancel", {true, ""}}}},
      {"paused", {{"pause", {false, "paused"}}, {"resume", {true, "free"}}, {"cancel", {true, "paused"}}}},
      {"backed off", {{"pause", {true, "paused"}}, {"resume", {true, "free"}}, {"cancel", {true, "backed off"}}}},
  };
  for (const auto& [state, row] : matrix)
    for (const auto& [action, expected] : row) {
      CAPTURE(state);
      CAPTURE(action);
      const auto worker = stage.worker();
      stage.run("delete from holdfast.host");
      const auto crawl = stage.start(stage.seeds(1, 3));
      std::optional<store::Claim> held;
      if (state == "with limits") stage.command("setHost", "site.test", {{"parallel", 2}});
      if (state == "in work") held = hold(stage, worker, crawl);
      if (state == "paused") stage.command("pauseHost", "site.test");
      if (state == "backed off") store::host_rate_limited(stage.connection, "site.test", 429, std::nullopt, "worker");
      const auto command = [&] { return stage.command(action + "Host", "site.test"); };
      const auto now = [&] {
        return stage.value(
            "select coalesce(max(case when paused then 'paused' when backoff_until > clock_timestamp() then "
            "'backed off' else 'free' end), '') from holdfast.host where name = 'site.test'");
      };
      CHECK(command() == expected.changed);
      CHECK(now() == expected.after);
      CHECK_FALSE(command());
      CHECK(now() == expected.after);
      if (held && action != "resume") CHECK(taken(stage, worker, *held));
      CHECK(stage.claim_only(worker, 1, {crawl}).size() ==
            (now() == "paused" || now() == "backed off" || action == "cancel" ? 0 : 1));
      if (action == "cancel") CHECK(crawl_state(stage, crawl) == "sealed");
      stage.command("cancelCrawl", crawl);
      stage.expand(worker);
      CHECK(crawl_state(stage, crawl) == "sealed");
      store::call(stage.connection, "process_leave", worker, 0, "done");
    }

  const auto worker = stage.worker();
  stage.run("delete from holdfast.host");
  const auto crawl = stage.start(stage.seeds(1, 3));
  const auto held = hold(stage, worker, crawl);
  CHECK_FALSE(stage.command("resumeAll"));
  CHECK(stage.command("pauseAll"));
  CHECK_FALSE(stage.command("pauseAll"));
  CHECK(taken(stage, worker, held));
  CHECK(stage.claim_only(worker, 1, {crawl}).empty());
  CHECK(stage.command("resumeAll"));
  CHECK_FALSE(stage.command("resumeAll"));
  CHECK(stage.claim_only(worker, 1, {crawl}).size() == 1);
}
