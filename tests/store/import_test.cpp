// Pages that another program has archived: stored once, whatever is repeated, and like own ones afterwards.
#include "lib/store/capture.hpp"
#include "lib/store/import.hpp"
#include "tests/store/stage.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

using namespace holdfast;
using namespace holdfast::test;
using store::ImportPlace;

namespace {

const auto kAdded = std::chrono::system_clock::time_point(std::chrono::milliseconds(1'600'000'000'123));

std::string page_id(const std::string& key) { return store::import_id({"test", "", key}, kAdded); }

std::string directory_of(const std::string& id) { return "2020/09/site.test/" + id; }

nlohmann::json imported(const std::string& key, const std::string& crawl, const std::string& outcome = "succeeded") {
  const auto id = page_id(key);
  return {{"id", id},
          {"crawl_id", page_id(crawl)},
          {"url", "https://site.test/" + key},
          {"title", "Title of " + key},
          {"outcome", outcome},
          {"depth", 0},
          {"fence", 1},
          {"tags", {"one", "two"}},
          {"started_at", "2020-09-13T12:30:00Z"},
          {"ended_at", "2020-09-13T12:31:00Z"},
          {"worker", "ArchiveBox"},
          {"directory", directory_of(id) + "/a1"},
          {"manifest", std::string(64, 'a')},
          {"bytes", 100},
          {"files", 2},
          {"bookmarked_at", "2019-01-02T03:04:05Z"},
          {"source", "test:" + key},
          {"crawl", {{"label", "From elsewhere"}, {"tags", {"one"}}, {"created_at", "2020-09-13T12:00:00Z"}}},
          {"results",
           {{{"plugin", "wget"}, {"hook_name", "wget"}, {"status", "succeeded"}, {"ended_at", "2020-09-13T12:30:30Z"}},
            {{"plugin", "pdf"}, {"hook_name", "pdf"}, {"status", "failed"}, {"error", "no browser"}}}},
          {"captures",
           {{{"file", "wget/warc/a.warc.gz"},
             {"record_offset", 0},
             {"record_length", 10},
             {"url_key", "test,site)/" + key},
             {"at", "2020-09-13T12:30:00Z"},
             {"url", "https://site.test/" + key},
             {"mime", "text/html"},
             {"digest", "sha1:X"}}}}};
}

store::ImportPage place(const std::string& key, const std::string& crawl) {
  return {page_id(key), page_id(crawl), "https://site.test/" + key, directory_of(page_id(key))};
}

using Places = std::vector<ImportPlace>;

} // namespace

TEST_CASE("the id of an imported page is made from its name and time") {
  const auto id = page_id("a");
  CHECK(id == page_id("a"));
  CHECK(id != page_id("b"));
  CHECK(id != store::import_id({"test", "a", ""}, kAdded));
  CHECK(id != store::import_id({"other", "", "a"}, kAdded));
  CHECK(id.size() == 36);
  CHECK(id.substr(0, 15) == "0174876e-807b-7"); // 1,600,000,000,123 ms, version 7
  CHECK(std::string("89ab").find(id[19]) != std::string::npos);
  CHECK(store::import_id({}, std::chrono::system_clock::time_point(-std::chrono::hours(24))).substr(0, 8) ==
        "00000000");
}

TEST_CASE("imported pages are stored once, with results, captures and counters") {
  Stage stage;
  auto& connection = stage.connection;
  const auto pages = nlohmann::json::array({imported("b", "first", "partial"), imported("a", "first")});
  CHECK(store::import_check(connection, {place("a", "first"), place("b", "first")}) ==
        Places{ImportPlace::fresh, ImportPlace::fresh});
  CHECK(store::import_pages(connection, pages) == Places{ImportPlace::fresh, ImportPlace::fresh});
  CHECK(store::import_pages(connection, pages) == Places{ImportPlace::known, ImportPlace::known}); // repeated
  const auto row = stage.row("select * from holdfast.v_snapshot where url = 'https://site.test/a'");
  CHECK(row.text("title") == "Title of a");
  CHECK(row.text("source") == "test:a");
  CHECK(row.text("tags") == "{one,two}");
  CHECK(stage.value("select (bookmarked_at at time zone 'UTC')::text || ' ' || (created_at at time zone 'UTC')::text "
                    "from holdfast.v_snapshot where url = 'https://site.test/a'") ==
        "2019-01-02 03:04:05 2020-09-13 12:26:40.123");
  CHECK(stage.value("select label || ' ' || outcome || ' ' || snapshots_total || ' ' || snapshots_succeeded || ' ' || "
                    "bytes from holdfast.crawl") == "From elsewhere partial 2 1 200");
  CHECK(stage.value("select (ended_at at time zone 'UTC')::text from holdfast.archive_result where plugin = 'wget' "
                    "limit 1") == "2020-09-13 12:30:30");
  CHECK(stage.value("select count(*) from holdfast.capture") == "2");
  CHECK(stage.value("select count(*) from holdfast.crawl_page_stale") == "1");
}

TEST_CASE("a crawl has one imported page of a URL, and a removed page stays away until its files are gone") {
  Stage stage;
  auto& connection = stage.connection;
  store::import_pages(connection, nlohmann::json::array({imported("a", "first")}));
  auto again = imported("a", "first");
  again["id"] = page_id("another a");
  again["directory"] = directory_of(page_id("another a")) + "/a1";
  CHECK(store::import_check(connection, {{page_id("another a"), page_id("first"), "https://site.test/a", "x"}}) ==
        Places{ImportPlace::taken});
  CHECK(store::import_pages(connection, nlohmann::json::array({again})) == Places{ImportPlace::taken});
  again["crawl_id"] = page_id("second");
  CHECK(store::import_pages(connection, nlohmann::json::array({again})) == Places{ImportPlace::fresh});

  stage.run("select holdfast.snapshot_remove($1::uuid, 'me')", pg::Params::of(page_id("a")));
  CHECK(store::import_check(connection, {place("a", "first")}) == Places{ImportPlace::removed});
  stage.run("delete from holdfast.purge");
  CHECK(store::import_check(connection, {place("a", "first")}) == Places{ImportPlace::fresh});
}

TEST_CASE("a batch with a page that breaks a rule stores nothing") {
  Stage stage;
  auto bad = imported("b", "first");
  bad["outcome"] = "wonderful";
  CHECK(refusal([&] {
          store::import_pages(stage.connection, nlohmann::json::array({imported("a", "first"), bad}));
        }) == "23514");
  bad = imported("b", "first");
  bad.erase("source");
  CHECK(refusal([&] { store::import_pages(stage.connection, nlohmann::json::array({bad})); }) == "HF004");
  CHECK(stage.value("select count(*) from holdfast.snapshot") == "0");
}
