#pragma once
// The page of a crawl: <archive root>/crawls/<crawl-id>/index.html, made from the database when the crawl is sealed,
// and again after each change or removal of a part (holdfast.crawl_page_stale). It is derived: losing it loses nothing.
// Blocking; any thread with a connection of its own.

#include "lib/archive/root.hpp"
#include "lib/pg/connection.hpp"

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

namespace holdfast::maintenance {

// Returns the path of the page of a crawl, relative to the archive root.
std::filesystem::path crawl_page_path(const std::string& crawl_id);

// Writes pages that have been stale for `age`, and deletes those of removed crawls; with `crawl_id` only that one's. A
// few at a time; returns how many. Throws Error(cannot_create) if one cannot be written; it then stays to be done.
int refresh_crawl_pages(pg::Connection& connection, const archive::Root& root, std::chrono::milliseconds age,
                        const std::optional<std::string>& crawl_id = {});

} // namespace holdfast::maintenance
