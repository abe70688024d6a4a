#include "services/serve/site.hpp"

#include "lib/base/characters.hpp"
#include "lib/base/json_text.hpp"
#include "lib/base/sha256.hpp"
#include "lib/base/uuid.hpp"
#include "lib/html/parts.hpp"
#include "lib/store/live.hpp"
#include "services/serve/cdx.hpp"
#include "services/serve/embedded.hpp"
#include "services/serve/metrics.hpp"
#include "services/serve/pages.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace holdfast::serve {

namespace {

// Every page. A path that ends in "/" and is not "/" is followed by an id; `live` is the page's name in /live.json,
// before the id.
struct Route {
  std::string_view path, tab, live, what;
  std::optional<Page> (*page)(const PageRequest&);
  bool has_id() const { return path.size() > 1 && path.ends_with('/'); }
};
constexpr std::array kRoutes = {
    Route{"/", "Crawls", "overview", "page", &overview_page},
    Route{"/workers", "Workers", "workers", "page", &workers_page},
    Route{"/hosts", "Hosts", "hosts", "page", &hosts_page},
    Route{"/failures", "Failures", "failures", "page", &failures_page},
    Route{"/events", "Events", "events", "page", &events_page},
    Route{"/search", "", "", "page", &search_page},
    Route{"/crawl/", "", "crawl", "crawl", &crawl_page},
    Route{"/snapshot/", "", "snapshot", "snapshot", &snapshot_page},
};
// Of a crawl's page that does not begin with its newest snapshots: new ones do not show.
constexpr std::string_view kEarlier = "earlier";
constexpr const char* kOldest = "00000000-0000-0000-0000-000000000000"; // nothing is before it

struct Found {
  const Route* route{nullptr};
  std::string id;
};

Found find_route(const std::string& path) {
  for (const Route& route : kRoutes) {
    if (!route.has_id() && path == route.path) return {&route, ""};
    if (route.has_id() && path.starts_with(route.path) && base::is_uuid(path.substr(route.path.size())))
      return {&route, path.substr(route.path.size())};
  }
  return {};
}

// "crawl 0198f7c2-..."
Found find_live(std::string_view name) {
  const auto blank = std::min(name.find(' '), name.size());
  const auto kind = name.substr(0, blank) == kEarlier ? "crawl" : name.substr(0, blank);
  const std::string id(blank < name.size() ? name.substr(blank + 1) : "");
  for (const Route& route : kRoutes)
    if (!route.live.empty() && route.live == kind && (route.has_id() ? base::is_uuid(id) : id.empty()))
      return {&route, id};
  return {};
}

// Tells a browser whether a section has changed.
std::string digest_of(const html::Html& html) { return base::sha256_hex(html.text()).substr(0, 16); }

std::string layout(const Route& route, const std::string& live, const Page& page, const std::string& query) {
  html::List tabs, sections;
  for (const Route& one : kRoutes)
    if (!one.tab.empty()) {
      const bool current = one.path == route.path || (route.has_id() && one.path == "/");
      tabs.push_back({{"path", one.path}, {"name", one.tab}, {"current", current}});
    }
  for (const auto& section : page.sections)
    sections.push_back({{"id", section.id},
                        {"name", section.name},
                        {"framed", section.framed},
                        {"digest", digest_of(section.html)},
                        {"html", section.html}});
  return html::fill(embedded::layout_html, {{"title", page.title},
                                            {"live", live},
                                            {"sprite", html::icon_sprite()},
                                            {"pages", std::move(tabs)},
                                            {"query", query},
                                            {"kicker", page.kicker},
                                            {"heading", page.heading},
                                            {"sections", std::move(sections)},
                                            {"body", page.body}})
      .text();
}

std::string parameter(const Request& request, const char* name) {
  const auto found = request.query.find(name);
  return found == request.query.end() ? "" : found->second;
}

} // namespace

Site::Site(SiteOptions options)
    : options_(std::move(options)), pass_(options_.token.empty() ? "" : base::sha256_hex("page " + options_.token)),
      connections_(options_.dsn) {}

std::string Site::files_origin(const Request& request) const {
  return "http://" + request.host + ":" + std::to_string(options_.files_port);
}

bool Site::admitted(const Request& request) const {
  if (pass_.empty()) return true;
  if (request.authorization.starts_with("Bearer ") && is_same_secret(request.authorization.substr(7), options_.token))
    return true;
  for (std::string_view rest = request.cookie; !rest.empty();) {
    const auto semicolon = std::min(rest.find(';'), rest.size());
    const auto one = base::trimmed(rest.substr(0, semicolon));
    if (one.starts_with("holdfast=") && is_same_secret(one.substr(9), pass_)) return true;
    rest.remove_prefix(std::min(semicolon + 1, rest.size()));
  }
  return false;
}

Response Site::answer(const Request& request) {
  auto response = admit(request);
  const auto header = [&](const char* name, std::string value) {
    response.headers.emplace_back(name, std::move(value));
  };
  const bool pictures = options_.files != nullptr && response.type.starts_with("text/html");
  header("Content-Security-Policy",
         "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; form-action 'self'; "
         "base-uri 'none'; frame-ancestors 'none'; img-src 'self'" +
             (pictures ? " " + files_origin(request) : ""));
  header("Referrer-Policy", "no-referrer");
  header("X-Frame-Options", "DENY");
  header("Cross-Origin-Opener-Policy", "same-origin");
  header("Cross-Origin-Resource-Policy", "same-origin");
  if (!response.type.starts_with("text/css") && !response.type.starts_with("text/javascript"))
    header("Cache-Control", "no-store");
  return response;
}

Response Site::admit(const Request& request) {
  // A name that leads here but is not ours: a page elsewhere that had its name changed to our address.
  if (!is_named(options_.hosts, request)) return plain(403, "ask for this page by the address it listens on\n");
  if (request.path == "/healthz") return plain(200, "ok\n");
  if (!pass_.empty() && request.query.contains("token") &&
      is_same_secret(parameter(request, "token"), options_.token)) {
    if (request.path == "/cdx") return route(request); // replay tools keep no cookie
    auto response = plain(303, "");
    response.headers = {{"Location", is_plain_path(request.path) ? request.path : "/"},
                        {"Set-Cookie", "holdfast=" + pass_ + "; Path=/; HttpOnly; SameSite=Strict; Max-Age=2592000"}};
    return response;
  }
  if (admitted(request) || request.path == "/style.css") return route(request);
  Response response;
  response.status = 401;
  response.headers = {{"WWW-Authenticate", "Bearer"}};
  response.body = embedded::sign_in_html;
  return response;
}

Response Site::route(const Request& request) {
  const auto& path = request.path;
  if (path == "/style.css")
    return content("text/css; charset=utf-8", html::page_style().text() + std::string(embedded::site_css));
  if (path == "/live.js") return content("text/javascript; charset=utf-8", std::string(embedded::live_js));
  if (path == "/icon.svg" || path == "/favicon.ico") return content("image/svg+xml", std::string(embedded::icon_svg));
  if (path == "/live.json") return live(request);
  if (path == "/readyz") {
    connections_.with([](pg::Connection& connection) { return store::ping(connection), true; });
    return plain(200, "ok\n");
  }
  if (path == "/metrics") {
    const auto samples = connections_.with([](pg::Connection& connection) { return store::metrics(connection); });
    return content(kPrometheusType, prometheus_text(samples));
  }
  if (path == "/cdx") return connections_.with([&](pg::Connection& connection) { return cdx(connection, request); });
  return page(request);
}

Response Site::page(const Request& request) {
  const auto found = find_route(request.path);
  if (found.route == nullptr) return plain(404, "there is no such page\n");
  const auto before = parameter(request, "before");
  const auto query = parameter(request, "q");
  const Links links{options_.files, files_origin(request), options_.replay};
  const auto page = connections_.with([&](pg::Connection& connection) {
    return found.route->page({connection, links, found.id, query,
                              base::is_uuid(before) ? std::optional(before) : std::nullopt, request.query});
  });
  if (!page) return plain(404, "there is no such " + std::string(found.route->what) + "\n");
  const bool whole = std::all_of(page->sections.begin(), page->sections.end(), [](const Section& s) { return s.live; });
  std::string live(whole ? found.route->live : kEarlier);
  if (found.route->has_id()) live += " " + found.id;
  Response response;
  response.body = layout(*found.route, live, *page, query);
  return response;
}

Response Site::live(const Request& request) {
  const auto name = parameter(request, "page");
  const auto found = find_live(name);
  const Links links{options_.files, files_origin(request), options_.replay};
  nlohmann::json sections = nlohmann::json::object(), digests = nlohmann::json::object();
  if (found.route != nullptr) {
    const auto page = connections_.with([&](pg::Connection& connection) {
      const auto before = name.starts_with(kEarlier) ? std::optional<std::string>(kOldest) : std::nullopt;
      return found.route->page({connection, links, found.id, "", before, request.query});
    });
    for (const auto& section : page ? page->sections : std::vector<Section>()) {
      if (!section.live) continue;
      sections[section.id] = section.html.text();
      digests[section.id] = digest_of(section.html);
    }
  }
  return content("application/json", base::json_text(nlohmann::json{{"sections", sections}, {"digests", digests}}));
}

} // namespace holdfast::serve
