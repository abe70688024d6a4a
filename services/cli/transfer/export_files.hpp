#pragma once
// holdfast export --format files: the files of snapshots for users, with index.jsonl, which lists the snapshots.
// Blocking; main thread.

#include "lib/archive/root.hpp"
#include "lib/pg/connection.hpp"
#include "lib/store/capture.hpp"
#include "services/cli/transfer/destination.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace holdfast::cli {

struct ExportedFiles {
  std::size_t snapshots{0}, files{0};
  std::uint64_t bytes{0};
};
// Exports to <host>/<time>-<id>/... ; calls `told` after each snapshot.
ExportedFiles export_files(pg::Connection& connection, const archive::Root& root, const store::ExportQuery& query,
                           Destination& to, const std::function<void(const ExportedFiles&)>& told);

// Records of Browsertrix about a page (urn:pageinfo:URL): the URLs that the page loaded, also those that the browser
// had in its cache, which have no record then. Blocking; main thread.

// Returns records of other pages of the crawl that an imported page needs, as far as its own records (`captures`) name
// them.
std::vector<store::Capture> captures_from_cache(pg::Connection& connection, const archive::Root& root,
                                                std::span<const store::Capture> captures);

// The record of the same crawl that is closest to a time and holds the answer to a URL key. nullopt: there is none.
std::optional<store::Capture> capture_in_crawl(pg::Connection& connection, const std::string& crawl,
                                               const std::string& key, const std::string& at);

// Writes a list of the pages, without their files: a bookmarks file, or lines of JSON. "-": standard output. Returns
// how many. Throws Error(input_output).
std::size_t export_list(pg::Connection& connection, const store::ExportQuery& query, bool json,
                        const std::string& path);

} // namespace holdfast::cli
