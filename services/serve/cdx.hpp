#pragma once
// The CDX server API, as pywb and OpenWayback have it: which records of the archive's WARC files answer a URL. Replay
// tools ask it. Blocking, on the thread that owns the connection.

#include "lib/pg/connection.hpp"
#include "services/serve/files.hpp"
#include "services/serve/http_message.hpp"

namespace holdfast::serve {

// /cdx?url=URL: matchType (exact, prefix, host, domain; or a "*" in the URL), from, to, closest (1 to 14 digits), sort
// (default, reverse, closest), limit, filter ([!][=]field:text), output (cdxj, json).
// The name of a file is its path at `files` (null: below the archive root), so that who may ask here may read it there.
// `key`: of the token that asks.
Response cdx(pg::Connection& connection, const Request& request, const Files* files, const std::string& key);

} // namespace holdfast::serve
