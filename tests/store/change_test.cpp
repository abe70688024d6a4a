// Changes of pages, settled at the seal, and which captures without a change are kept.
#include "tests/store/stage.hpp"

#include <doctest/doctest.h>

using namespace holdfast;
using namespace holdfast::test;

namespace {

// Returns a capture of the one page that its worker has compared with `previous` (empty: with none).
store::Page compared(Stage& stage, const std::string& worker, const std::string& digest, const std::string& change,
                     const std::string& previous = "") {
  stage.start({stage.seed("1")});
  auto page = stage.sealed(stage.claim(worker));
  page.facts["change"] = '"' + change + '"';
  if (!previous.empty()) page.facts["change_from"] = '"' + previous + '"';
  page.fingerprint = R"({"persona": "", "kind": "file", "digest": ")" + digest + R"(", "body": "", "reuse": {})" +
                     (previous.empty() ? "" : R"(, "previous": ")" + previous + '"') + "}";
  return page;
}

std::string change_of(Stage& stage, const store::Page& page) {
  return stage.value("select concat_ws(' ', facts ->> 'change', facts ->> 'change_from') from holdfast.snapshot_sealed "
                     "where snapshot_id = $1::uuid",
                     pg::Params::of(page.lease.snapshot_id));
}

std::string latest(Stage& stage) { return stage.value("select snapshot_id from holdfast.fingerprint"); }

} // namespace

TEST_CASE("captures that are sealed out of order are compared with what was sealed before, and the later one stays") {
  Stage stage;
  const auto worker = stage.worker();
  const auto early = compared(stage, worker, "aa", "first"), alike = compared(stage, worker, "bb", "first"),
             late = compared(stage, worker, "bb", "first");
  const auto& last = late.lease.snapshot_id;
  CHECK(stage.finish(worker, late).what == store::PageAnswer::What::sealed);
  CHECK(stage.finish(worker, early).what == store::PageAnswer::What::sealed);
  CHECK(stage.finish(worker, alike).what == store::PageAnswer::What::sealed);
  CHECK(change_of(stage, late) == "first");
  CHECK(change_of(stage, early).empty()); // its successor is sealed: there is nothing to compare it with
  CHECK(change_of(stage, alike) == "same " + last);
  CHECK(latest(stage) == last);
}

TEST_CASE("two workers with the same URL at once: one finds the change, the other the same page") {
  Stage stage;
  const std::string one = stage.worker("one"), two = stage.worker("two");
  const auto first = compared(stage, one, "aa", "first");
  stage.finish(one, first);
  const auto& id = first.lease.snapshot_id;
  const auto change = compared(stage, one, "bb", "text", id), other = compared(stage, two, "bb", "text", id);
  CHECK(stage.finish(two, other).what == store::PageAnswer::What::sealed);
  CHECK(stage.finish(one, change).what == store::PageAnswer::What::sealed);
  CHECK(change_of(stage, other) == "text " + id);
  CHECK(change_of(stage, change) == "same " + other.lease.snapshot_id);
}

TEST_CASE("a predecessor that is removed while its successor is sealed") {
  Stage stage;
  const auto worker = stage.worker();
  const auto first = compared(stage, worker, "aa", "first");
  stage.finish(worker, first);
  const auto second = compared(stage, worker, "bb", "text", first.lease.snapshot_id);
  stage.run("select holdfast.crawl_remove($1::uuid, 'test')", pg::Params::of(first.lease.crawl_id));
  CHECK(latest(stage) == first.lease.snapshot_id); // goes with the last snapshot of the URL
  CHECK(stage.finish(worker, second).what == store::PageAnswer::What::sealed);
  CHECK(change_of(stage, second) == "text " + first.lease.snapshot_id); // what it was, though it cannot be shown
  CHECK(latest(stage) == second.lease.snapshot_id);
  CHECK(stage.value("select count(*) from holdfast.v_change") == "1");
}

namespace {

// Stores a sealed capture of a page: `at`: when its crawl was added.
void past(Stage& stage, const std::string& at, const std::string& change, const std::string& from = "",
          const std::string& sealed_at = "") {
  const auto id = "holdfast.first_id('" + at + "')", sealed = "'" + (sealed_at.empty() ? at : sealed_at) + "'";
  stage.force(
      "insert into holdfast.crawl (id, status, outcome, sealed_at, retry_at, created_at) values (" + id +
      ", 'sealed', 'succeeded', " + sealed + ", null, '" + at +
      "'); insert into holdfast.snapshot (id, crawl_id, url, url_hash) values (" + id + ", " + id +
      ", 'https://site.test/1', sha256('https://site.test/1'));"
      "insert into holdfast.snapshot_sealed (snapshot_id, crawl_id, outcome, fence, directory, manifest_sha256, "
      "bytes, facts, sealed_at) values (" +
      id + ", " + id + ", 'succeeded', 1, '2026/01/site.test/' || " + id + " || '/a1', 'x', 100, " +
      "jsonb_strip_nulls(jsonb_build_object('change', '" + change + "', 'change_from', " +
      (from.empty() ? "null" : "holdfast.first_id('" + from + "')") + ")), " + sealed + ")");
}

// Returns the captures that a rule removes, by the day and time of their crawls.
std::string spare(Stage& stage, const std::string& rule) {
  return stage.value("select string_agg(to_char(c.created_at at time zone 'UTC', 'MM-DD HH24:MI:SS'), ', ' "
                     "order by c.created_at) from holdfast.unchanged_spare('" +
                     rule + "') u join holdfast.crawl c on c.id = u.crawl_id");
}

} // namespace

TEST_CASE("of each period, the first capture is kept, whatever the time zone and the order of seals") {
  Stage stage;
  stage.broken_on_purpose = true;
  past(stage, "2026-01-01T00:00:00Z", "first"); // a Thursday, with which the weeks of Unix time begin
  past(stage, "2026-01-01T00:00:01Z", "same");
  past(stage, "2026-01-07T23:59:59Z", "same");
  past(stage, "2026-01-08T00:00:00Z", "same", "", "2026-03-01T00:00:00Z"); // sealed after all others
  past(stage, "2026-01-08T00:00:01Z", "same");
  past(stage, "2026-01-16T00:00:00Z", "text", "2026-01-08T00:00:01Z");
  past(stage, "2026-01-17T00:00:00Z", "same");
  past(stage, "2026-01-21T00:00:00Z", "same");
  past(stage, "2026-01-30T00:00:00Z", "gone", "2026-01-21T00:00:00Z");
  past(stage, "2026-03-28T23:30:00Z", "same"); // the clock of Berlin goes forward after 01:00 UTC
  past(stage, "2026-03-29T00:30:00Z", "same");
  past(stage, "2026-03-29T21:59:00Z", "same");
  past(stage, "2026-03-29T22:30:00Z", "same");
  past(stage, "2026-03-30T00:10:00Z", "same");
  const std::string week = "604800", day = "86400";
  for (const auto* zone : {"UTC", "Europe/Berlin", "Pacific/Kiritimati", "America/St_Johns"}) {
    CAPTURE(zone);
    stage.run("set time zone '" + std::string(zone) + "'");
    CHECK(spare(stage, R"({"after": 0, "every": )" + week + "}") ==
          "01-01 00:00:01, 01-07 23:59:59, 01-17 00:00:00, 03-29 00:30:00, 03-29 21:59:00, 03-29 22:30:00, "
          "03-30 00:10:00");
    CHECK(spare(stage, R"({"after": 0, "every": )" + day + "}") == "01-01 00:00:01, 03-29 21:59:00, 03-29 22:30:00");
  }
  // All that are older than that, but the sides of changes.
  const auto age = stage.value("select extract(epoch from clock_timestamp() - '2026-03-01T12:00:00Z')");
  CHECK(spare(stage, R"({"every": 0, "after": )" + age + "}") ==
        "01-01 00:00:01, 01-07 23:59:59, 01-08 00:00:00, 01-17 00:00:00");
  CHECK(spare(stage, R"({"every": 0})").empty());
}
