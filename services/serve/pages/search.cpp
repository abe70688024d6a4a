#include "lib/store/live.hpp"
#include "services/serve/embedded.hpp"
#include "services/serve/pages.hpp"
#include "services/serve/parts.hpp"

namespace holdfast::serve {

namespace {

constexpr int kWindow = 20000; // snapshots that one search looks at

} // namespace

std::optional<Page> search_page(const PageRequest& request) {
  const auto& query = request.query;
  const auto page = store::search(request.connection, query, request.before, kWindow, kSnapshotsOfPage);
  html::List found;
  for (const auto& snapshot : page.found)
    found.push_back({{"state", state_badge(snapshot.status, snapshot.outcome)},
                     {"id", snapshot.id},
                     {"name", snapshot.name()},
                     {"url", snapshot.url}});
  const bool more = !query.empty() && !page.next.empty();
  return Page{query.empty() ? "Search" : query,
              query.empty() ? "Search" : "“" + query + "”",
              {},
              html::fill(embedded::search_html, {{"found", std::move(found)},
                                                 {"before", request.before.has_value()},
                                                 {"window", number(kWindow)},
                                                 {"older", more ? search_href(query) + "&before=" + page.next : ""}})};
}

} // namespace holdfast::serve
