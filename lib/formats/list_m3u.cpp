#include "lib/base/text/text.hpp"
#include "lib/formats/encoding.hpp"
#include "lib/formats/rows.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::formats {

namespace {

// Returns the title of "#EXTINF:123 logo="a,b",Title": what follows the first comma outside quotes.
std::string_view title_of(std::string_view line) {
  bool quoted = false;
  const auto comma = std::find_if(line.begin(), line.end(), [&](char c) {
    if (c == '"') quoted = !quoted;
    return c == ',' && !quoted;
  });
  return line.substr(std::min(static_cast<std::size_t>(comma - line.begin()) + 1, line.size()));
}

} // namespace

// Playlists of M3U and M3U8. The files of HLS look alike, but list pieces and qualities of one film: each has one of
// two lines that no playlist has (RFC 8216, 4.3.3 and 4.3.4).
std::optional<List> read_m3u(std::string_view text, bool asked) {
  constexpr std::string_view kInfo = "#EXTINF:";
  if (!asked && !base::trimmed(text.substr(0, kSniffed)).starts_with("#EXTM3U")) return std::nullopt;
  if (text.find("#EXT-X-TARGETDURATION") != text.npos || text.find("#EXT-X-STREAM-INF") != text.npos)
    return std::nullopt;
  List list;
  Row row;
  for (std::size_t number = 1, at = 0; at < text.size(); ++number) {
    const auto end = std::min(text.find('\n', at), text.size());
    const auto line = base::trimmed(text.substr(at, end - at));
    at = end + 1;
    if (line.starts_with(kInfo)) row.add("title", title_of(line));
    if (line.empty() || line.starts_with('#')) continue;
    row.add("url", line);
    list.entries.push_back(std::exchange(row, {}).entry("line " + std::to_string(number)));
  }
  return list;
}

} // namespace holdfast::formats
