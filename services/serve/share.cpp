#include "services/serve/share.hpp"

#include "lib/base/sha256.hpp"
#include "lib/base/text/encoding.hpp"
#include "lib/base/text/text.hpp"
#include "lib/base/uuid.hpp"
#include "lib/catalog/list.hpp"
#include "lib/html/parts.hpp"
#include "lib/store/call.hpp"
#include "lib/store/live.hpp"
#include "services/serve/embedded.hpp"
#include "services/serve/pages/pages.hpp"
#include "services/serve/pages/parts.hpp"

namespace holdfast::serve {

namespace {

constexpr std::size_t kSecret = 64;
constexpr std::string_view kPageOf = "page/"; // before the id of a snapshot
constexpr int kCaptures = 100;                // of a URL

// Returns the directory of a snapshot that the link shares; empty: it does not.
std::string directory_of(pg::Connection& connection, const SharedPath& path, const std::string& snapshot) {
  const auto rows = store::call(connection, "share_directory", path.hash, snapshot);
  return rows.empty() ? "" : rows.one().value().value_or("");
}

struct SharedView {
  std::string title;
  html::Html body;
};

std::optional<SharedView> shared_snapshot(pg::Connection& connection, const Links& links, const std::string& id,
                                          const std::string& back) {
  const auto rows = catalog::list(connection, catalog::ListQuery{"snapshots", 1}.by("snapshot", id));
  if (rows.empty()) return std::nullopt;
  const auto snapshot = rows.one();
  const auto directory = snapshot["directory"].value_or("");
  if (directory.empty()) return std::nullopt;
  const std::string url = snapshot["url"];
  const auto still = still_href(snapshot, store::results(connection, id), links);
  const auto name = name_of(snapshot), files = links.file(directory + "/index.html");
  return SharedView{name, html::fill(embedded::share_page_html, {{"name", name},
                                                                 {"url", html::outside_link(url, url)},
                                                                 {"time", when(captured_at(snapshot))},
                                                                 {"back", back},
                                                                 {"files", files},
                                                                 {"page", still.empty() ? files : still}})};
}

SharedView shared_captures(pg::Connection& connection, const Links& links, const std::string& url,
                           const std::string& link) {
  html::List tiles;
  std::string title = url;
  for (const auto row : store::call(connection, "page_history", url, std::nullopt, kCaptures)) {
    if (row["directory"].value_or("").empty()) continue;
    if (title == url && !row["title"].value_or("").empty()) title = row.text("title");
    const auto id = row.text("id");
    tiles.push_back(tile(id, link + std::string(kPageOf) + id, links.picture(row),
                         row.text("at").substr(0, 16) + " UTC", "",
                         state_badge("sealed", row["outcome"].value_or(""))));
  }
  return {title, html::fill(embedded::share_set_html, {{"name", title},
                                                       {"description", title == url ? "" : url},
                                                       {"pages", gallery_of(std::move(tiles))}})};
}

SharedView shared_shelf(pg::Connection& connection, const Links& links, const pg::Row& share, const std::string& link,
                        const std::string& after) {
  html::List tiles;
  const auto rows = store::call(connection, "shelf_entries", share.text("shelf_id"), "shelf",
                                after.empty() ? std::nullopt : std::optional(after), kSnapshotsOfPage);
  for (const auto row : rows)
    if (!row["directory"].value_or("").empty())
      tiles.push_back(tile(row, links.picture(row), link + std::string(kPageOf) + row.text("id")));
  const bool full = static_cast<int>(rows.size()) == kSnapshotsOfPage;
  const auto more = full ? link + "?after=" + base::percent_encode(rows[rows.size() - 1].text("cursor")) : "";
  const auto name = share.text("name");
  return {name, html::fill(embedded::share_set_html, {{"name", name},
                                                      {"description", share["description"].value_or("")},
                                                      {"pages", gallery_of(std::move(tiles), more)}})};
}

} // namespace

std::optional<SharedPath> shared_path(std::string_view path) {
  const auto secret = path.substr(kShare.size(), kSecret),
             rest = path.substr(std::min(path.size(), kShare.size() + kSecret));
  if (secret.size() != kSecret || !rest.starts_with('/') ||
      secret.find_first_not_of("0123456789abcdef") != std::string_view::npos)
    return std::nullopt;
  return SharedPath{std::string(path.substr(0, kShare.size() + kSecret)), base::sha256_hex(secret),
                    std::string(rest.substr(1))};
}

bool shares_file(pg::Connection& connection, const SharedPath& path) {
  const auto parts = base::split(path.rest, "/"); // year, month, host, snapshot, attempt, ...
  if (parts.size() < 6 || !base::is_uuid(parts[3])) return false;
  const auto directory = directory_of(connection, path, parts[3]);
  return !directory.empty() && path.rest.starts_with(directory + "/");
}

std::optional<std::string> shared_page(pg::Connection& connection, const SharedPath& path, const Files& files,
                                       const Request& request) {
  const bool of_page = path.rest.starts_with(kPageOf);
  if (!of_page && !path.rest.empty()) return std::nullopt;
  const auto rows = store::call(connection, "share_open", path.hash);
  if (rows.empty()) return std::nullopt;
  const auto share = rows.one();
  const Links links{&files, "", path.link, ""};
  const auto link = "/" + path.link + "/", snapshot = share["snapshot_id"].value_or("");
  std::optional<SharedView> shown;
  if (of_page) {
    const auto id = path.rest.substr(kPageOf.size());
    if (!base::is_uuid(id) || directory_of(connection, path, id).empty()) return std::nullopt;
    shown = shared_snapshot(connection, links, id, snapshot.empty() ? link : "");
  } else if (!snapshot.empty()) {
    shown = shared_snapshot(connection, links, snapshot, "");
  } else if (!share.is_null("url")) {
    shown = shared_captures(connection, links, share.text("url"), link);
  } else {
    shown = shared_shelf(connection, links, share, link, request.parameter("after"));
  }
  if (!shown) return std::nullopt;
  auto style = html::page_style();
  style += html::Html(html::Literal(embedded::site_css));
  return html::fill(embedded::share_html, {{"title", shown->title},
                                           {"style", style},
                                           {"sprite", html::icon_sprite()},
                                           {"body", shown->body},
                                           {"until", when(share.text("expires_at"))}})
      .text();
}

} // namespace holdfast::serve
