// The lifecycles are written down twice, in C++ and in SQL; here the two are held equal, and every other change is
// tried.
#include "lib/store/lifecycle.hpp"
#include "lib/store/live.hpp"
#include "tests/store/stage.hpp"

#include <doctest/doctest.h>

#include <map>
#include <set>

using namespace holdfast;
using namespace holdfast::test;

namespace {

// The states of a lifecycle, from its edges.
std::set<std::string> states_of(std::string_view lifecycle) {
  std::set<std::string> states;
  for (const auto& edge : store::kEdges)
    if (edge.lifecycle == lifecycle) {
      states.emplace(edge.from);
      states.emplace(edge.to);
    }
  return states;
}

bool is_edge(std::string_view lifecycle, std::string_view from, std::string_view to) {
  for (const auto& edge : store::kEdges)
    if (edge.lifecycle == lifecycle && edge.from == from && edge.to == to) return true;
  return false;
}

// How a row of each lifecycle gets into a state, whatever that takes, and the plain update that a trigger must judge.
// Rows of archive_result never change: their lifecycle begins in running_hook and ends with the insert.
struct Subject {
  std::string lifecycle, table, key;
};
const std::vector<Subject> kSubjects = {
    {"crawl", "crawl", "id"},           {"snapshot", "snapshot_queue", "snapshot_id"},
    {"binary", "binary", "machine_id"}, {"session", "session", "id"},
    {"process", "process", "id"},       {"delivery", "delivery", "webhook"}};

// The columns that the constraints tie to a state.
std::string columns_for(const std::string& lifecycle, const std::string& state) {
  if (lifecycle == "crawl") {
    if (state == "sealed")
      return ", sealed_at = clock_timestamp(), outcome = 'cancelled', retry_at = null, owner_id = null, seeds_left = "
             "0, "
             "snapshots_failed = snapshots_total, snapshots_open = 0";
    return std::string(", sealed_at = null, outcome = null, owner_id = null, retry_at = ") +
           (state == "paused" ? "holdfast.retry_at_max()" : "clock_timestamp()");
  }
  if (lifecycle == "snapshot") {
    if (state == "started")
      return ", owner_id = (select id from holdfast.process where status = 'running' limit 1), claimed_at = "
             "clock_timestamp(), due_at = clock_timestamp(), retry_at = clock_timestamp()";
    return std::string(", owner_id = null, claimed_at = null, due_at = null, retry_at = ") +
           (state == "paused" ? "holdfast.retry_at_max()" : "clock_timestamp()");
  }
  if (lifecycle == "session")
    return std::string(", reason = 'a reason', ended_at = ") +
           (state == "closed" || state == "failed" ? "clock_timestamp()" : "null");
  if (lifecycle == "binary") return ", path = '/bin/true'";
  if (lifecycle == "delivery")
    return state == "waiting" ? ", ended_at = null, retry_at = clock_timestamp()"
                              : ", ended_at = clock_timestamp(), retry_at = null, owner = null";
  return std::string(", ended_at = ") + (state == "exited" ? "clock_timestamp()" : "null");
}

} // namespace

TEST_CASE("the edges in C++ and in the database are the same, sentence for sentence") {
  Stage stage;
  std::set<std::string> in_cpp, in_sql;
  for (const auto& edge : store::kEdges)
    in_cpp.insert(std::string(edge.lifecycle) + "|" + std::string(edge.from) + "|" + std::string(edge.event) + "|" +
                  std::string(edge.to) + "|" + std::string(edge.why));
  const auto rows = stage.connection.call("select * from holdfast.lifecycle_edge");
  for (std::size_t i = 0; i < rows.size(); ++i)
    in_sql.insert(rows[i].text("lifecycle") + "|" + rows[i].text("from_state") + "|" + rows[i].text("event") + "|" +
                  rows[i].text("to_state") + "|" + rows[i].text("why"));
  CHECK(in_cpp.size() == store::kEdges.size());
  CHECK(in_cpp == in_sql);
}

TEST_CASE("every state that an edge names is one that its table allows, and the other way round") {
  Stage stage;
  const std::map<std::string, std::string> constraints = {
      {"crawl", "crawl_status"},    {"snapshot", "snapshot_queue_status"}, {"archive_result", "archive_result_status"},
      {"binary", "binary_status"},  {"process", "process_status"},         {"delivery", "delivery_status"},
      {"session", "session_status"}};
  for (const auto& [lifecycle, constraint] : constraints) {
    CAPTURE(lifecycle);
    const auto definition =
        stage.value("select pg_get_constraintdef(oid) from pg_constraint where conname = $1 and coninhcount = 0",
                    pg::Params::of(constraint));
    std::size_t allowed = 0;
    for (std::size_t at = 0; (at = definition.find("'::text", at)) != std::string::npos; ++at)
      ++allowed;
    auto states = states_of(lifecycle);
    if (lifecycle == "snapshot") states.erase("sealed");        // a row of another table
    if (lifecycle == "archive_result") states.erase("started"); // a row of another table
    for (const auto& state : states)
      CHECK_MESSAGE(definition.find("'" + state + "'") != std::string::npos, state);
    CHECK(allowed == states.size());
  }
}

TEST_CASE("every change of state that is no edge is refused for every role, and every edge is taken") {
  for (const auto& subject : kSubjects) {
    for (const auto& from : states_of(subject.lifecycle)) {
      for (const auto& to : states_of(subject.lifecycle)) {
        if (from == to) continue;
        if (subject.lifecycle == "snapshot" && (from == "sealed" || to == "sealed")) continue; // see below
        CAPTURE(subject.lifecycle);
        CAPTURE(from);
        CAPTURE(to);
        Stage stage;
        stage.broken_on_purpose = true;
        stage.worker();
        if (subject.lifecycle == "session") {
          stage.start({stage.seed("1")});
          stage.run("insert into holdfast.session (id, crawl_id, process_id, directory) "
                    "select holdfast.new_uuid(), c.id, p.id, '/d' from holdfast.crawl c, holdfast.process p limit 1");
        } else if (subject.lifecycle == "crawl" || subject.lifecycle == "snapshot") {
          stage.start({stage.seed("1")});
        } else if (subject.lifecycle == "binary") {
          stage.run("insert into holdfast.binary (machine_id, name) select id, 'wget' from holdfast.machine limit 1");
        } else if (subject.lifecycle == "delivery") {
          stage.run("select holdfast.webhook_set('one', 'https://hooks.test/', '{worker.lapsed}', 'ann')");
          stage.run("select holdfast.webhook_test('one', 'ann')");
        }
        const auto update = [&](const std::string& state) {
          return "update holdfast." + subject.table + " set status = '" + state + "'" +
                 columns_for(subject.lifecycle, state);
        };
        stage.force(update(from));
        const auto refused = refusal([&] { stage.run(update(to)); });
        CHECK(refused == (is_edge(subject.lifecycle, from, to) ? "" : pg::kBrokenInvariant));
      }
    }
  }
}

TEST_CASE("a set of rows changes state only if each of them may, and each is recorded") {
  Stage stage;
  stage.broken_on_purpose = true; // the parked rows are in sight of claims
  stage.start(stage.seeds(1, 3));
  const auto worker = stage.worker();
  const auto claims = stage.claim_many(worker, 2);
  stage.run("select holdfast.snapshot_command($1::uuid, 'pause', 'ann', '')",
            pg::Params::of(claims.at(0).lease.snapshot_id)); // now one is queued, one started, one paused
  const auto park = "update holdfast.snapshot_queue set status = 'paused'" + columns_for("snapshot", "paused");
  const auto direct = "select string_agg(from_state || ' ' || to_state, ', ' order by from_state) from holdfast.event "
                      "where lifecycle = 'snapshot' and event = 'direct'";
  stage.run("update holdfast.lifecycle_edge set to_state = 'queued' where lifecycle = 'snapshot' and from_state = "
            "'started' and event = 'pause'");
  CHECK(refusal([&] { stage.run(park); }) == pg::kBrokenInvariant);
  CHECK(stage.value("select count(distinct status) from holdfast.snapshot_queue") == "3");
  CHECK(stage.value(direct) == "");
  stage.run("update holdfast.lifecycle_edge set to_state = 'paused' where lifecycle = 'snapshot' and from_state = "
            "'started' and event = 'pause'");
  stage.run(park);
  CHECK(stage.value(direct) == "queued paused, started paused");
}

TEST_CASE("a change of state by hand is recorded as direct, and what functions do then has its name again") {
  Stage stage;
  stage.broken_on_purpose = true; // the counters and crawl_queue know nothing of this
  const auto crawl = stage.start(stage.seeds(1, 2));
  const auto worker = stage.worker();
  const auto claim = stage.claim(worker);
  stage.run("select holdfast.session_open($1::uuid, holdfast.new_uuid(), $2::uuid, '/d')",
            pg::Params::of(worker, crawl));
  const auto last = [&](const std::string& lifecycle) {
    return stage.value(
        "select from_state || ' ' || event || ' ' || to_state from holdfast.v_event where lifecycle = $1 "
        "order by id desc limit 1",
        pg::Params::of(lifecycle));
  };
  CHECK(last("snapshot") == "queued start started");
  for (const std::string to : {"queued", "paused", "queued", "started"}) {
    const auto from = stage.status(claim.lease);
    stage.run("update holdfast.snapshot_queue set status = '" + to + "'" + columns_for("snapshot", to) +
                  " where snapshot_id = $1::uuid",
              pg::Params::of(claim.lease.snapshot_id));
    CHECK(last("snapshot") == from + " direct " + to);
  }
  stage.run("update holdfast.crawl set status = 'paused'" + columns_for("crawl", "paused"));
  CHECK(last("crawl") == "started direct paused");
  stage.run("update holdfast.crawl set status = 'queued'" + columns_for("crawl", "queued"));
  CHECK(last("crawl") == "paused direct queued");
  stage.run("select holdfast.crawl_pause($1::uuid, 'ann', '')", pg::Params::of(crawl));
  CHECK(last("crawl") == "queued pause paused");
  CHECK(last("snapshot") == "started release queued");
  stage.run("update holdfast.session set status = 'ready'");
  CHECK(last("session") == "opening direct ready");
  stage.run("select holdfast.session_set(id, 'draining', null, '[]') from holdfast.session");
  CHECK(last("session") == "ready drain draining");
  stage.run("update holdfast.session set status = 'closed'" + columns_for("session", "closed"));
  CHECK(last("session") == "draining direct closed");
}

TEST_CASE("a snapshot is sealed only along an edge, and its outcome says which") {
  for (const std::string from : {"queued", "started", "paused"}) {
    for (const auto& [outcome, event] : std::vector<std::pair<std::string, std::string>>{{"succeeded", "seal"},
                                                                                         {"partial", "seal"},
                                                                                         {"failed", "seal"},
                                                                                         {"refused", "refuse"},
                                                                                         {"quarantined", "quarantine"},
                                                                                         {"cancelled", "cancel"}}) {
      CAPTURE(from);
      CAPTURE(outcome);
      Stage stage;
      stage.broken_on_purpose = true; // the counters know nothing of this
      stage.worker();
      stage.start(stage.seeds(1, 2));
      // One may be cancelled in any state; the other is in the state that is tried.
      stage.force("update holdfast.snapshot_queue set status = '" + from + "'" + columns_for("snapshot", from) +
                  " where snapshot_id = (select max(snapshot_id::text)::uuid from holdfast.snapshot_queue)");
      bool legal = false;
      for (const auto& edge : store::kEdges)
        legal |= edge.lifecycle == "snapshot" && edge.from == from && edge.event == event && edge.to == "sealed";
      CHECK(stage.value("select holdfast.seal_event($1)", pg::Params::of(outcome)) == event);
      const auto refused = refusal([&] {
        stage.run("with gone as (delete from holdfast.snapshot_queue returning *) insert into holdfast.snapshot_sealed "
                  "(snapshot_id, crawl_id, outcome, reason, fence, directory, manifest_sha256) select snapshot_id, "
                  "crawl_id, case when snapshot_id::text = (select max(snapshot_id::text) from gone) then $1 else "
                  "'cancelled' end, 'reason', 1, '2026/01/h/' || snapshot_id || '/a1', 'digest' from gone",
                  pg::Params::of(outcome));
      });
      CHECK(refused == (legal ? "" : pg::kBrokenInvariant));
      CHECK(stage.value("select count(*) from holdfast.snapshot_queue") == (legal ? "0" : "2"));
    }
  }
}

TEST_CASE("a sealed snapshot never changes and is not sealed again, and queue rows do not just go away") {
  Stage stage;
  stage.start(stage.seeds(1, 3));
  const auto worker = stage.worker();
  auto page = stage.sealed(stage.claim(worker));
  page.results = {stage.result("wget", "hook")};
  stage.finish(worker, page);
  stage.release(worker, stage.claim(worker));
  stage.claim(worker);
  for (const char* change :
       {"update holdfast.snapshot_sealed set title = 'x'", "update holdfast.snapshot_sealed set outcome = 'failed'",
        "delete from holdfast.snapshot_sealed", "update holdfast.archive_result set output = 'x'",
        "delete from holdfast.archive_result", "update holdfast.attempt set reason = 'x'",
        "delete from holdfast.attempt", "update holdfast.snapshot set url = 'https://other.test/'",
        "delete from holdfast.snapshot", "delete from holdfast.crawl", "truncate holdfast.snapshot cascade",
        "truncate holdfast.snapshot_sealed cascade", "truncate holdfast.archive_result", "truncate holdfast.attempt",
        "truncate holdfast.crawl cascade", "delete from holdfast.snapshot_queue",
        "delete from holdfast.snapshot_queue where owner_id is null",
        "delete from holdfast.snapshot_queue where owner_id is not null",
        // Sealed, but still in the queue.
        "insert into holdfast.snapshot_sealed (snapshot_id, crawl_id, outcome, reason, fence) select snapshot_id, "
        "crawl_id, 'cancelled', 'reason', fence from holdfast.snapshot_queue where owner_id is null",
        "insert into holdfast.snapshot_sealed (snapshot_id, crawl_id, outcome, fence) select snapshot_id, crawl_id, "
        "'failed', fence from holdfast.snapshot_queue where owner_id is not null"}) {
    CAPTURE(change);
    CHECK(refusal([&] { stage.run(change); }) == pg::kBrokenInvariant);
  }
  CHECK(refusal([&] { stage.run("update holdfast.snapshot set tags = '{later}'"); }) == ""); // no part of the seal
  CHECK(refusal([&] {
          stage.run("insert into holdfast.snapshot_sealed (snapshot_id, crawl_id, outcome, fence) select snapshot_id, "
                    "crawl_id, 'failed', 9 from holdfast.snapshot_sealed");
        }) == "23505"); // its primary key says so first
  CHECK(stage.value("select count(*) from holdfast.snapshot_sealed") == "1");
  CHECK(stage.value("select count(*) from holdfast.archive_result") == "1");
  CHECK(stage.value("select count(*) from holdfast.attempt") == "1");
  CHECK(stage.value("select count(*) from holdfast.snapshot_queue") == "2");
}

TEST_CASE("what is sealed is changed by hand only with the switch, which a refusal names") {
  Stage stage;
  const auto crawl = stage.start(stage.seeds(1, 1)), other = stage.start(stage.seeds(2, 2));
  const auto worker = stage.worker();
  stage.finish(worker, stage.sealed(stage.claim(worker)));
  stage.finish(worker, stage.sealed(stage.claim(worker)));
  std::string said;
  try {
    stage.run("delete from holdfast.snapshot where crawl_id = $1::uuid", pg::Params::of(crawl));
  } catch (const std::exception& error) {
    said = error.what();
  }
  CAPTURE(said);
  CHECK(said.find("delete of snapshot refused") != std::string::npos);
  CHECK(said.find("set holdfast.change_sealed = on") != std::string::npos);
  stage.connection.script(
      "set local holdfast.change_sealed = on; update holdfast.snapshot_sealed set title = 'by hand'");
  CHECK(stage.value("select count(*) from holdfast.v_snapshot where title = 'by hand'") == "2");
  // A removal switches it on for itself alone.
  stage.run("select holdfast.crawl_remove($1::uuid, 'me')", pg::Params::of(crawl));
  CHECK(stage.value("select count(*) from holdfast.snapshot") == "1");
  CHECK(refusal([&] { stage.run("delete from holdfast.crawl where id = $1::uuid", pg::Params::of(other)); }) ==
        pg::kBrokenInvariant);
}

TEST_CASE("deleting a crawl takes everything of it along, and nothing of another") {
  Stage stage;
  store::NewCrawl deep;
  deep["max_depth"] = 1;
  const auto doomed = stage.start(stage.seeds(1, 3), deep), kept = stage.start(stage.seeds(1, 2));
  const auto worker = stage.worker();
  for (const auto& claim : stage.claim_only(worker, 3, {doomed})) {
    auto page = stage.sealed(claim);
    page.results = {stage.result("wget", "hook")};
    page.links = {stage.seed("9")};
    stage.finish(worker, page);
  }
  CHECK(refusal([&] { stage.run("delete from holdfast.crawl where id = $1::uuid", pg::Params::of(doomed)); }) ==
        pg::kBrokenInvariant);
  stage.connection.script("set local holdfast.change_sealed = on; delete from holdfast.crawl where id = '" + doomed +
                          "'");
  // All tables but the record of what happened.
  const auto tables = stage.connection.call("select c.table_name as name from information_schema.columns c join "
                                            "information_schema.tables t using (table_schema, "
                                            "table_name) where c.table_schema = 'holdfast' and c.column_name = "
                                            "'crawl_id' and t.table_type = 'BASE TABLE' and "
                                            "c.table_name <> 'event'");
  CHECK(tables.size() >= 7);
  for (std::size_t i = 0; i < tables.size(); ++i) {
    CAPTURE(tables[i].text("name"));
    CHECK(stage.value("select count(*) from holdfast." + tables[i].text("name") + " where crawl_id = $1::uuid",
                      pg::Params::of(doomed)) == "0");
  }
  CHECK(store::crawl(stage.connection, kept).open == 2);
}

TEST_CASE("each lifecycle can be drawn") {
  for (const auto lifecycle : store::kLifecycles) {
    const auto text = store::mermaid(lifecycle);
    CHECK(text.find("stateDiagram-v2") == 0);
    for (const auto& edge : store::kEdges)
      if (edge.lifecycle == lifecycle)
        CHECK(text.find(std::string(edge.from) + " --> " + std::string(edge.to) + " : " + std::string(edge.event)) !=
              std::string::npos);
  }
  CHECK(store::mermaid("crawl").find("sealed --> [*]") != std::string::npos);
  CHECK(store::mermaid("nonsense").empty());
}
