// The roles: each can do its work, and nothing else.
#include "lib/base/error.hpp"
#include "lib/base/uuid.hpp"
#include "lib/catalog/list.hpp"
#include "lib/store/call.hpp"
#include "lib/store/find.hpp"
#include "tests/store/stage.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>

using namespace holdfast;
using namespace holdfast::test;

namespace {

// What the session may not do says PostgreSQL with this.
constexpr const char* kDenied = "42501";

struct Guarded : Stage {
  void become(const std::string& role) { run("set role " + role); }
  ~Guarded() {
    try {
      run("reset role"); // the stage checks the invariants
    } catch (const std::exception&) {
    }
  }
  std::string outcome(const std::string& sql) {
    return refusal([&] { connection.call(sql); });
  }
  std::vector<std::string> names(const std::string& sql) {
    const auto rows = connection.call(sql);
    std::vector<std::string> all;
    for (std::size_t i = 0; i < rows.size(); ++i)
      all.push_back(rows.cell(i, 0).value());
    REQUIRE(!all.empty());
    return all;
  }
};

} // namespace

TEST_CASE("a reader sees every view and no table, and changes nothing") {
  Guarded stage;
  const auto crawl = stage.start(Stage::seeds(1, 2));
  const auto views =
      stage.names("select viewname from pg_views where schemaname = 'holdfast' and viewname like 'v\\_%'");
  const auto tables = stage.names("select tablename from pg_tables where schemaname = 'holdfast' and tablename not in "
                                  "('collection', 'schema_migration', 'lifecycle_edge')");
  for (const char* role : {"holdfast_reader", "holdfast_operator", "holdfast_worker"}) {
    CAPTURE(role);
    stage.become(role);
    for (const auto& view : views)
      CHECK_MESSAGE(stage.outcome("select * from holdfast." + view + " limit 1") == "", view);
    for (const auto& table : tables) {
      CHECK_MESSAGE(stage.outcome("select * from holdfast." + table) == kDenied, table);
      CHECK_MESSAGE(stage.outcome("delete from holdfast." + table) == kDenied, table);
    }
    CHECK(stage.outcome("update holdfast.snapshot_queue set retry_at = now()") == kDenied);
    CHECK(stage.outcome("update holdfast.v_crawl set label = 'mine'") != "");
    CHECK(stage.outcome("create table holdfast.mine (x integer)") == kDenied);
    CHECK(stage.outcome("select holdfast.grant_roles()") == kDenied);
    CHECK(stage.outcome("select holdfast.seal_pages(null)") == kDenied);
    CHECK(store::why(stage.connection, crawl).kind == "crawl");
    CHECK(stage.outcome("select * from holdfast.check_invariants()") == "");
    catalog::ListQuery query;
    CHECK(catalog::list(stage.connection, query).size() == 2);
    for (const auto& list : catalog::lists())
      for (const auto& [filter, column] : list.filters) {
        const bool is_time = catalog::filter_of(filter).type == "timestamptz";
        const std::string value = filter == "status" ? "failed" : is_time ? "2026-01-01T00:00:00Z" : crawl;
        catalog::ListQuery one{std::string(list.name)};
        if (filter == "at") one.by("url", "https://site.test/");
        catalog::list(stage.connection, one.by(filter, value));
      }
  }
  stage.become("holdfast_reader");
  CHECK(stage.outcome("select holdfast.crawl_pause(gen_random_uuid(), 'me', 'why')") == kDenied);
  CHECK(stage.outcome("select holdfast.crawl_add(gen_random_uuid(), '{}')") == kDenied);
  CHECK(stage.outcome("select * from holdfast.worker_turn(gen_random_uuid(), '[]', 1, '{}', false, false, 0, 0)") ==
        kDenied);
  CHECK(stage.outcome("select holdfast.process_leave(gen_random_uuid(), 0, '')") == kDenied);
}

TEST_CASE("an operator adds and steers, but is no worker") {
  Guarded stage;
  stage.become("holdfast_operator");
  const auto crawl = stage.add(Stage::seeds(1, 3));
  stage.run("select holdfast.crawl_pause($1::uuid, 'op', 'a break')", pg::Params::of(crawl));
  CHECK(store::why(stage.connection, crawl).reason.find("has been paused since") != std::string::npos);
  stage.run("select holdfast.crawl_resume($1::uuid, 'op', 'go on')", pg::Params::of(crawl));
  CHECK(stage.outcome("select holdfast.host_set('site.test', '1 second', 2, 'op')") == "");
  CHECK(stage.outcome("select holdfast.host_forget('site.test', 'op')") == "");
  CHECK(stage.outcome("select holdfast.collection_pause('op', 'night')") == "");
  CHECK(stage.outcome("select holdfast.collection_resume('op', 'morning')") == "");
  CHECK(stage.outcome("select * from holdfast.crawl_claim(gen_random_uuid(), '1 minute')") == kDenied);
  CHECK(refusal([&] { stage.worker(); }) == kDenied);
  CHECK(stage.outcome("update holdfast.crawl set status = 'paused'") == kDenied);
}

TEST_CASE("a worker does the whole work of a worker, and does not steer") {
  Guarded stage;
  const auto crawl = stage.add(Stage::seeds(1, 2));
  stage.become("holdfast_worker");
  const auto worker = stage.worker("worker");
  const auto lease = store::crawl_claim(stage.connection, worker, 1min);
  REQUIRE(lease);
  store::crawl_expand(stage.connection, worker, *lease, 100);
  const auto claim = stage.claim(worker);
  store::worker_heartbeat(stage.connection, worker, 1min, {claim.lease}, "{}");
  store::worker_hooks(stage.connection, worker, {Stage::running(claim, "wget", "hook")});
  auto page = Stage::sealed(claim);
  page.results = {Stage::result("wget", "hook")};
  store::TurnRequest request;
  request.pages = {page};
  request.claim.room = 1;
  const auto turn = store::worker_turn(stage.connection, worker, request);
  CHECK(turn.pages.at(0).what == store::PageAnswer::What::sealed);
  CHECK(stage.status(claim.lease) == "sealed");
  stage.release(worker, turn.claims.at(0));
  store::call(stage.connection, "lapse_process");
  const auto runner = base::new_uuid();
  stage.run(
      R"(select holdfast.process_join($1::uuid, '{"machine": {"id": "m", "hostname": "h"}, "boot_id": "b", "pid": 1,
           "start_ticks": 1, "process_type": "runner", "worker_type": "runner_waiting", "label": "r", "version": "v"}',
           interval '1 hour'))",
      pg::Params::of(runner));
  CHECK(stage.value("select answer from holdfast.runner_enter($1::uuid, '1 hour', '5 s')", pg::Params::of(runner)) ==
        "lead");
  CHECK(stage.value("select coalesce(error, 'none') from holdfast.runner_maintenance($1::uuid, 1, 'mend')",
                    pg::Params::of(runner)) == "none");
  store::call(stage.connection, "process_leave", worker, 0, "done");

  CHECK(stage.outcome("update holdfast.snapshot_queue set owner_id = null") == kDenied);
  CHECK(stage.outcome("select holdfast.crawl_cancel(gen_random_uuid(), 'me', 'why')") == kDenied);
  CHECK(stage.outcome("select holdfast.crawl_add(gen_random_uuid(), '{}')") == kDenied);
  CHECK(refusal([&] { stage.run("select holdfast.crawl_pause($1::uuid, 'me', 'why')", pg::Params::of(crawl)); }) ==
        kDenied);
}

TEST_CASE("an owner may touch the tables") {
  Guarded stage;
  const auto crawl = stage.add(Stage::seeds(1, 1));
  stage.become("holdfast_owner");
  stage.run("update holdfast.crawl set label = 'mine' where id = $1::uuid", pg::Params::of(crawl));
  CHECK(stage.value("select label from holdfast.v_crawl") == "mine");
}

TEST_CASE("every function that the program calls may be called by the role that is to") {
  Guarded stage;
  std::set<std::string> called;
  const std::regex call(R"re(holdfast\.([a-z_]+)\(|store::call\w*(?:<[\w:]+>)?\([^,]+,\s*"([a-z_]+)")re");
  for (const char* top : {"/lib", "/services"})
    for (const auto& entry : std::filesystem::recursive_directory_iterator(HOLDFAST_SOURCE_DIR + std::string(top))) {
      if (entry.path().extension() != ".cpp") continue;
      std::ifstream file(entry.path());
      const std::string text{std::istreambuf_iterator<char>(file), {}};
      for (std::sregex_iterator found(text.begin(), text.end(), call), end; found != end; ++found)
        called.insert((*found)[(*found)[1].matched ? 1 : 2].str());
    }
  CHECK(called.contains("worker_turn"));
  CHECK(called.contains("purge_done"));
  for (const char* owners : {"older_programs", "shut_out_older_programs", "complete", "adopt", "adopt_kept",
                             "collection_adopt", "restored"}) // migrations, rows made again from files or a backup
    called.erase(owners);
  for (const auto& name : called) {
    CHECK_MESSAGE(
        stage.value("select coalesce(bool_and(has_function_privilege('holdfast_worker', p.oid, 'execute') or "
                    "has_function_privilege('holdfast_operator', p.oid, 'execute')), false) from pg_proc p where "
                    "p.pronamespace = 'holdfast'::regnamespace and p.proname = $1",
                    pg::Params::of(name)) == "t",
        name << ": only the owner may call it; see migrations/functions/99_roles.sql");
  }
}

TEST_CASE("whatever runs as the owner fixes its search path, and only the owner may call it") {
  Guarded stage;
  CHECK(
      stage.value("select count(*) from pg_proc p where p.pronamespace = 'holdfast'::regnamespace and p.prosecdef and "
                  "not coalesce(p.proconfig::text like '%search_path%', false)") == "0");
  CHECK(stage.value("select count(*) from pg_proc p where p.pronamespace = 'holdfast'::regnamespace and "
                    "has_function_privilege('public', p.oid, 'execute') and p.prokind = 'f'") == "0");
}
