#pragma once
// The links in a page, whatever kind of page it is: HTML, bookmark files, feeds, sitemaps, JSON lines, plain text.

#include "services/capture/browser/page.hpp"

#include <functional>
#include <string>

namespace holdfast::capture {

struct Link {
  std::string url, title;
  std::string tags, bookmarked_at; // of bookmarks
};

// Calls take(link) for each, in order, possibly more than once for a URL; false ends the search.
void find_links(const Page& page, const std::function<bool(const Link&)>& take);
// Calls take(link) for each entry of a feed, a sitemap or another list. Returns false for a page that is none. Throws
// Ending for one that is broken.
bool find_entries(const Page& page, const std::function<bool(const Link&)>& take);

} // namespace holdfast::capture
