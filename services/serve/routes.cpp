#include "services/serve/routes.hpp"

#include "lib/base/sha256.hpp"
#include "lib/base/uuid.hpp"
#include "lib/catalog/list.hpp"
#include "lib/html/parts.hpp"
#include "services/serve/embedded.hpp"

#include <algorithm>
#include <deque>
#include <vector>

namespace holdfast::serve {

namespace {

// The routes of all lists without a page of their own follow (routes()).
constexpr Route kRoutes[] = {
    Route{"/", "Overview", "page", true, &overview_page},
    Route{"/crawls", "Crawls", "page", true, &crawls_page},
    Route{"/search", "Snapshots", "page", false, &search_page},
    Route{"/sites", "Sites", "page", true, &list_page},
    Route{"/shelves", "Shelves", "page", false, &shelves_page},
    Route{"/timeline", "", "page with captures", true, &timeline_page},
    Route{"/compare", "", "snapshot", false, &compare_page},
    Route{"/add", "Add", "page", false, &add_page},
    Route{"/schedules", "Schedules", "page", true, &list_page},
    Route{"/personas", "Personas", "page", true, &personas_page},
    Route{"/workers", "Workers", "page", true, &workers_page},
    Route{"/hosts", "", "page", true, &hosts_page},
    Route{"/failures", "", "page", true, &failures_page},
    Route{"/lists", "Lists", "page", false, &lists_page},
    Route{"/tokens", "", "page", false, &tokens_page},
    Route{"/crawl/", "", "crawl", true, &crawl_page},
    Route{"/snapshot/", "", "snapshot", true, &snapshot_page},
    Route{"/shelf/", "", "shelf", false, &shelf_page},
    Route{"/page/", "", "snapshot", false, &still_page},
    Route{"/persona/", "", "sign-in; it may have ended", false, &persona_view_page},
};

const std::vector<Route>& routes() {
  static std::deque<std::string> paths; // that do not move
  static const auto all = [] {
    std::vector<Route> made(std::begin(kRoutes), std::end(kRoutes));
    for (const auto& list : catalog::lists()) {
      const auto& path = paths.emplace_back("/" + std::string(list.name));
      const bool has_page = std::any_of(made.begin(), made.end(), [&](const auto& one) { return one.path == path; });
      if (list.for_guests && !has_page) made.push_back({path, "", "page", true, &list_page});
    }
    return made;
  }();
  return all;
}

} // namespace

Found find_route(const std::string& path) {
  for (const Route& route : routes()) {
    if (!route.has_id() && path == route.path) return {&route, path.substr(1)};
    if (route.has_id() && path.starts_with(route.path) && base::is_uuid(path.substr(route.path.size())))
      return {&route, path.substr(route.path.size())};
  }
  return {};
}

namespace {

// The page in the bar that a page belongs to.
std::string_view tab_of(const Route& route) {
  if (!route.tab.empty()) return route.path;
  if (route.path == "/tokens") return ""; // beside the name of the user
  if (route.path == "/persona/") return "/personas";
  if (route.path == "/shelf/" || route.path == "/shares") return "/shelves";
  for (const std::string_view of_pages : {"/timeline", "/compare", "/snapshots", "/snapshot/", "/page/"})
    if (route.path == of_pages) return "/search";
  return route.has_id() ? "/crawls" : route.path == "/hosts" ? "/sites" : "/lists";
}

} // namespace

std::string digest_of(const html::Html& html) { return base::sha256_hex(html.text()).substr(0, 16); }

std::string layout(const Route& route, const Page& page, const std::string& query, const Request& request,
                   const Caller& caller) {
  html::List tabs, sections;
  for (const Route& one : kRoutes)
    if (!one.tab.empty() && (one.path != "/add" || caller.may_change())) {
      const bool current = route.page != nullptr && one.path == tab_of(route);
      tabs.push_back({{"path", one.path}, {"name", one.tab}, {"current", current}});
    }
  for (const auto& section : page.sections)
    sections.push_back({{"id", section.id},
                        {"name", section.name},
                        {"framed", section.framed},
                        {"digest", digest_of(section.html)},
                        {"html", section.html}});
  return html::fill(embedded::layout_html, {{"title", page.title},
                                            {"live", route.live},
                                            {"sprite", html::icon_sprite()},
                                            {"pages", std::move(tabs)},
                                            {"query", query},
                                            {"who", caller.account.empty() ? caller.name : caller.account},
                                            {"user", caller.user},
                                            {"sign_in", caller.is_guest() && !caller.may_change()},
                                            {"next", request.path},
                                            {"kicker", page.kicker},
                                            {"heading", page.heading},
                                            {"sections", std::move(sections)},
                                            {"body", page.body}})
      .text();
}

Response problem_page(unsigned status, const Problem& problem, const Request& request, const Caller& caller) {
  static constexpr Route kNone{"", "", "", false, nullptr};
  Page page{problem.heading, problem.heading, {}};
  page.body = html::fill(
      embedded::problem_html,
      {{"detail", problem.detail}, {"hint", problem.hint}, {"back", problem.back}, {"label", problem.label}});
  Response response;
  response.status = status;
  response.body = layout(kNone, page, "", request, caller);
  return response;
}

Response no_such(std::string_view what, const Request& request, const Caller& caller) {
  return problem_page(404, {"Not found", "There is no such " + std::string(what) + ".", "", "/"}, request, caller);
}

Response sign_in_page(unsigned status, const std::string& next, const std::string& problem, const std::string& link,
                      bool by_password) {
  Response response;
  response.status = status;
  response.body = html::fill(embedded::sign_in_html, {{"next", next},
                                                      {"problem", problem},
                                                      {"link", link},
                                                      {"by_password", by_password && link.empty()},
                                                      {"by_token", link.empty()}})
                      .text();
  return response;
}

} // namespace holdfast::serve
