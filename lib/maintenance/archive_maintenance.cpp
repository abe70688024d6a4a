#include "lib/maintenance/archive_maintenance.hpp"

#include "lib/archive/attempt.hpp"
#include "lib/archive/captures.hpp"
#include "lib/archive/page_text.hpp"
#include "lib/archive/recover.hpp"
#include "lib/archive/verify.hpp"
#include "lib/base/coroutine.hpp"
#include "lib/base/error.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/text/time.hpp"
#include "lib/catalog/list.hpp"
#include "lib/store/call.hpp"
#include "lib/store/capture.hpp"
#include "lib/store/find.hpp"
#include "lib/store/live.hpp"
#include "lib/store/runner.hpp"
#include "lib/store/text.hpp"

#include <spdlog/spdlog.h>

#include <utility>

namespace holdfast::maintenance {

namespace {

constexpr int kBatch = 20;

} // namespace

void ArchiveMaintenance::refuse(const std::string& what, const std::string& why) {
  if (refused_.insert(what).second) spdlog::log(level_, "{}", why);
}

awaitable<bool> ArchiveMaintenance::due() {
  co_return co_await pool_.run([this](pg::Connection& connection) {
    store::call(connection, "purge_fill");
    return !store::call_list(connection, "purge_list", 1, ages_.files).empty() ||
           !store::crawl_pages_stale(connection, 1, ages_.pages, {}).empty();
  });
}

awaitable<int> ArchiveMaintenance::step(const archive::Root& root) {
  const auto listed = co_await pool_.run([this](pg::Connection& connection) {
    store::call(connection, "purge_fill");
    return store::call_list(connection, "purge_list", kBatch, ages_.files);
  });
  std::vector<std::string> gone;
  std::vector<std::pair<std::string, std::string>> left;
  try {
    if (!listed.empty())
      co_await pool_.run([&](pg::Connection& connection) { keep_captures(connection, root, listed); });
  } catch (const base::Error& error) {
    if (error.error_class() == base::ErrorClass::temporary) throw;
    refuse("kept", std::string("nothing is deleted: ") + error.what());
    co_return 0;
  }
  co_await base::on_thread(files_, [&] {
    if (!listed.empty()) root.check();
    for (const auto& directory : listed) {
      try {
        archive::remove_snapshot(root, directory);
        gone.push_back(directory);
      } catch (const base::Error& error) {
        left.emplace_back(directory, error.what());
      }
    }
  });
  for (const auto& [directory, why] : left)
    refuse(directory, "not deleted: " + why);
  if (!gone.empty()) {
    co_await pool_.run([&](pg::Connection& connection) { store::call(connection, "purge_done", gone); });
    spdlog::info("deleted the files of {} removed snapshots", gone.size());
  }
  int written = 0;
  try {
    written = co_await pool_.run(
        [&](pg::Connection& connection) { return refresh_crawl_pages(connection, root, ages_.pages); });
  } catch (const base::Error& error) {
    if (error.error_class() != base::ErrorClass::cannot_create) throw;
    refuse("crawls", std::string("no page for a crawl: ") + error.what()); // for example a full disk: it is retried
  }
  if (text_bytes_ > 0) co_await add_texts(root);
  co_return static_cast<int>(gone.size()) + written;
}

awaitable<void> ArchiveMaintenance::add_texts(const archive::Root& root) {
  constexpr int kRows = 2000; // of a collection of 10^7 pages, all are looked at in two days
  const auto lost = co_await pool_.run([this](pg::Connection& connection) {
    return store::texts_lost(connection, looked_at_, kRows, std::chrono::minutes(1));
  });
  looked_at_ = lost.last;
  std::vector<std::pair<store::Lease, std::string>> texts;
  std::vector<std::pair<std::string, std::string>> unread;
  co_await base::on_thread(files_, [&] {
    for (const auto& page : lost.pages) {
      try {
        texts.emplace_back(page.lease, archive::page_text(root, page.directory, text_bytes_));
      } catch (const base::Error& error) {
        unread.emplace_back(page.directory, error.what());
      }
    }
  });
  for (const auto& [directory, why] : unread)
    refuse("text of " + directory, "could not index the text of " + directory + ": " + why);
  if (texts.empty()) co_return;
  co_await pool_.run([&](pg::Connection& connection) {
    for (const auto& [lease, text] : texts)
      store::text_keep(connection, lease, text);
  });
  spdlog::info("restored the text of {} pages for the search", texts.size());
}

void keep_captures(pg::Connection& connection, const archive::Root& root, const std::vector<std::string>& directories) {
  for (const auto& kept : store::captures_to_move(connection, directories)) {
    if (archive::keep_record(root, kept.source_file, kept.source_offset, kept.length, kept.file))
      store::call(connection, "captures_moved", kept.snapshot_id, kept.position);
    else
      spdlog::warn("a record that other snapshots need does not exist: {} at {}", kept.source_file, kept.source_offset);
  }
}

namespace {

constexpr std::int64_t kEntries = 20000; // rows of the page; more would not be read by anybody

constexpr std::int64_t kPageBatch = 20;

void write_crawl_page(pg::Connection& connection, const archive::Root& root, const std::string& crawl_id) {
  const archive::CrawlView view = [&] {
    const auto crawl = store::crawl(connection, crawl_id);
    archive::CrawlView made;
    made.id = crawl.id;
    made.label = crawl.label;
    made.status = crawl.status;
    made.outcome = crawl.outcome;
    made.created_at = base::iso_time(crawl.created_at);
    made.sealed_at = base::iso_time(crawl.sealed_at);
    made.tags = crawl.tags;
    made.seeds = store::call_list(connection, "crawl_seeds", crawl_id, 100);
    made.max_depth = crawl.max_depth;
    made.bytes = static_cast<std::uint64_t>(crawl.bytes);
    for (const auto& entry : store::crawl_entries(connection, crawl_id, kEntries)) {
      archive::CrawlView::Entry row;
      row.url = entry.url;
      row.title = entry.title;
      row.outcome = entry.outcome;
      row.depth = entry.depth;
      row.bytes = static_cast<std::uint64_t>(entry.bytes);
      if (!entry.directory.empty()) {
        row.path = "../../" + entry.directory + "/index.html";
        if (!entry.thumbnail.empty()) row.thumbnail = "../../" + entry.directory + "/" + entry.thumbnail;
      }
      made.snapshots.push_back(std::move(row));
    }
    return made;
  }();
  catalog::ListQuery query;
  query.view = "crawls";
  query.by("crawl", crawl_id);
  for (const auto& row : catalog::list_json(connection, query)) // one
    root.write_file(crawl_page_path(crawl_id).replace_filename(archive::kCrawlFacts), row + "\n", "application/json");
  root.write_file(crawl_page_path(crawl_id), archive::render_crawl_html(view), "text/html");
}

} // namespace

std::filesystem::path crawl_page_path(const std::string& crawl_id) {
  return std::filesystem::path("crawls") / crawl_id / "index.html";
}

int refresh_crawl_pages(pg::Connection& connection, const archive::Root& root, std::chrono::milliseconds age,
                        const std::optional<std::string>& crawl_id) {
  const auto stale = store::crawl_pages_stale(connection, kPageBatch, age, crawl_id);
  for (const auto& page : stale) {
    if (page.there)
      write_crawl_page(connection, root, page.crawl_id);
    else
      for (const char* file : {archive::kCrawlFacts, "index.html"})
        root.remove_file(crawl_page_path(page.crawl_id).replace_filename(file));
    store::call(connection, "crawl_page_made", page.crawl_id, page.since);
  }
  return static_cast<int>(stale.size());
}

} // namespace holdfast::maintenance
