#include "lib/html/parts.hpp"
#include "lib/store/live.hpp"
#include "lib/store/why.hpp"
#include "services/serve/embedded.hpp"
#include "services/serve/pages.hpp"
#include "services/serve/parts.hpp"

namespace holdfast::serve {

namespace {

Html facts(pg::Connection& connection, const store::Crawl& crawl) {
  Html added = when(crawl.created_at);
  if (!crawl.created_by.empty()) added += html::escaped(" by " + crawl.created_by);
  html::Facts facts;
  facts.add("Succeeded", number(crawl.succeeded));
  facts.add("Partial", number(crawl.partial));
  facts.add("Failed", number(crawl.failed));
  facts.add("Cancelled", number_unless_zero(crawl.cancelled));
  facts.add("Size", size_of(crawl.bytes));
  facts.add("Depth", crawl.max_depth);
  facts.add("At most", crawl.max_urls > 0 ? number(crawl.max_urls) + " URLs" : "");
  facts.add("Added", added);
  facts.add("Sealed", when(crawl.sealed_at));
  facts.add("Tags", tag_links(crawl.tags));
  facts.add("Notes", crawl.notes);
  return html::fill(embedded::crawl_html,
                    {{"state", state_badge(crawl.status, crawl.outcome)},
                     {"progress", progress(crawl.total - crawl.open, crawl.total + crawl.seeds_left)},
                     {"why", sentence(store::why(connection, crawl.id).reason)},
                     {"facts", facts.html()}});
}

Html gallery(const PageRequest& request) {
  const auto snapshots = store::crawl_snapshots(request.connection, request.id, request.before, kSnapshotsOfPage);
  html::List tiles;
  for (const auto& snapshot : snapshots) {
    const auto where = html::without_scheme(snapshot.url);
    const auto name = snapshot.title.empty() ? std::string(where) : snapshot.title;
    const bool pictured = request.links.shown() && !snapshot.thumbnail.empty() && !snapshot.directory.empty();
    tiles.push_back({{"id", snapshot.id},
                     {"picture", pictured ? request.links.file(snapshot.directory + "/" + snapshot.thumbnail) : ""},
                     {"short_name", name.substr(0, 60)},
                     {"name", name},
                     {"where", where},
                     {"state", state_badge(snapshot.status, snapshot.outcome)}});
  }
  const bool full = snapshots.size() == kSnapshotsOfPage;
  return html::fill(embedded::gallery_html,
                    {{"tiles", std::move(tiles)},
                     {"earlier", full ? "/crawl/" + request.id + "?before=" + snapshots.back().id : ""}});
}

} // namespace

std::optional<Page> crawl_page(const PageRequest& request) {
  const auto crawl = store::find_crawl(request.connection, request.id);
  if (!crawl) return std::nullopt;
  const bool earlier = request.before.has_value();
  return Page{crawl->name(),
              crawl->name(),
              {{"crawl", facts(request.connection, *crawl), "", false},
               {"gallery", gallery(request), earlier ? "Snapshots, earlier" : "Snapshots", true, !earlier}},
              {},
              "Crawl " + request.id};
}

} // namespace holdfast::serve
