#pragma once
// The page of a crawl: <archive root>/crawls/<crawl-id>/index.html, made from the database when the crawl is sealed. It
// is derived: losing it loses nothing, and making it again gives the same. Blocking; any thread with a connection of
// its own.

#include "lib/archive/root.hpp"
#include "lib/pg/connection.hpp"

#include <filesystem>
#include <string>

namespace holdfast::worker {

// Where the page of a crawl is, relative to the archive root.
std::filesystem::path crawl_page_path(const std::string& crawl_id);

// Writes it. Throws Error(refused) for an unknown crawl, Error(cannot_create) if it cannot be written.
void write_crawl_page(pg::Connection& connection, const archive::Root& root, const std::string& crawl_id);

} // namespace holdfast::worker
