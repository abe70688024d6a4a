#include "lib/archive/attempt.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <regex>
#include <sstream>

using namespace holdfast::archive;

namespace {

ResultView make_result(const std::string& plugin, const std::string& status) {
  ResultView result;
  result.plugin = plugin;
  result.hook = "on_Snapshot__50_" + plugin + ".py";
  result.status = status;
  result.title = "Title of " + plugin;
  result.output = "output of " + plugin;
  result.wall_time = std::chrono::milliseconds(1250);
  if (status == "succeeded") result.files.push_back({plugin + "/main.txt", "text/plain", 10, std::string(64, '0')});
  if (status == "failed") {
    result.error = "error of " + plugin;
    result.log = "log of " + plugin;
  }
  return result;
}

SnapshotView sample_view() {
  SnapshotView view;
  view.id = "0198f7c2-5a10-7c33-9a5e-000000000001";
  view.url = "https://example.com/a?b=1&c=2";
  view.title = "Example";
  view.outcome = "partial";
  view.fence = 3;
  view.ended_at = "2026-08-01T09:14:22Z";
  view.worker = "attic-2";
  view.tags = {"one", "two"};
  for (const char* plugin : {"headers", "title", "wget"})
    view.results.push_back(make_result(plugin, "succeeded"));
  view.results.push_back(make_result("ytdlp", "failed"));
  view.results.push_back(make_result("git", "noresults"));
  view.results.push_back(make_result("papersdl", "skipped"));
  view.discovered = {"https://example.com/next", "javascript:alert(1)"};
  return view;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// Any markup that could run or fetch: scripts, event handlers, links that are neither relative nor to the web.
void check_harmless(const std::string& page) {
  std::string lower = page;
  for (char& c : lower)
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  CHECK_FALSE(has(lower, "<script"));
  CHECK_FALSE(has(lower, "<img src=x"));
  CHECK_FALSE(has(lower, "javascript:alert(1)\""));
  CHECK_FALSE(std::regex_search(lower, std::regex("<[^>\"]*(\"[^\"]*\"[^>\"]*)*\\son[a-z]+=")));
  const std::regex target("(href|src)=\"([^\"]*)\"");
  for (std::sregex_iterator match(page.begin(), page.end(), target), end; match != end; ++match) {
    const std::string value = (*match)[2];
    const bool fine = value.starts_with("./") || value.starts_with("../") || value.starts_with("#") ||
                      value.starts_with("https://") || value.starts_with("http://");
    CHECK_MESSAGE(fine, value);
  }
}

const std::string kAttack = "</title><script>alert(1)</script>\"'><img src=x onerror=alert(1)>";

} // namespace

TEST_SUITE_BEGIN("pages");

TEST_CASE("the page holds every result, with status in words, files, errors and reasons") {
  const auto view = sample_view();
  const std::string page = render_snapshot_html(view);
  for (const auto& result : view.results) {
    CHECK(has(page, result.title));
    CHECK(has(page, result.output));
    for (const auto& file : result.files)
      CHECK(has(page, "href=\"./" + file.path + "\""));
  }
  CHECK(has(page, "error of ytdlp"));
  CHECK(has(page, "log of ytdlp"));
  CHECK(has(page, "Succeeded"));
  CHECK(has(page, "Failed"));
  CHECK(has(page, "href=\"https://example.com/a?b=1&amp;c=2\""));
  CHECK(has(page, "<time datetime=\"2026-08-01T09:14:22Z\""));
  CHECK(has(page, "1 August 2026, 09:14 UTC"));
  CHECK(has(page, "href=\"https://example.com/next\""));
  CHECK(has(page, "sha256sum -c manifest-sha256.txt"));
  check_harmless(page);
}

TEST_CASE("hostile text stays text wherever it stands") {
  auto view = sample_view();
  view.title = view.url = view.outcome = view.worker = view.id = view.crawl_id = view.ended_at = kAttack;
  view.tags = {kAttack};
  view.discovered = {kAttack, "https://example.com/\"onmouseover=alert(1) x=\"", "JaVaScRiPt:alert(1)"};
  for (auto& result : view.results) {
    result.plugin = result.hook = result.title = result.output = result.error = result.log = kAttack;
    result.stderr_path = kAttack;
    result.files = {{kAttack, kAttack, 1, kAttack}, {"javascript:alert(1)", "text/html", 1, ""}};
  }
  view.results[4].status = kAttack;
  check_harmless(render_snapshot_html(view));

  CrawlView crawl;
  crawl.label = crawl.id = crawl.status = crawl.outcome = crawl.created_at = crawl.sealed_at = kAttack;
  crawl.seeds = {kAttack, "javascript:alert(1)"};
  crawl.tags = {kAttack};
  for (int i = 0; i < 30; ++i) {
    CrawlView::Entry entry;
    entry.url = entry.title = entry.outcome = entry.path = entry.thumbnail = kAttack;
    crawl.snapshots.push_back(entry);
  }
  check_harmless(render_crawl_html(crawl));
}

TEST_CASE("bytes that are not UTF-8 and characters that turn the writing never reach the page") {
  auto view = sample_view();
  view.title = std::string("bad \xff byte, bell \x07, nul ") + '\0' + " and \xe2\x80\xaegnp.exe";
  const std::string page = render_snapshot_html(view);
  CHECK_FALSE(has(page, "\xff"));
  CHECK_FALSE(has(page, "\x07"));
  CHECK_FALSE(has(page, std::string(1, '\0')));
  CHECK_FALSE(has(page, "\xe2\x80\xae"));
  CHECK(has(page, "bad \xef\xbf\xbd byte"));
}

TEST_CASE("a link to a file survives every character a name can have") {
  auto view = sample_view();
  view.results[0].files = {{"headers/a b#c?d%41\n\"<\\:\xc3\xbc", "text/plain", 1, ""}};
  CHECK(has(render_snapshot_html(view), "href=\"./headers/a%20b%23c%3Fd%2541%0A%22%3C%5C%3A%C3%BC\""));
}

TEST_CASE("a page that is not on the web is named but not linked to") {
  auto view = sample_view();
  view.url = "file:///etc/passwd";
  const std::string page = render_snapshot_html(view);
  CHECK(has(page, "file:///etc/passwd"));
  CHECK_FALSE(has(page, "href=\"file:"));
}

TEST_CASE("the preview is the screenshot, else the page in a frame without any permission") {
  auto view = sample_view();
  view.results.push_back(make_result("singlefile", "succeeded"));
  view.results.back().files = {{"singlefile/singlefile.html", "text/html", 9, ""}};
  const std::string framed = render_snapshot_html(view);
  CHECK(has(framed, "<iframe sandbox=\"\""));
  CHECK(has(framed, "src=\"./singlefile/singlefile.html\""));
  view.results.push_back(make_result("screenshot", "succeeded"));
  view.results.back().files = {{"screenshot/screenshot.png", "image/png", 9, ""}};
  const std::string pictured = render_snapshot_html(view);
  CHECK(has(pictured, "<img src=\"./screenshot/screenshot.png\""));
  CHECK_FALSE(has(pictured, "<iframe"));
}

TEST_CASE("a page that may load from the live site is framed only on demand") {
  auto view = sample_view();
  view.results.push_back(make_result("dom", "succeeded"));
  view.results.back().files = {{"dom/output.html", "text/html", 9, ""}};
  const std::string page = render_snapshot_html(view);
  const auto frame = page.find("<iframe");
  REQUIRE(frame != std::string::npos);
  const auto fold = page.rfind("<details>", frame);
  REQUIRE(fold != std::string::npos);
  CHECK(page.find("</details>", fold) > frame);
}

TEST_CASE("a result with very many files shows some, folds some and counts the rest") {
  auto view = sample_view();
  view.results.resize(1);
  view.results[0].files.clear();
  for (int i = 0; i < 1000; ++i) {
    view.results[0].files.push_back({"headers/f" + std::to_string(1000 + i), "text/plain", 1, ""});
  }
  const std::string page = render_snapshot_html(view);
  CHECK(has(page, "and 996 more"));
  CHECK(has(page, "headers/f1299\""));
  CHECK_FALSE(has(page, "headers/f1300\""));
  CHECK(has(page, "700 more are in"));
}

TEST_CASE("a snapshot without results says so") {
  auto view = sample_view();
  view.results.clear();
  view.title.clear();
  const std::string page = render_snapshot_html(view);
  CHECK(has(page, "No hook ran on this page."));
  CHECK(has(page, "<h1 dir=\"auto\">example.com/a?b=1&amp;c=2</h1>"));
}

TEST_CASE("equal views give equal bytes") {
  CHECK(render_snapshot_html(sample_view()) == render_snapshot_html(sample_view()));
  CHECK(render_index_jsonl(sample_view()) == render_index_jsonl(sample_view()));
}

TEST_CASE("a crawl's page lists every snapshot, pictures first and rows after") {
  CrawlView crawl;
  crawl.id = "0198f7c2-5a10-7c33-9a5e-000000000002";
  crawl.seeds = {"https://example.com/"};
  crawl.outcome = "partial";
  for (int i = 0; i < 10000; ++i) {
    CrawlView::Entry entry;
    entry.url = "https://example.com/" + std::to_string(i);
    entry.title = "Page number " + std::to_string(i) + ".";
    entry.outcome = i % 10 == 0 ? "failed" : "succeeded";
    entry.path = "s/" + std::to_string(i) + "/index.html";
    entry.thumbnail = "s/" + std::to_string(i) + "/screenshot.png";
    crawl.snapshots.push_back(entry);
  }
  const std::string page = render_crawl_html(crawl);
  std::size_t position = 0; // they come in order
  for (const auto& entry : crawl.snapshots) {
    position = page.find("href=\"./" + entry.path + "\"", position);
    if (position != std::string::npos) position = page.find(entry.title, position);
    REQUIRE_MESSAGE(position != std::string::npos, entry.title);
  }
  CHECK(has(page, "<h1 dir=\"auto\">example.com</h1>"));
  CHECK(has(page, "Succeeded 9,000"));
  CHECK(has(page, "Failed 1,000"));
  std::size_t pictures = 0;
  for (auto at = page.find("<img loading=\"lazy\""); at != std::string::npos; at = page.find("<img", at + 1))
    ++pictures;
  CHECK(pictures == 24);
  CHECK(page.size() < 8'000'000);
}

TEST_CASE("index.jsonl is the snapshot and then each result, one object a line, whatever the bytes") {
  auto view = sample_view();
  view.results[3].error = "not UTF-8: \xff\nsecond line";
  std::istringstream lines(render_index_jsonl(view));
  std::vector<nlohmann::json> objects;
  for (std::string line; std::getline(lines, line);)
    objects.push_back(nlohmann::json::parse(line));
  REQUIRE(objects.size() == 1 + view.results.size());
  CHECK(objects[0]["type"] == "Snapshot");
  CHECK(objects[0]["url"] == view.url);
  CHECK(objects[0]["discovered"].size() == 2);
  for (const auto& object : objects)
    CHECK(object["schema_version"] == 1);
  for (std::size_t i = 1; i < objects.size(); ++i) {
    CHECK(objects[i]["type"] == "ArchiveResult");
    CHECK(objects[i]["plugin"] == view.results[i - 1].plugin);
    CHECK(objects[i]["hook_name"] == view.results[i - 1].hook);
    CHECK(objects[i]["status"] == view.results[i - 1].status);
  }
  CHECK(objects[1]["output_files"]["headers/main.txt"]["size"] == 10);
  CHECK(objects[1]["output_mimetypes"] == "text/plain");
}

TEST_SUITE_END();
