// The index of WARC files: written with the seal, read by key and time, gone with the snapshot.
#include "lib/store/call.hpp"
#include "lib/store/capture.hpp"
#include "lib/store/runner.hpp"
#include "lib/store/schema.hpp"
#include "tests/store/stage.hpp"

#include <doctest/doctest.h>

using namespace holdfast;
using namespace holdfast::test;

namespace {

// One capture of a page at that time, as JSON.
std::string capture(const std::string& at, int offset = 0, const std::string& key = "test,site)/1") {
  return R"({"file": "p/a.warc.gz", "record_offset": )" + std::to_string(offset) +
         R"(, "record_length": 10, "url_key": ")" + key + R"(", "at": ")" + at +
         R"(", "url": "https://site.test/1", "status": 200, "mime": "text/html", "digest": "sha1:X"})";
}

std::string times(const std::vector<store::Capture>& captures) {
  std::string text;
  for (const auto& one : captures)
    text += one.date.substr(0, 4) + " ";
  return text;
}

} // namespace

TEST_CASE("captures are sealed with their page, found by key and time, and removed with it") {
  Stage stage;
  stage.start({stage.seed("1"), stage.seed("2")});
  const auto worker = stage.worker();
  const auto claim = stage.claim(worker);
  auto page = stage.sealed(claim);
  page.captures = "[" + capture("2024-01-01T00:00:00Z") + "," + capture("2026-01-01T00:00:00Z", 10) + "," +
                  capture("2025-01-01T00:00:00Z", 20) + "," + capture("2025-06-01T00:00:00Z", 30, "test,site)/12") +
                  "]";
  CHECK(stage.finish(worker, page).what == store::PageAnswer::What::sealed);
  CHECK(stage.finish(worker, page).what == store::PageAnswer::What::sealed); // repeated

  store::CaptureQuery query;
  query.first = "test,site)/1";
  query.end = "test,site)/1!";
  const auto found = store::captures(stage.connection, query);
  REQUIRE(times(found) == "2024 2025 2026 ");
  CHECK(found[0].file == page.directory + "/p/a.warc.gz");
  CHECK(found[1].date == "2025-01-01T00:00:00Z");
  CHECK(found[1].offset == 20);
  CHECK(found[1].status == 200);
  query.newest = true;
  query.limit = 2;
  CHECK(times(store::captures(stage.connection, query)) == "2026 2025 ");
  query.to = "2025-12-31";
  CHECK(times(store::captures(stage.connection, query)) == "2025 2024 ");
  const auto closest = [&](const char* at, std::int64_t limit) {
    store::CaptureQuery any;
    any.limit = limit;
    return times(store::captures_closest(stage.connection, "test,site)/1", at, any));
  };
  CHECK(closest("2025-02-01", 10) == "2025 2026 2024 ");
  CHECK(closest("2023-02-01", 1) == "2024 ");
  CHECK(store::captures_of(stage.connection, {claim.lease.snapshot_id}).size() == 4);
  const auto exported = [&](const store::ExportQuery& asked) {
    std::size_t count = 0;
    store::each_exported(stage.connection, asked, 1, [&](const auto& batch) { count += batch.size(); });
    return count;
  };
  store::ExportQuery asked;
  CHECK(exported(asked) == 1);
  asked.ids = std::vector{claim.lease.crawl_id};
  CHECK(exported(asked) == 1);
  asked.ids = std::vector{claim.lease.snapshot_id, claim.lease.crawl_id};
  CHECK(exported(asked) == 1);
  asked.host = "other.test";
  CHECK(exported(asked) == 0);

  stage.seal(worker, stage.claim(worker));
  stage.run("select holdfast.snapshot_remove($1::uuid, 'test')", pg::Params::of(claim.lease.snapshot_id));
  CHECK(stage.value("select count(*) from holdfast.v_capture") == "0");
}

TEST_CASE("what others refer to is kept when its snapshot is removed") {
  Stage stage;
  stage.start({stage.seed("1"), stage.seed("2"), stage.seed("3"), stage.seed("4")});
  const auto worker = stage.worker();
  std::vector<std::string> snapshots, directories;
  const auto add = [&](const std::string& mime) {
    const auto claim = stage.claim(worker);
    auto page = stage.sealed(claim);
    page.captures = "[" + capture("2024-01-01T00:00:00Z") + "]";
    page.captures.replace(page.captures.find("text/html"), 9, mime);
    REQUIRE(stage.finish(worker, page).what == store::PageAnswer::What::sealed);
    snapshots.push_back(claim.lease.snapshot_id);
    directories.push_back(page.directory.substr(0, page.directory.rfind('/')));
  };
  add("text/html");
  add("warc/revisit");
  add("warc/revisit");
  stage.seal(worker, stage.claim(worker));
  CHECK(store::originals_of(stage.connection, snapshots[1]).at(0).snapshot_id == snapshots[0]);
  CHECK(store::originals_of(stage.connection, snapshots[0]).empty());
  const auto remove = [&](const std::string& snapshot) {
    stage.run("select holdfast.snapshot_remove($1::uuid, 'test')", pg::Params::of(snapshot));
  };
  remove(snapshots[0]);
  const auto moves = store::captures_to_move(stage.connection, directories);
  REQUIRE(moves.size() == 1);
  CHECK(moves[0].source_file.starts_with(directories[0]));
  CHECK(store::originals_of(stage.connection, snapshots[1]).at(0).file == moves[0].source_file);
  store::call(stage.connection, "captures_moved", moves[0].snapshot_id, moves[0].position);
  CHECK(store::captures_to_move(stage.connection, directories).empty());
  CHECK(store::originals_of(stage.connection, snapshots[1]).at(0).file == moves[0].file);
  remove(snapshots[1]);
  CHECK(stage.value("select count(*) from holdfast.kept_capture") == "1");
  remove(snapshots[2]);
  CHECK(stage.value("select count(*) from holdfast.v_capture") == "0");
  CHECK(stage.value("select count(*) from holdfast.purge where directory like 'kept/%'") == "1");
}

namespace {

// A crawl of one page whose file has this one record, with the time of 2024 if it has the payload. Returns the page.
store::Page crawl_with(Stage& stage, const std::string& worker, const std::string& mime,
                       const std::vector<store::Page>& originals = {}, const std::string& id = "") {
  store::NewCrawl crawl;
  if (!id.empty()) crawl.id = id;
  stage.start({stage.seed("1")}, crawl);
  const auto claim = stage.claim(worker);
  auto page = stage.sealed(claim);
  page.captures = "[" + capture("2024-01-01T00:00:00Z") + "]";
  page.captures.replace(page.captures.find("text/html"), 9, mime);
  for (const auto& original : originals)
    page.originals.emplace(original.lease.crawl_id, original.lease.snapshot_id);
  if (!originals.empty()) page.facts["bytes_saved"] = "7";
  return page;
}

void remove_crawl(Stage& stage, const store::Page& page) {
  stage.run("select holdfast.crawl_remove($1::uuid, 'test')", pg::Params::of(page.lease.crawl_id));
}

std::size_t stored(Stage& stage, const std::optional<std::string>& crawl = {}, std::uint64_t least = 1,
                   const std::string& digest = "sha1:X") {
  return store::captures_stored(stage.connection, {{"test,site)/1", digest}}, crawl, least).size();
}

} // namespace

TEST_CASE("sealed payloads are found, in all crawls or in one") {
  Stage stage;
  const auto worker = stage.worker();
  const auto first = crawl_with(stage, worker, "text/html");
  CHECK(stored(stage) == 0); // not sealed yet
  CHECK(stage.finish(worker, first).crawl_sealed);
  REQUIRE(stored(stage) == 1);
  const auto found = store::captures_stored(stage.connection, {{"a", "b"}, {"test,site)/1", "sha1:X"}}, {}, 1).at(0);
  CHECK(found.file == first.directory + "/p/a.warc.gz");
  CHECK(found.crawl_id == first.lease.crawl_id);
  CHECK(stored(stage, first.lease.crawl_id) == 1);
  CHECK(stored(stage, first.lease.snapshot_id) == 0);
  CHECK(stored(stage, {}, 11) == 0);
  CHECK(stored(stage, {}, 1, "sha1:Y") == 0);
  const auto second = crawl_with(stage, worker, "warc/revisit", {first});
  CHECK(stage.finish(worker, second).crawl_sealed);
  CHECK(stored(stage, second.lease.crawl_id) == 0);
  CHECK(stage.value("select bytes_saved from holdfast.v_status") == "7");
}

TEST_CASE("what other crawls refer to is kept when its crawl is removed") {
  Stage stage;
  const auto worker = stage.worker();
  const auto first = crawl_with(stage, worker, "text/html");
  stage.finish(worker, first);
  const auto second = crawl_with(stage, worker, "warc/revisit", {first});
  stage.finish(worker, second);
  const auto third = crawl_with(stage, worker, "warc/revisit", {first});
  stage.finish(worker, third);
  CHECK(store::originals_of(stage.connection, second.lease.snapshot_id).at(0).snapshot_id == first.lease.snapshot_id);
  CHECK(store::revisits_broken(stage.connection, second.lease.snapshot_id).empty());
  remove_crawl(stage, first);
  CHECK(stored(stage) == 0); // nothing new refers to what is kept
  CHECK(store::originals_of(stage.connection, second.lease.snapshot_id).at(0).snapshot_id == first.lease.snapshot_id);
  CHECK(store::revisits_broken(stage.connection, second.lease.snapshot_id).empty());
  CHECK(store::captures_to_move(stage.connection, {first.directory.substr(0, first.directory.rfind('/'))}).size() == 1);
  remove_crawl(stage, second);
  CHECK(stage.value("select count(*) from holdfast.kept_capture") == "1");
  remove_crawl(stage, third);
  CHECK(stage.value("select count(*) from holdfast.v_capture") == "0");
  CHECK(stage.value("select count(*) from holdfast.purge where directory like 'kept/%'") == "1");
}

TEST_CASE("what others refer to is found at any time, while its month is removed") {
  Stage stage;
  const auto worker = stage.worker();
  const auto first = crawl_with(stage, worker, "text/html", {},
                                stage.value("select holdfast.first_id(holdfast.month_of(clock_timestamp(), 1))"));
  stage.finish(worker, first);
  const auto second = crawl_with(stage, worker, "warc/revisit", {first});
  stage.finish(worker, second);
  const auto late = crawl_with(stage, worker, "warc/revisit", {first});
  const auto original = [&] {
    return store::originals_of(stage.connection, second.lease.snapshot_id).at(0).snapshot_id;
  };
  stage.run("select holdfast.partition_remove((holdfast.month_of(clock_timestamp(), 1) at time zone 'UTC')::date, "
            "'ann')");
  CHECK(stored(stage) == 0); // nothing new refers to it
  CHECK(refusal([&] { stage.finish(worker, late); }) == pg::kRefused);
  CHECK(original() == first.lease.snapshot_id);
  store::call(stage.connection, "purge_fill");
  const auto directories = store::call_list(stage.connection, "purge_list", 10);
  CHECK(store::captures_to_move(stage.connection, directories).size() == 1);
  CHECK(original() == first.lease.snapshot_id);
  CHECK(store::revisits_broken(stage.connection, second.lease.snapshot_id).empty());
}

TEST_CASE("a payload that another snapshot holds too is not kept twice") {
  Stage stage;
  const auto worker = stage.worker();
  const auto first = crawl_with(stage, worker, "text/html"), second = crawl_with(stage, worker, "text/html");
  stage.finish(worker, first);
  stage.finish(worker, second);
  const auto third = crawl_with(stage, worker, "warc/revisit", {first});
  stage.finish(worker, third);
  remove_crawl(stage, first);
  CHECK(stage.value("select count(*) from holdfast.kept_capture") == "0");
  CHECK(store::originals_of(stage.connection, third.lease.snapshot_id).at(0).snapshot_id == second.lease.snapshot_id);
  stage.run("delete from holdfast.kept_capture");
  stage.force("delete from holdfast.capture where snapshot_id = '" + second.lease.snapshot_id + "'");
  CHECK(store::revisits_broken(stage.connection, third.lease.snapshot_id).size() == 1);
}

TEST_CASE("a revisit record may refer to a record of another URL") {
  Stage stage;
  const auto worker = stage.worker();
  const auto first = crawl_with(stage, worker, "text/html");
  auto second = crawl_with(stage, worker, "warc/revisit");
  const std::string key = "\"url_key\": \"test,site)/1\"";
  second.captures.replace(second.captures.find(key), key.size(),
                          R"("url_key": "test,site)/2", "refers_to": "test,site)/1")");
  stage.finish(worker, second);
  CHECK(store::revisits_broken(stage.connection, second.lease.snapshot_id).size() == 1);
  stage.finish(worker, first);
  CHECK(store::revisits_broken(stage.connection, second.lease.snapshot_id).empty());
  CHECK(store::captures_of(stage.connection, {second.lease.snapshot_id}).at(0).refers_to == "test,site)/1");
  CHECK(store::originals_of(stage.connection, second.lease.snapshot_id).at(0).snapshot_id == first.lease.snapshot_id);
  remove_crawl(stage, first);
  CHECK(store::originals_of(stage.connection, second.lease.snapshot_id).at(0).snapshot_id == first.lease.snapshot_id);
  remove_crawl(stage, second);
  CHECK(stage.value("select count(*) from holdfast.v_capture") == "0");
}

TEST_CASE("a page that refers to what was removed meanwhile is refused") {
  Stage stage;
  const auto worker = stage.worker();
  const auto first = crawl_with(stage, worker, "text/html");
  stage.finish(worker, first);
  auto second = crawl_with(stage, worker, "warc/revisit", {first});
  remove_crawl(stage, first);
  CHECK(refusal([&] { stage.finish(worker, second); }) == "HF004");
  CHECK(stage.status(second.lease) == "started");
  second.originals.clear();
  CHECK(stage.finish(worker, second).what == store::PageAnswer::What::sealed);
}

TEST_CASE("a page that keeps no files has no captures") {
  Stage stage;
  store::NewCrawl crawl;
  crawl["max_bytes"] = 10;
  stage.start({stage.seed("1")}, crawl);
  const auto worker = stage.worker();
  auto page = stage.sealed(stage.claim(worker));
  page.captures = "[" + capture("2024-01-01T00:00:00Z") + "]";
  CHECK(stage.finish(worker, page).what == store::PageAnswer::What::cancelled);
  CHECK(stage.value("select count(*) from holdfast.v_capture") == "0");
}
