#pragma once
// The page as it stood: a document that the dom plugin has saved without scripts, whose pictures, styles, fonts and
// films are "r/URL" and come out of the WARC files of the same snapshot. Nothing of the page is stored twice, and none
// of its code runs. Blocking; any thread.

#include "lib/base/file.hpp"
#include "lib/pg/connection.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::serve {

inline constexpr std::string_view kStillPage = "dom/still.html"; // below the directory of an attempt
inline constexpr std::string_view kRecords = "/dom/r/";          // before the URL of a record

// Opens a file below the archive root; an empty descriptor: there is none.
using OpenFile = std::function<base::Fd(const std::string&)>;

struct RecordPath {
  std::string snapshot, url;
};
// "2026/11/example.org/<snapshot>/a1/dom/r/<URL>"; nothing for other paths.
std::optional<RecordPath> record_path(std::string_view path);

struct Body {
  std::string type; // Content-Type: of a kind that shows something; never of a script
  std::string bytes;
  base::Fd file; // instead of the bytes, if there are many
};
// Reads what a URL answered with in a snapshot, through redirects. Nothing: the snapshot has no such record, or it
// cannot be read.
std::optional<Body> read_record(pg::Connection& connection, const OpenFile& open, const RecordPath& path);

} // namespace holdfast::serve
