#pragma once
// Writes the method and the body of a request that is not GET as a query, which an index adds to the URL, as the
// players pywb and wabac do ("__wb_method=POST&query=tide"). So each request finds the answer to its own. The package
// "cdxj-indexer" writes null, true and 1.0 of JSON as Python does, where no player finds them. Pure.

#include <string>
#include <string_view>

namespace holdfast::warc {

// Empty for GET. `body`: of the request; its beginning is enough, if it is long.
std::string method_query(std::string_view method, std::string_view content_type, std::string_view body);

// The key of a request (surt.hpp).
std::string request_key(std::string_view url, std::string_view method, std::string_view content_type = {},
                        std::string_view body = {});

inline constexpr std::size_t kLargestRequestRead = 1u << 20; // of a body, for its key

} // namespace holdfast::warc
