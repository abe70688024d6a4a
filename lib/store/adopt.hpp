#pragma once
// Rows made again from files (migrations/functions/97_adopt.sql). Blocking; call on the thread that owns the
// connection.

#include "lib/pg/connection.hpp"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace holdfast::store {

// Those of these directories of snapshots, <yyyy>/<mm>/<host>/<id>, that no row names.
std::vector<std::string> directories_unknown(pg::Connection& connection, const std::vector<std::string>& directories);

// Gives an empty collection this id. Throws Error(refused) if it holds crawls and has another one.
void collection_adopt(pg::Connection& connection, const std::string& id);

// One snapshot with its results; "adopted", "known" or "removed". `page`: see holdfast.adopt().
std::string adopt(pg::Connection& connection, const nlohmann::json& page);

// A kept record of a removed snapshot, in kept/<crawl>/<snapshot>/<position>; false: nothing needs it, or it is known.
bool adopt_kept(pg::Connection& connection, const std::string& directory, const nlohmann::json& record);

} // namespace holdfast::store
