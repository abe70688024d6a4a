// What is said of a page that could not be had, or not whole.

#include "tests/worker/stage.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <map>

using namespace holdfast;
using namespace holdfast::test;

namespace {

constexpr const char* kTrueResults = "select plugin, status, error from holdfast.v_result order by plugin";
constexpr const char* kAboutPages = R"({"captures_page": false})";

std::string response(int status) {
  return "echo '{\"type\":\"Response\",\"url\":\"x\",\"status\":" + std::to_string(status) +
         ",\"mime\":\"Text/HTML; charset=utf-8\"}'\n";
}

constexpr const char* kSucceeded = "echo x >x.txt; echo '{\"type\":\"ArchiveResult\",\"status\":\"succeeded\"}'";
constexpr const char* kUnreachable = "echo '{\"type\":\"Unreachable\",\"reason\":\"site.test: connection refused\"}'\n"
                                     "echo 'connection refused' >&2; exit 1";

} // namespace

TEST_CASE("what works on the output of others does not make a page archived") {
  WorkerStage stage;
  stage.hook("a_fetch", "on_Snapshot__10_fetch.sh", "echo log >fetch.txt; echo 'no answer' >&2; exit 1");
  stage.hook("b_sums", "on_Snapshot__20_sums.sh", kSucceeded);
  stage.config("b_sums", kAboutPages);
  stage.hook("hashes", "on_Snapshot__30_hashes.sh", kSucceeded); // ArchiveBox's, which does not say so
  stage.add({WorkerStage::url("page")});
  stage.work();
  CHECK(stage.table(kTrueResults) == "a_fetch|failed|no answer (exit 1)\nb_sums|succeeded|\nhashes|succeeded|");
  CHECK(stage.table("select outcome, reason, http_status from holdfast.v_snapshot") ==
        "failed|no plugin captured the page: no answer (exit 1)|");
  CHECK(stage.table("select outcome, failed, partial from holdfast.v_crawl") == "failed|1|0");
  stage.check_disk_and_rows(); // what there is is kept
}

TEST_CASE("once a page cannot be had, no hook tries it again") {
  WorkerStage stage;
  stage.hook("a_headers", "on_Snapshot__10_headers.sh", kUnreachable);
  stage.hook("b_fetch", "on_Snapshot__20_fetch.sh", kSucceeded);
  stage.hook("c_late", "on_Snapshot__30_late.bg.sh", kSucceeded);
  stage.add({WorkerStage::url("page")});
  stage.work();
  CHECK(stage.table(kTrueResults) == "a_headers|failed|connection refused (exit 1)\n"
                                     "b_fetch|skipped|the page cannot be fetched: site.test: connection refused\n"
                                     "c_late|skipped|the page cannot be fetched: site.test: connection refused");
  CHECK(stage.table("select outcome, reason from holdfast.v_snapshot") == "failed|site.test: connection refused");
  const auto why = stage.value("select w.reason from holdfast.snapshot s, holdfast.why(s.id) w");
  CHECK_MESSAGE(why.find("with outcome failed: site.test: connection refused") != std::string::npos, why);
}

TEST_CASE("a page that one hook has is not given up because another cannot reach it") {
  WorkerStage stage;
  stage.hook("a_fetch", "on_Snapshot__10_fetch.sh", response(200) + kSucceeded);
  stage.hook("b_browser", "on_Snapshot__20_browser.sh", kUnreachable);
  stage.hook("c_more", "on_Snapshot__30_more.sh", kSucceeded);
  stage.add({WorkerStage::url("page")});
  stage.work();
  CHECK(stage.table("select plugin, status from holdfast.v_result order by plugin") ==
        "a_fetch|succeeded\nb_browser|failed\nc_more|succeeded");
  CHECK(stage.table("select outcome, http_status, mime from holdfast.v_snapshot") == "partial|200|text/html");
}

TEST_CASE("facts of hooks reach the row, the files and why; a record that nothing reads is named in the result") {
  WorkerStage stage;
  stage.hook("a_fetch", "on_Snapshot__10_fetch.sh",
             response(200) + R"(echo '{"type":"Facts","theme":"dark","cut":["load"],"pages":3}')" + "\n" + kSucceeded);
  stage.hook("b_more", "on_Snapshot__20_more.sh",
             R"(echo '{"type":"Facts","theme":"light"}'; echo '{"type":"Fact","theme":"none"}'; echo prose)"
             "\n" +
                 std::string(kSucceeded));
  stage.hook("c_forged", "on_Snapshot__30_forged.sh",
             R"(echo '{"type":"Facts","http_status":500,"pages":4}')"
             "\n" +
                 std::string(kSucceeded));
  stage.add({WorkerStage::url("page")});
  stage.work();
  CHECK(stage.table("select plugin, status, error from holdfast.v_result order by plugin") ==
        "a_fetch|succeeded|\n"
        "b_more|succeeded|1 record that nothing reads (Fact)\n"
        "c_forged|succeeded|1 record that nothing reads (Facts)");
  const auto facts = nlohmann::json::parse(stage.value("select facts from holdfast.v_snapshot"));
  for (const auto& [name, value] : std::map<std::string, nlohmann::json>{
           {"theme", "light"}, {"cut", {"load"}}, {"pages", 3}, {"http_status", 200}, {"mime", "text/html"}})
    CHECK_MESSAGE(facts.value(name, nlohmann::json()) == value, name);
  CHECK(stage.value("select w.facts ->> 'theme' from holdfast.snapshot s, holdfast.why(s.id) w") == "light");
  const auto index = read_file(stage.published(WorkerStage::url("page")) / "index.jsonl");
  CHECK(nlohmann::json::parse(index.substr(0, index.find('\n')))["facts"] == facts);
  stage.check_disk_and_rows();
}

TEST_CASE("an HTTP error is a failed page, shown with its status, kept, and tried again") {
  WorkerStage stage;
  stage.hook("fetch", "on_Snapshot__10_fetch.sh",
             "[[ -e $gates/mended ]] && {\n" + response(200) + kSucceeded + "\n} || {\n" + response(404) + kSucceeded +
                 "\n}");
  stage.add({WorkerStage::url("page")});
  stage.work();
  CHECK(stage.table("select outcome, reason, http_status, mime from holdfast.v_snapshot") ==
        "failed|HTTP 404|404|text/html");
  CHECK(stage.value("select outcome from holdfast.v_crawl") == "failed");
  CHECK(stage.number("select w.facts ->> 'http_status' from holdfast.snapshot s, holdfast.why(s.id) w") == 404);
  CHECK(stage.number("select value from holdfast.metrics() where name = 'holdfast_recent_responses' and labels ->> "
                     "'class' = '4xx'") == 1);
  const auto directory = stage.published(WorkerStage::url("page"));
  CHECK(read_file(directory / "fetch/x.txt") == "x\n");
  const auto index = read_file(directory / "index.jsonl");
  const auto line = nlohmann::json::parse(index.substr(0, index.find('\n')));
  CHECK(line["facts"]["http_status"] == 404);
  CHECK(line["facts"]["mime"] == "text/html");
  CHECK(read_file(directory / "index.html").find("HTTP 404") != std::string::npos);
  stage.check_disk_and_rows();

  stage.open("mended");
  store::NewCrawl again;
  again["only_new"] = true;
  stage.add({WorkerStage::url("page")}, again);
  stage.work();
  CHECK(stage.table("select outcome, http_status from holdfast.v_snapshot order by created_at") ==
        "failed|404\nsucceeded|200");
}
