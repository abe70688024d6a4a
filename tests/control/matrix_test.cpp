// Every command in every state of what it is given to: what it answers, the state after it, and that a second time
// changes nothing. The Stage checks the invariants at the end.
#include "lib/store/control.hpp"
#include "lib/store/host.hpp"
#include "tests/store/stage.hpp"

#include <doctest/doctest.h>

#include <map>

using namespace holdfast;
using namespace holdfast::test;

namespace {

const store::Command kAnnsCommand{"ann", ""};

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

// Its worker cannot seal it any more, and hears so, also with its next beat.
bool taken(Stage& stage, const std::string& worker, const store::Claim& held) {
  if (store::worker_beat(stage.connection, worker, 1h, {held.lease}, "{}").lost.empty()) return false;
  const auto answer = stage.seal(worker, held).what;
  return answer == store::PageAnswer::What::lost || answer == store::PageAnswer::What::cancelled;
}

std::string crawl_state(Stage& stage, const std::string& crawl) {
  return stage.value(
      "select status || case when stopping_at is not null and status <> 'sealed' then ' stopping' else '' end "
      "from holdfast.v_crawl where id = $1::uuid",
      pg::Params::of(crawl));
}

bool order_crawl(Stage& stage, const std::string& action, const std::string& crawl) {
  return action == "pause"    ? store::give(stage.connection, "crawl", "pause", crawl, kAnnsCommand)
         : action == "resume" ? store::give(stage.connection, "crawl", "resume", crawl, kAnnsCommand)
                              : store::crawl_cancel(stage.connection, crawl, kAnnsCommand, {});
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
      if (state == "paused") store::give(stage.connection, "crawl", "pause", crawl, kAnnsCommand);
      if (state == "stopping")
        stage.run("select holdfast.crawl_stop($1::uuid, 'cancelled', 'bob', '', 1)", pg::Params::of(crawl));
      if (state == "sealed") store::crawl_cancel(stage.connection, crawl, kAnnsCommand, {});

      CHECK(order_crawl(stage, action, crawl) == expected.changed);
      CHECK(crawl_state(stage, crawl) == expected.after);
      CHECK_FALSE(order_crawl(stage, action, crawl));
      CHECK(crawl_state(stage, crawl) == expected.after);
      if (held) CHECK(taken(stage, worker, *held) == expected.changed);
      if (expanding)
        CHECK((refusal([&] { store::crawl_expand(stage.connection, worker, *expanding, 10); }) == pg::kStaleFence) ==
              expected.changed);
      // Whatever it was, it can be brought to its end.
      store::crawl_cancel(stage.connection, crawl, kAnnsCommand, {});
      stage.expand(worker);
      CHECK(crawl_state(stage, crawl) == "sealed");
      // What is sealed is neither excluded from nor given a new scope; it can be removed, and what is open cannot.
      CHECK(refusal([&] {
              store::crawl_scope(stage.connection, crawl, {{"deny", {"x.test"}}}, {}, "ann");
            }) == pg::kRefused);
      CHECK_NOTHROW(store::crawl_remove(stage.connection, crawl, "ann"));
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
      if (state == "paused") store::give(stage.connection, "snapshot", "pause", id, kAnnsCommand);
      if (state == "in a paused crawl") store::give(stage.connection, "crawl", "pause", crawl, kAnnsCommand);
      if (state == "excluded") {
        store::crawl_scope(stage.connection, crawl, {{"deny", {"/1$"}}}, {}, "ann");
        stage.expand(worker);
      }

      CHECK(store::give(stage.connection, "snapshot", action, id, kAnnsCommand) == expected.changed);
      CHECK(stage.status(lease) == expected.after);
      CHECK_FALSE(store::give(stage.connection, "snapshot", action, id, kAnnsCommand));
      CHECK(stage.status(lease) == expected.after);
      if (held && state != "sealed" && expected.changed) CHECK(taken(stage, worker, *held));
      CHECK(refusal([&] { store::snapshot_remove(stage.connection, id, "ann"); }) == pg::kRefused); // its crawl is open
      store::crawl_cancel(stage.connection, crawl, kAnnsCommand, {});
      stage.expand(worker);
      CHECK(crawl_state(stage, crawl) == "sealed");
      CHECK(store::snapshot_remove(stage.connection, id, "ann"));
      CHECK_FALSE(store::snapshot_remove(stage.connection, id, "ann"));
      CHECK_FALSE(refusal([&] { store::give(stage.connection, "snapshot", action, id, kAnnsCommand); }).empty());
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
      if (state == "paused") store::give(stage.connection, "worker", "pause", worker, kAnnsCommand);
      if (state == "gone") store::worker_leave(stage.connection, worker, 0, "done");
      const auto command = [&] {
        return action == "pause"    ? store::give(stage.connection, "worker", "pause", worker, kAnnsCommand)
               : action == "resume" ? store::give(stage.connection, "worker", "resume", worker, kAnnsCommand)
                                    : store::give(stage.connection, "worker", "cancel", worker, kAnnsCommand);
      };
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
        store::worker_leave(stage.connection, other, 0, "done");
      }
      if (state != "gone") store::worker_leave(stage.connection, worker, 0, "done");
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
      if (state == "with limits") store::host_set(stage.connection, "site.test", {std::nullopt, 2}, "ann");
      if (state == "in work") held = hold(stage, worker, crawl);
      if (state == "paused") store::give(stage.connection, "host", "pause", "site.test", kAnnsCommand);
      if (state == "backed off") store::host_rate_limited(stage.connection, "site.test", 429, std::nullopt, "worker");
      const auto command = [&] {
        return action == "pause"    ? store::give(stage.connection, "host", "pause", "site.test", kAnnsCommand)
               : action == "resume" ? store::give(stage.connection, "host", "resume", "site.test", kAnnsCommand)
                                    : store::host_cancel(stage.connection, "site.test", kAnnsCommand) > 0;
      };
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
      store::crawl_cancel(stage.connection, crawl, kAnnsCommand, {});
      stage.expand(worker);
      CHECK(crawl_state(stage, crawl) == "sealed");
      store::worker_leave(stage.connection, worker, 0, "done");
    }

  const auto worker = stage.worker();
  stage.run("delete from holdfast.host");
  const auto crawl = stage.start(stage.seeds(1, 3));
  const auto held = hold(stage, worker, crawl);
  CHECK_FALSE(store::give(stage.connection, "collection", "resume", "", kAnnsCommand));
  CHECK(store::give(stage.connection, "collection", "pause", "", kAnnsCommand));
  CHECK_FALSE(store::give(stage.connection, "collection", "pause", "", kAnnsCommand));
  CHECK(taken(stage, worker, held));
  CHECK(stage.claim_only(worker, 1, {crawl}).empty());
  CHECK(store::give(stage.connection, "collection", "resume", "", kAnnsCommand));
  CHECK_FALSE(store::give(stage.connection, "collection", "resume", "", kAnnsCommand));
  CHECK(stage.claim_only(worker, 1, {crawl}).size() == 1);
}
