#include "lib/archive/bookmarks.hpp"

#include "lib/archive/embedded.hpp"
#include "lib/base/text/json.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/text/time.hpp"
#include "lib/html/template.hpp"

#include <nlohmann/json.hpp>

#include <chrono>

namespace holdfast::archive {

namespace {

// ADD_DATE: seconds since 1970.
std::string epoch_of(const std::string& time) {
  const auto at = base::read_timestamp(time);
  if (!at) return {};
  return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(at->time_since_epoch()).count());
}

} // namespace

std::string bookmarks_begin() { return html::fill(embedded::bookmarks_begin_html, {}).text(); }

std::string bookmark_html(const Bookmark& bookmark) {
  return html::fill(embedded::bookmark_html,
                    {{"href", bookmark.url},
                     {"date", epoch_of(bookmark.added.empty() ? bookmark.captured : bookmark.added)},
                     {"tags", base::join(bookmark.tags, ",")},
                     {"title", bookmark.title.empty() ? bookmark.url : bookmark.title},
                     {"notes", bookmark.notes}})
      .text();
}

std::string bookmarks_end() { return html::fill(embedded::bookmarks_end_html, {}).text(); }

std::string bookmark_json(const Bookmark& bookmark) {
  nlohmann::ordered_json json{{"url", bookmark.url}, {"title", bookmark.title}, {"tags", bookmark.tags}};
  if (!bookmark.notes.empty()) json["notes"] = bookmark.notes;
  if (!bookmark.added.empty()) json["bookmarked_at"] = bookmark.added;
  json["captured_at"] = bookmark.captured;
  json["snapshot_id"] = bookmark.snapshot_id;
  return base::json_text(json) + "\n";
}

} // namespace holdfast::archive
