#pragma once
// Before the files of removed snapshots are deleted: records to which others refer get files of their own. Blocking; on
// the thread that owns the connection. May be repeated.

#include "lib/archive/root.hpp"
#include "lib/pg/connection.hpp"

#include <string>
#include <vector>

namespace holdfast::upkeep {

// `directories`: as store::purge_list() lists them.
void keep_captures(pg::Connection& connection, const archive::Root& root, const std::vector<std::string>& directories);

} // namespace holdfast::upkeep
