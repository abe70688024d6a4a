#pragma once
// Keeps responses that are no page for a browser: a PDF, an image, a download. Each becomes a file beside the record,
// so that people can open it without a replay tool. Pure functions, but for keep_file().

#include "lib/warc/spool.hpp"
#include "services/capture/hook.hpp"

#include <set>
#include <string>

namespace holdfast::capture {

inline constexpr const char* kDownload = "not a page for a browser: the server sent a download";

// Why a browser does not show this as a page; empty: it does.
std::string not_a_page(const std::string& content_type, const std::string& disposition);

// Writes the body below file/, under the last part of its URL, and returns that path, which is added to `names`. Throws
// Ending.
std::string keep_file(const Job& job, const std::string& url, const warc::Spool& body, std::set<std::string>& names);

} // namespace holdfast::capture
