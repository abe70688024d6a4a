#pragma once
// holdfast export --format bookmarks, json: a list of the pages, without their files. Main thread.

#include "lib/archive/bookmarks.hpp"
#include "lib/pg/connection.hpp"
#include "lib/store/capture.hpp"
#include "services/cli/context/collection.hpp"

#include <functional>
#include <string>
#include <vector>

namespace holdfast::cli {

// Hands on each page, in the order of the export.
using EachBookmark = std::function<void(const std::function<void(const archive::Bookmark&)>&)>;
EachBookmark bookmarks_of(pg::Connection& connection, const store::ExportQuery& query);
// Hands on the pages of a server, over its API. `query.ids`, `query.shelf`: as users name them.
EachBookmark bookmarks_of(Collection& collection, const store::ExportQuery& query);

// Writes a bookmarks file, or lines of JSON. "-": standard output. Returns how many pages there are. Throws
// Error(input_output).
std::size_t export_list(const EachBookmark& each, bool json, const std::string& path);

} // namespace holdfast::cli
