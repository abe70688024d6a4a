// The page as it stood (records.hpp), below a bar that says what one sees.
#include "lib/base/text/facts.hpp"
#include "lib/catalog/list.hpp"
#include "lib/html/parts.hpp"
#include "lib/store/call.hpp"
#include "lib/store/live.hpp"
#include "services/serve/embedded.hpp"
#include "services/serve/pages/pages.hpp"
#include "services/serve/pages/parts.hpp"
#include "services/serve/records.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace holdfast::serve {

namespace {

// Says what is missing in the capture.
std::string lacks(const pg::Row& snapshot) {
  const auto missing = snapshot["resources_missing"].value_or<std::int64_t>(0);
  if (missing <= 0) return snapshot["outcome"].value_or("") == "succeeded" ? "" : snapshot["reason"].value_or("");
  return number(missing) + " of " + html::counted(snapshot["resources"].value_or<std::uint64_t>(0), "resource") +
         " missing";
}

} // namespace

Neighbours neighbours(pg::Connection& connection, const std::string& snapshot) {
  const auto rows = store::call(connection, "page_neighbours", snapshot);
  if (rows.empty()) return {};
  const auto row = rows.one();
  return {row["previous"].value_or(""), row["next"].value_or(""), row.integer("captures")};
}

std::string still_href(const pg::Row& snapshot, const pg::Result& results, const Links& links) {
  const auto directory = snapshot["directory"].value_or("");
  if (directory.empty() || !links.shown()) return "";
  constexpr auto kPlugin = kStillPage.substr(0, kStillPage.find('/'));
  constexpr auto kName = kStillPage.substr(kPlugin.size() + 1);
  for (const auto result : results) {
    if (result.text("plugin") != kPlugin) continue;
    const auto files = nlohmann::json::parse(result.text("files_json"), nullptr, false);
    const bool there = files.is_array() && std::any_of(files.begin(), files.end(), [&](const auto& file) {
                         return file.is_object() && file.value("path", "") == kName;
                       });
    if (there) return links.file(directory + "/" + std::string(kStillPage));
  }
  return "";
}

std::optional<Page> still_page(const PageRequest& request) {
  const auto rows = catalog::list(request.connection, catalog::ListQuery{"snapshots", 1}.by("snapshot", request.id));
  if (rows.empty()) return std::nullopt;
  const auto snapshot = rows.one();
  const std::string url = snapshot["url"];
  const auto around = neighbours(request.connection, request.id);
  const auto page_of = [](const std::string& id) { return id.empty() ? id : "/page/" + id; };
  const auto& replay = request.links.replay;
  Page page{name_of(snapshot), "", {}};
  page.body =
      html::fill(embedded::still_html,
                 {{"name", page.title},
                  {"id", request.id},
                  {"url", html::outside_link(url, url)},
                  {"time", when(captured_at(snapshot))},
                  {"source", snapshot["source"].value_or("")},
                  {"lacks", lacks(snapshot)},
                  {"before", page_of(around.previous)},
                  {"after", page_of(around.next)},
                  {"changes", around.previous.empty() ? "" : "/compare?a=" + around.previous + "&b=" + request.id},
                  {"timeline", timeline_href(url)},
                  {"replay", replay.empty() ? "" : replay + timestamp(snapshot["sealed_at"].value_or("")) + "/" + url},
                  {"href", still_href(snapshot, store::results(request.connection, request.id), request.links)}});
  return page;
}

} // namespace holdfast::serve
