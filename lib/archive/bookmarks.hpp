#pragma once
// Lists of archived pages for other programs: a bookmarks file, as browsers and bookmark managers import it, and lines
// of JSON, as `holdfast add` and others read them. Pure functions; any thread.

#include <string>
#include <vector>

namespace holdfast::archive {

struct Bookmark {
  std::string url, title, notes;
  std::vector<std::string> tags;
  std::string added; // a time; "": not known
  std::string captured, snapshot_id;
};

std::string bookmarks_begin();
std::string bookmark_html(const Bookmark& bookmark);
std::string bookmarks_end();
std::string bookmark_json(const Bookmark& bookmark); // a line

} // namespace holdfast::archive
