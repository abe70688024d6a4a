#pragma once
// Records of Browsertrix about a page (urn:pageinfo:URL): the URLs that the page loaded, also those that the browser
// had in its cache, which have no record then. Blocking; main thread.

#include "lib/archive/root.hpp"
#include "lib/pg/connection.hpp"
#include "lib/store/capture.hpp"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace holdfast::cli {

// Returns records of other pages of the crawl that an imported page needs, as far as its own records (`captures`) name
// them.
std::vector<store::Capture> captures_from_cache(pg::Connection& connection, const archive::Root& root,
                                                std::span<const store::Capture> captures);

// The record of the same crawl that is closest to a time and holds the answer to a URL key. nullopt: there is none.
std::optional<store::Capture> capture_in_crawl(pg::Connection& connection, const std::string& crawl,
                                               const std::string& key, const std::string& at);

} // namespace holdfast::cli
