#include "services/cli/transfer/export_list.hpp"

#include "lib/base/error.hpp"
#include "lib/base/text/json.hpp"
#include "lib/base/text/time.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <utility>

namespace holdfast::cli {

EachBookmark bookmarks_of(pg::Connection& connection, const store::ExportQuery& query) {
  return [&connection, query](const auto& take) {
    constexpr std::int64_t kAtOnce = 500;
    store::each_exported(connection, query, kAtOnce, [&](const auto& batch) {
      for (const auto& page : batch)
        take({page.url, page.title, page.notes, page.tags, page.bookmarked, page.date, page.id});
    });
  };
}

EachBookmark bookmarks_of(Collection& collection, const store::ExportQuery& query) {
  return [&collection, query](const auto& take) {
    constexpr std::int64_t kMost = 10'000'000;
    std::vector<std::pair<std::string, archive::Bookmark>> pages; // by id, unless the shelf orders them
    const auto add = [&](const std::string& line) {
      const auto row = nlohmann::json::parse(line);
      const auto time = [&](const char* name) { return base::canonical_timestamp(base::text_at(row, name)); };
      const auto captured = time(base::text_at(row, "started_at").empty() ? "sealed_at" : "started_at");
      if (base::text_at(row, "directory").empty() ||
          (query.since && captured < base::canonical_timestamp(*query.since)) ||
          (query.until && captured >= base::canonical_timestamp(*query.until)))
        return;
      const auto id = base::text_at(row, "id");
      const auto second = [](const std::string& at) { return at.empty() ? at : at.substr(0, 19) + "Z"; };
      pages.emplace_back(id,
                         archive::Bookmark{base::text_at(row, "url"), base::text_at(row, "title"),
                                           base::text_at(row, "notes"), row.value("tags", std::vector<std::string>()),
                                           second(time("bookmarked_at")), second(captured), id});
    };
    const auto list = [&](const std::string& kind, const std::string& id) {
      auto rows =
          catalog::ListQuery{"snapshots", kMost}.by("status", "sealed").by("tag", query.tag).by("host", query.host);
      for (const auto& line : collection.lines(kind.empty() ? rows : rows.by(kind, id)))
        add(line);
    };
    if (query.shelf)
      for (const auto& page : collection.shelf_pages(collection.find(*query.shelf, store::FindAs::shelf).id, kMost))
        add(page["json"]);
    else if (!query.ids)
      list("", "");
    else
      for (const auto& id : *query.ids) {
        const auto found = collection.find(id);
        list(found.kind, found.id);
      }
    if (!query.shelf) {
      std::sort(pages.begin(), pages.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
      pages.erase(
          std::unique(pages.begin(), pages.end(), [](const auto& a, const auto& b) { return a.first == b.first; }),
          pages.end());
    }
    for (const auto& [id, page] : pages)
      take(page);
  };
}

std::size_t export_list(const EachBookmark& each, bool json, const std::string& path) {
  std::ofstream file;
  if (path != "-") file.open(path, std::ios::binary);
  std::ostream& out = path == "-" ? std::cout : file;
  std::size_t count = 0;
  if (!json) out << archive::bookmarks_begin();
  each([&](const archive::Bookmark& bookmark) {
    out << (json ? archive::bookmark_json(bookmark) : archive::bookmark_html(bookmark));
    ++count;
  });
  if (!json) out << archive::bookmarks_end();
  out.flush();
  if (!out) throw base::Error(base::ErrorClass::input_output, "cannot write " + path);
  return count;
}

} // namespace holdfast::cli
