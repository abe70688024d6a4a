#include "lib/maintenance/crawl_page.hpp"

#include "lib/archive/attempt.hpp"
#include "lib/archive/recover.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/text/timestamp.hpp"
#include "lib/catalog/list.hpp"
#include "lib/store/call.hpp"
#include "lib/store/control.hpp"
#include "lib/store/find.hpp"
#include "lib/store/live.hpp"

namespace holdfast::maintenance {

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
