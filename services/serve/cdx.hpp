#pragma once
// The CDX server API of pywb and OpenWayback: returns the records of the archive's WARC files for a URL, for replay
// tools. Blocking, on the thread that owns the connection.

#include "lib/pg/connection.hpp"
#include "services/serve/files.hpp"
#include "services/serve/http_message.hpp"

namespace holdfast::serve {

// Answers /cdx?url=URL: matchType (exact, prefix, host, domain; or a "*" in the URL), from, to, closest (4 to 14
// digits), sort (default, reverse, closest), filter ([!][=~]field:text), output (cdxj, json), fl, limit, page,
// pageSize, showNumPages. A header "Link" leads to the next page. The name of a file is its path at `files` (null:
// below the archive root), so that a client may read it there. `key`: of the token of the request.
Response cdx(pg::Connection& connection, const Request& request, const Files* files, const std::string& key);

} // namespace holdfast::serve
