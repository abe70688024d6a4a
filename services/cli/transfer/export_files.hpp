#pragma once
// holdfast export --format files: the files of snapshots for users, with a list of the pages.
// Blocking; main thread.

#include "lib/pg/connection.hpp"
#include "services/cli/transfer/destination.hpp"
#include "services/cli/transfer/export_originals.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace holdfast::cli {

// Exports to <host>/<time>-<id>/... ; calls `told` after each snapshot.
Exported export_files(pg::Connection& connection, const archive::Root& root, const store::ExportQuery& query,
                      Destination& to, const std::function<void(const Exported&)>& told);

// Returns what lists of pages say of a snapshot, with the time at which the page itself was captured: replay and
// imports look for a record of that time. `captures`: of the snapshot.
wacz::WrittenPage listed_page(const store::ExportedSnapshot& snapshot, std::span<const store::Capture> captures);
// Returns those of one snapshot, of captures_of().
std::span<const store::Capture> captures_in(const std::vector<store::Capture>& captures, const std::string& snapshot);

// Records of Browsertrix about a page (urn:pageinfo:URL): the URLs that the page loaded, also those that the browser
// had in its cache, which have no record then. Blocking; main thread.

// Returns records of other pages of the crawl that an imported page needs, as far as its own records (`captures`) name
// them.
std::vector<store::Capture> captures_from_cache(pg::Connection& connection, const archive::Root& root,
                                                std::span<const store::Capture> captures);

// The record of the same crawl that is closest to a time and holds the answer to a URL key. nullopt: there is none.
std::optional<store::Capture> capture_in_crawl(pg::Connection& connection, const std::string& crawl,
                                               const std::string& key, const std::string& at);

} // namespace holdfast::cli
