// What people read: finding by a short id, lists with their filters, and every view.
#include "lib/base/error.hpp"
#include "lib/store/find.hpp"
#include "lib/store/runner.hpp"
#include "tests/store/stage.hpp"

#include <doctest/doctest.h>

using namespace holdfast;
using namespace holdfast::test;

namespace {

// One crawl with ids that are easy to shorten, beside others that are not in the way.
struct Library : Stage {
  std::string crawl{"11112222-3333-7444-8555-666677778888"};
  std::string worker_id;
  store::Claim done, held;
  Library() {
    store::NewCrawl first;
    first.id = crawl;
    first["tags"] = {"news"};
    first["label"] = "First";
    auto tagged = seed("Alpha");
    tagged.tags = {"special"};
    start({tagged, seed("beta"), seed("gamma")}, first);
    add({seed("other")});
    worker_id = worker("reader");
    done = claim(worker_id);
    auto page = sealed(done);
    page.results = {result("wget", "hook", "failed")};
    finish(worker_id, page);
    held = claim(worker_id);
    store::worker_hooks(connection, worker_id, {running(held, "title", "hook")});
    run("insert into holdfast.host (name, paused) values ('site.test', true), ('other.test', false)");
  }
  std::size_t count(catalog::ListQuery query) { return catalog::list(connection, query).size(); }
};

catalog::ListQuery of(const std::string& view) {
  catalog::ListQuery query;
  query.view = view;
  return query;
}

} // namespace

TEST_CASE("a filter is a value and never SQL, in every list") {
  Library library;
  const auto words = [](const catalog::List& list) {
    std::vector<std::string> names;
    for (const auto& [name, column] : list.filters)
      if (catalog::filter_of(name).type == "text") names.emplace_back(name);
    return names;
  };
  const char* const values[] = {"' or true --",         "'; drop table holdfast.event cascade; --",
                                "\\' or true --",       "\\",
                                "%s %L %I %1$s %",      "$1",
                                "$$ or true $$",        "'') or ('' = '",
                                "}'::text[] or true--", "E'\\x27'"};
  for (const auto& list : catalog::lists())
    for (const auto& filter : words(list))
      for (const std::string value : values) {
        CAPTURE(list.name);
        CAPTURE(filter);
        CAPTURE(value);
        CHECK(library.count(of(std::string(list.name)).by(filter, value)) == 0);
      }
  std::vector<store::Seed> tagged;
  for (const char* value : values) {
    tagged.push_back(Stage::seed("tagged" + std::to_string(tagged.size())));
    tagged.back().tags = {value};
  }
  Stage stage;
  stage.start(tagged);
  for (const char* value : values) {
    CAPTURE(value);
    CHECK(catalog::list(stage.connection, of("snapshots").by("tag", value)).size() == 1);
  }
}

TEST_CASE("an id is found whole, without dashes, in capitals, by its head and by its tail") {
  Library library;
  for (const char* text : {"11112222-3333-7444-8555-666677778888", "11112222333374448555666677778888", "1111",
                           "11112222-3", "8888", "66667777-8888", "1111222233337444855566667777888"}) {
    CAPTURE(text);
    const auto found = store::find(library.connection, text);
    CHECK(found.kind == "crawl");
    CHECK(found.id == library.crawl);
    CHECK(found.crawl_id == library.crawl);
  }
  const auto snapshot = store::find(library.connection, library.done.lease.snapshot_id);
  CHECK(snapshot.kind == "snapshot");
  CHECK(snapshot.crawl_id == library.crawl);
  CHECK(store::find(library.connection, library.done.lease.snapshot_id.substr(24)).id ==
        library.done.lease.snapshot_id);
  CHECK(store::find(library.connection, library.worker_id).kind == "process");
  library.run("insert into holdfast.crawl (id) values ('ABCDEFab-3333-7444-8555-0000deadbeef')");
  CHECK(store::find(library.connection, "ABCDEFAB").id == "abcdefab-3333-7444-8555-0000deadbeef");
}

TEST_CASE("an id that is ambiguous, too short, unknown or nonsense is refused with a sentence") {
  Library library;
  library.run("insert into holdfast.crawl (id) values ('11112222-3333-7444-8555-999999999999')");
  CHECK_THROWS_AS(store::find(library.connection, "11112222"), base::Error);
  try {
    store::find(library.connection, "11112222");
  } catch (const base::Error& error) {
    CHECK(std::string(error.what()).find("short for more than one") != std::string::npos);
    CHECK(error.error_class() == base::ErrorClass::refused);
  }
  for (const char* text :
       {"111", "", "dddddddd", "----", "%%%%", "zzzz", "1111 2222", "11112222-3333-7444-8555-6666777788880",
        "00000000-0000-7000-8000-000000000000", "'; drop table x"}) {
    CAPTURE(text);
    CHECK(refusal([&] { store::find(library.connection, text); }) == "refused");
  }
}

TEST_CASE("every list can be read without filters and respects its limit") {
  Library library;
  const std::vector<std::pair<std::string, std::size_t>> expected = {{"crawls", 2},   {"snapshots", 3}, {"results", 2},
                                                                     {"queue", 2},    {"running", 1},   {"workers", 2},
                                                                     {"failures", 1}, {"hosts", 2}};
  for (const auto& [view, rows] : expected) {
    CAPTURE(view);
    CHECK(library.count(of(view)) == rows);
    auto limited = of(view);
    limited.limit = 1;
    CHECK(library.count(limited) == 1);
  }
  CHECK(library.count(of("events")) > 5);
  const auto queue = catalog::list(library.connection, of("queue")); // by retry_at: a lease ends later than what is due
  CHECK(queue[0].text("status") + " " + queue[1].text("status") == "queued started");
}

TEST_CASE("each filter of each list keeps what fits and nothing else") {
  Library library;
  const std::string nowhere = "00000000-0000-7000-8000-000000000000";
  for (const char* view : {"crawls", "snapshots", "results", "queue", "running", "events", "failures"}) {
    CAPTURE(view);
    auto query = of(view);
    query.by("crawl", library.crawl);
    CHECK(library.count(query) >= 1);
    query.by("crawl", nowhere);
    CHECK(library.count(query) == 0);
  }
  for (const char* view : {"snapshots", "results", "events", "failures"}) {
    CAPTURE(view);
    auto query = of(view);
    query.by("snapshot", library.done.lease.snapshot_id);
    CHECK(library.count(query) >= 1);
    query.by("snapshot", nowhere);
    CHECK(library.count(query) == 0);
  }
  for (const char* view : {"queue", "running"}) {
    CAPTURE(view);
    auto query = of(view);
    query.by("snapshot", library.held.lease.snapshot_id);
    CHECK(library.count(query) == 1);
    query.by("snapshot", library.done.lease.snapshot_id);
    CHECK(library.count(query) == 0);
  }
  const std::vector<std::tuple<std::string, std::string, std::size_t>> by_status = {
      {"crawls", "queued", 1},     {"crawls", "started", 1},  {"snapshots", "sealed", 1}, {"snapshots", "queued", 1},
      {"snapshots", "started", 1}, {"results", "failed", 1},  {"results", "started", 1},  {"queue", "queued", 1},
      {"queue", "started", 1},     {"workers", "running", 1}, {"workers", "exited", 1},   {"snapshots", "nonsense", 0}};
  for (const auto& [view, status, rows] : by_status) {
    CAPTURE(view);
    CAPTURE(status);
    auto query = of(view);
    query.by("status", status);
    CHECK(library.count(query) == rows);
  }
  const std::vector<std::tuple<std::string, std::string, std::size_t>> by_url = {
      {"crawls", "ALPHA", 1}, {"snapshots", "alpha", 1}, {"snapshots", "site.test", 3}, {"results", "alpha", 1},
      {"queue", "gamma", 1},  {"running", "BETA", 1},    {"failures", "alpha", 1},      {"failures", "beta", 0},
      {"hosts", "OTHER", 1},  {"snapshots", "%", 0}};
  for (const auto& [view, url, rows] : by_url) {
    CAPTURE(view);
    CAPTURE(url);
    auto query = of(view);
    query.by("url", url);
    CHECK(library.count(query) == rows);
  }
  const std::vector<std::tuple<std::string, std::string, std::size_t>> by_tag = {{"crawls", "news", 1},
                                                                                 {"crawls", "special", 0},
                                                                                 {"snapshots", "special", 1},
                                                                                 {"snapshots", "news", 3},
                                                                                 {"snapshots", "new", 0}};
  for (const auto& [view, tag, rows] : by_tag) {
    CAPTURE(view);
    CAPTURE(tag);
    auto query = of(view);
    query.by("tag", tag);
    CHECK(library.count(query) == rows);
  }
  auto both = of("snapshots");
  both.by("tag", "news");
  both.by("status", "sealed");
  both.by("crawl", library.crawl);
  CHECK(library.count(both) == 1);
}

TEST_CASE("a list that is unknown, or a filter that a list does not know, is an error of usage") {
  Library library;
  CHECK(refusal([&] { library.count(of("v_crawl")); }) == "usage");
  CHECK(refusal([&] { library.count(of("v_crawl; drop table x")); }) == "usage");
  auto query = of("workers");
  query.by("tag", "news");
  CHECK(refusal([&] { library.count(query); }) == "usage");
  query = of("hosts");
  query.by("status", "running");
  CHECK(refusal([&] { library.count(query); }) == "usage");
}

TEST_CASE("every view can be read") {
  Library library;
  const auto views =
      library.connection.call("select table_name as name from information_schema.views where table_schema = "
                              "'holdfast' order by 1");
  CHECK(views.size() >= 9);
  for (std::size_t i = 0; i < views.size(); ++i) {
    CAPTURE(views[i].text("name"));
    CHECK(refusal([&] { library.run("select * from holdfast." + views[i].text("name") + " limit 100"); }) == "");
  }
}

TEST_CASE("pages are found by their state, with the time at which each is due") {
  Stage stage;
  const auto worker = stage.worker();
  stage.start(stage.seeds(1, 5));
  const auto page = [&](int number) { // the one that is claimed next
    const auto claim = stage.claim(worker);
    CHECK(claim.url == Stage::seed(std::to_string(number)).url);
    return claim;
  };
  stage.seal(worker, page(1));
  stage.release(worker, page(2), 1h);
  const auto paused = page(3);
  stage.release(worker, paused);
  REQUIRE(stage.command("pauseSnapshot", paused.lease.snapshot_id));
  page(4);
  const auto found = [&](const std::string& condition) {
    return stage.value("select string_agg(right(url, 1), '' order by url) from holdfast.v_snapshot where " + condition);
  };
  CHECK(found("status = 'sealed'") == "1");
  CHECK(found("status = 'started'") == "4");
  CHECK(found("status = 'paused' and retry_at = holdfast.retry_at_max()") == "3");
  CHECK(found("status = 'queued' and retry_at <= clock_timestamp()") == "5");
  CHECK(found("status = 'queued' and retry_at > clock_timestamp() + interval '50 minutes'") == "2");
  CHECK(found("status = 'sealed' and retry_at is not null") == "");
  CHECK(stage.value("select string_agg(state, ', ' order by url) from holdfast.v_queue where state like 'wait%'") !=
        "");
  CHECK(stage.value("select status from holdfast.v_crawl") == "started");
}

TEST_CASE("a page of a paused crawl is paused, in lists, counts and in itself") {
  Stage stage;
  const auto worker = stage.worker();
  const auto crawl = stage.start(stage.seeds(1, 4));
  stage.seal(worker, stage.claim(worker));
  const auto alone = stage.claim(worker);
  stage.release(worker, alone);
  REQUIRE(stage.command("pauseSnapshot", alone.lease.snapshot_id));
  stage.claim(worker);
  const auto counts = [&] {
    const auto counted =
        stage.value("select string_agg(status || ' ' || snapshots, ', ' order by status) from holdfast.v_state");
    CHECK(counted == stage.value("select string_agg(status || ' ' || n, ', ' order by status) from (select x.status, "
                                 "count(v.id) as n from (values ('queued'), ('started'), ('paused'), ('sealed')) "
                                 "x(status) left join holdfast.v_snapshot v using (status) group by 1) y"));
    for (const std::string status : {"queued", "started", "paused"})
      CHECK(stage.value("select string_agg(id::text, ',' order by id) from holdfast.list_snapshots(null, null, $1, "
                        "null, null, 10)",
                        pg::Params::of(status)) ==
            stage.value("select string_agg(id::text, ',' order by id) from holdfast.list_queue(null, null, $1, null, "
                        "10)",
                        pg::Params::of(status)));
    return counted;
  };
  CHECK(counts() == "paused 1, queued 1, sealed 1, started 1");
  stage.run("select holdfast.crawl_pause($1::uuid, 'me', 'later')", pg::Params::of(crawl));
  CHECK(counts() == "paused 3, queued 0, sealed 1, started 0");
  const std::string paused = " from holdfast.v_snapshot where status = 'paused' and id <> '" + alone.lease.snapshot_id;
  CHECK(stage.value("select string_agg(distinct reason, '/')" + paused + "'") == "its crawl is paused by me: later");
  CHECK(stage.value("select string_agg(distinct retry_at::date::text, '/')" + paused + "'") == "9999-01-01");
  stage.run("select holdfast.crawl_resume($1::uuid, 'me', '')", pg::Params::of(crawl));
  CHECK(counts() == "paused 1, queued 2, sealed 1, started 0");
}

TEST_CASE("an event is recorded for every change of state, with who and why") {
  Library library;
  auto query = of("events");
  query.by("snapshot", library.done.lease.snapshot_id);
  const auto events = catalog::list(library.connection, query);
  REQUIRE(events.size() == 2);
  CHECK(events[0].text("event") == "seal");
  CHECK(events[0].text("from_state") == "started");
  CHECK(events[0].text("to_state") == "sealed");
  CHECK(events[0].text("process") == "reader");
  CHECK(events[1].text("event") == "start");
  query.by("snapshot", library.crawl);
  const auto of_crawl = catalog::list(library.connection, query);
  REQUIRE(of_crawl.size() == 2);
  CHECK(of_crawl[0].text("event") == "start");
  CHECK(of_crawl[1].text("event") == "add");
}
