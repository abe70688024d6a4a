#include "services/serve/site.hpp"

#include "lib/archive/html.hpp"
#include "lib/archive/page_style.hpp"
#include "lib/base/error.hpp"
#include "lib/pg/sha256.hpp"
#include "services/serve/assets.hpp"
#include "services/serve/metrics.hpp"
#include "services/serve/parts.hpp"
#include "services/serve/sections.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <functional>

namespace holdfast::serve {

namespace {

using archive::html_escape;
using archive::status_badge;

constexpr int kSearchWindow = 20000; // snapshots that one search looks at

// Pages
// ------------------------------------------------------------------------------------------------------------------

struct Page {
  std::string title, current, live, body;
};

std::string layout(const Page& page, const std::string& query) {
  std::string out =
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>" +
      html_escape(page.title) +
      " – Holdfast</title>\n<link rel=\"icon\" href=\"/icon.svg\">\n"
      "<link rel=\"stylesheet\" href=\"/style.css\">\n<script src=\"/live.js\" defer></script>\n</head>\n<body "
      "data-live=\"" +
      html_escape(page.live) + "\">\n" + std::string(archive::kIconSprite) +
      "<a class=\"skip\" href=\"#content\">To the content</a>\n<div class=\"page\">\n<header class=\"bar\">"
      "<a class=\"name\" href=\"/\">Holdfast</a><nav aria-label=\"Pages\">";
  for (const auto& [path, name] : {std::pair{"/", "Crawls"},
                                   {"/workers", "Workers"},
                                   {"/hosts", "Hosts"},
                                   {"/failures", "Failures"},
                                   {"/events", "Events"}})
    out += std::string("<a href=\"") + path + "\"" + (page.current == path ? " aria-current=\"page\"" : "") + ">" +
           name + "</a>";
  return out +
         "</nav><form action=\"/search\" role=\"search\"><label class=\"sr\" for=\"q\">Search URL, title or tag</label>"
         "<input id=\"q\" name=\"q\" type=\"search\" placeholder=\"URL, title or tag ( / )\" value=\"" +
         html_escape(query) +
         "\"><button>Search</button></form></header>\n<p id=\"live\" class=\"still\" role=\"status\"></p>\n<main "
         "id=\"content\">\n" +
         page.body + "\n</main>\n</div>\n</body>\n</html>\n";
}

// Tells a browser whether a section has changed.
std::string digest_of(const std::string& html) { return pg::sha256_hex(html).substr(0, 16); }

std::string place(const std::string& id, const std::string& html) {
  return "<div id=\"" + id + "\" data-digest=\"" + digest_of(html) + "\">" + html + "</div>";
}

std::string headed(const std::string& title, const std::string& id, const std::string& html) {
  return "<section><h2>" + title + "</h2>" + place(id, html) + "</section>";
}

std::string mast(const std::string& title) { return "<div class=\"mast\"><h1>" + html_escape(title) + "</h1></div>"; }

Response text(unsigned status, std::string body) {
  Response response;
  response.status = status;
  response.type = "text/plain; charset=utf-8";
  response.body = std::move(body);
  return response;
}

} // namespace

std::unique_ptr<pg::Connection> Connections::take(bool fresh) {
  if (!fresh) {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      auto connection = std::move(idle_.back());
      idle_.pop_back();
      return connection;
    }
  }
  pg::ConnectionOptions options;
  options.application_name = "holdfast serve";
  options.statement_timeout = patience_;
  options.connect_timeout = std::min(options.connect_timeout, patience_);
  options.answer_timeout = patience_ + std::chrono::seconds(1);
  auto connection = std::make_unique<pg::Connection>(dsn_, options);
  connection->call("set default_transaction_read_only = on");
  return connection;
}

void Connections::give_back(std::unique_ptr<pg::Connection> connection) {
  const std::lock_guard lock(mutex_);
  if (!connection->broken() && idle_.size() < 8) idle_.push_back(std::move(connection));
}

Site::Site(SiteOptions options)
    : options_(std::move(options)), pass_(options_.token.empty() ? "" : pg::sha256_hex("page " + options_.token)),
      connections_(options_.dsn) {}

std::string Site::files_origin(const Request& request) const {
  return "http://" + request.host + ":" + std::to_string(options_.files_port);
}

bool Site::admitted(const Request& request) const {
  if (pass_.empty()) return true;
  const auto same = [](std::string_view left, std::string_view right) { // takes as long however much is right
    const auto a = pg::sha256_hex(left), b = pg::sha256_hex(right);
    return a == b;
  };
  if (request.authorization.starts_with("Bearer ") && same(request.authorization.substr(7), options_.token))
    return true;
  for (std::string_view rest = request.cookie; !rest.empty();) {
    const auto semicolon = std::min(rest.find(';'), rest.size());
    auto one = rest.substr(0, semicolon);
    while (one.starts_with(' '))
      one.remove_prefix(1);
    if (one.starts_with("holdfast=") && same(one.substr(9), pass_)) return true;
    rest.remove_prefix(std::min(semicolon + 1, rest.size()));
  }
  return false;
}

Response Site::answer(const Request& request) {
  Response response;
  // A name that leads here but is not ours: a page elsewhere that had its name changed to our address.
  if (!is_named(options_.hosts, request)) {
    response = text(403, "ask for this page by the address it listens on\n");
  } else if (request.path == "/healthz") {
    response = text(200, "ok\n");
  } else if (const auto token = request.query.find("token");
             !pass_.empty() && token != request.query.end() &&
             pg::sha256_hex(token->second) == pg::sha256_hex(options_.token)) {
    response = text(303, "");
    response.headers = {{"Location", is_plain_path(request.path) ? request.path : "/"},
                        {"Set-Cookie", "holdfast=" + pass_ + "; Path=/; HttpOnly; SameSite=Strict; Max-Age=2592000"}};
  } else if (!admitted(request)) {
    response.status = 401;
    response.headers = {{"WWW-Authenticate", "Bearer"}};
    response.body =
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" "
        "content=\"width=device-width\">"
        "<title>Holdfast</title><link rel=\"stylesheet\" href=\"/style.css\"><div class=\"page\"><main><div "
        "class=\"mast\"><h1>Holdfast</h1></div>"
        "<form action=\"/\"><p><label for=\"t\">Token</label></p><p><input id=\"t\" name=\"token\" type=\"password\" "
        "autocomplete=\"current-password\" autofocus> <button>Look</button></p></form></main></div></html>";
    if (request.path == "/style.css") response = route(request);
  } else {
    response = route(request);
  }
  response.headers.emplace_back(
      "Content-Security-Policy",
      "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; form-action 'self'; "
      "base-uri 'none'; frame-ancestors 'none'; img-src 'self'" +
          (options_.files && response.type.starts_with("text/html") ? " " + html_escape(files_origin(request)) : ""));
  response.headers.emplace_back("Referrer-Policy", "no-referrer");
  response.headers.emplace_back("X-Frame-Options", "DENY");
  response.headers.emplace_back("Cross-Origin-Opener-Policy", "same-origin");
  response.headers.emplace_back("Cross-Origin-Resource-Policy", "same-origin");
  if (!response.type.starts_with("text/css") && !response.type.starts_with("text/javascript"))
    response.headers.emplace_back("Cache-Control", "no-store");
  return response;
}

Response Site::live(const Request& request) {
  const auto wanted = request.query.find("page");
  const std::string page = wanted == request.query.end() ? "" : wanted->second;
  const Links links{options_.files, files_origin(request)};
  const auto sections = connections_.with([&](pg::Connection& connection) {
    nlohmann::json all = nlohmann::json::object();
    if (page == "overview")
      all = {{"numbers", numbers_section(connection)},
             {"stuck", stuck_section(connection)},
             {"crawls", crawls_section(connection)},
             {"running", running_section(connection)}};
    else if (page == "workers")
      all = {{"workers", workers_section(connection)},
             {"tree", tree_section(connection)},
             {"ended", ended_section(connection)}};
    else if (page == "hosts")
      all = {{"hosts", hosts_section(connection)}};
    else if (page == "failures")
      all = {{"failures", failures_section(connection)}};
    else if (page == "events")
      all = {{"events", events_section(connection)}};
    else if (page.starts_with("crawl ") && is_uuid(page.substr(6)))
      all = {{"crawl", crawl_section(connection, page.substr(6))},
             {"gallery", gallery_section(connection, page.substr(6), std::nullopt, links)}};
    else if (page.starts_with("earlier ") && is_uuid(page.substr(8)))
      all = {{"crawl", crawl_section(connection, page.substr(8))}};
    else if (page.starts_with("snapshot ") && is_uuid(page.substr(9))) {
      const auto parts = snapshot_sections(connection, page.substr(9), links);
      if (!parts.head.empty()) all = {{"head", parts.head}, {"shot", parts.shot}, {"results", parts.results}};
    }
    return all;
  });
  Response response;
  response.type = "application/json";
  nlohmann::json digests = nlohmann::json::object();
  for (const auto& [id, html] : sections.items())
    digests[id] = digest_of(html.get<std::string>());
  response.body = nlohmann::json{{"sections", sections}, {"digests", digests}}.dump(
      -1, ' ', false, nlohmann::json::error_handler_t::replace);
  return response;
}

Response Site::route(const Request& request) {
  const auto& path = request.path;
  if (path == "/style.css")
    return {200, "text/css; charset=utf-8", std::string(archive::kPageStyle) + std::string(kSiteStyle), {}, -1};
  if (path == "/live.js") return {200, "text/javascript; charset=utf-8", std::string(kScript), {}, -1};
  if (path == "/icon.svg" || path == "/favicon.ico") return {200, "image/svg+xml", std::string(kIcon), {}, -1};
  if (path == "/live.json") return live(request);
  if (path == "/readyz") {
    connections_.with([](pg::Connection& connection) { return connection.call("select 1").size(); });
    return text(200, "ok\n");
  }
  if (path == "/metrics") {
    auto response =
        text(200, connections_.with([](pg::Connection& connection) { return collection_metrics(connection); }));
    response.type = "text/plain; version=0.0.4; charset=utf-8";
    return response;
  }

  const auto asked = request.query.find("q");
  const std::string query = asked == request.query.end() ? "" : asked->second;
  const auto from = request.query.find("before");
  const std::optional<std::string> before =
      from != request.query.end() && is_uuid(from->second) ? std::optional(from->second) : std::nullopt;
  const Links links{options_.files, files_origin(request)};

  return connections_.with([&](pg::Connection& connection) -> Response {
    Page page;
    if (path == "/") {
      page = {"Crawls", "/", "overview",
              mast("Overview") + place("numbers", numbers_section(connection)) + "<section>" +
                  place("stuck", stuck_section(connection)) + "</section>" +
                  headed("Running now", "running", running_section(connection)) +
                  headed("Crawls", "crawls", crawls_section(connection))};
    } else if (path == "/workers") {
      page = {"Workers", "/workers", "workers",
              mast("Workers") + place("workers", workers_section(connection)) +
                  headed("Process tree", "tree", tree_section(connection)) +
                  headed("Ended", "ended", ended_section(connection))};
    } else if (path == "/hosts") {
      page = {"Hosts", "/hosts", "hosts", mast("Per-host limits") + place("hosts", hosts_section(connection))};
    } else if (path == "/failures") {
      page = {"Failures", "/failures", "failures",
              mast("Latest failures") + place("failures", failures_section(connection))};
    } else if (path == "/events") {
      page = {"Events", "/events", "events", mast("Recent events") + place("events", events_section(connection))};
    } else if (path == "/search") {
      const auto rows = connection.call(
          "select *, null::text as thumbnail from holdfast.search($1, $2::uuid, $3::bigint, $4::bigint)",
          pg::Params::of(query, before, kSearchWindow, kPage));
      const auto end = connection.call("select holdfast.search_window($1::uuid, $2::bigint)::text as id",
                                       pg::Params::of(before, kSearchWindow));
      std::string list;
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const auto row = rows[i];
        const auto title = row.text_or("title", "");
        list += "<li><b>" +
                status_badge(row.text("status") == "sealed" ? row.text_or("outcome", "") : row.text("status")) +
                "</b><div>" + snapshot_link(row.text("id"), title.empty() ? row.text("url") : title) + "<br><span>" +
                html_escape(row.text("url")) + "</span></div></li>\n";
      }
      std::string more;
      const bool full = rows.size() == kPage;
      const auto next = full ? rows[rows.size() - 1].text("id") : end.one().text_or("id", "");
      if (!query.empty() && !next.empty()) {
        more = "<a class=\"more\" href=\"/search?q=" + query_escape(query) + "&amp;before=" + next +
               "\">Search older ones</a>";
      }
      page = {query.empty() ? "Search" : query, "/search", "",
              mast(query.empty() ? "Search" : "“" + query + "”") +
                  (list.empty()
                       ? "<p class=\"none\">Nothing " + std::string(before ? "more " : "") + "among the " +
                             number(kSearchWindow) + " newest snapshots" + (before ? " before that" : "") + ".</p>"
                       : "<ul class=\"quiet\">" + list + "</ul>") +
                  more};
    } else if (path.starts_with("/crawl/") && is_uuid(path.substr(7))) {
      const auto id = path.substr(7);
      const auto rows = connection.call("select * from holdfast.v_crawl where id = $1::uuid", pg::Params::of(id));
      if (rows.empty()) return text(404, "there is no such crawl\n");
      const auto label = rows[0].text("label");
      const auto name = label.empty() ? rows[0].text("first_url") : label;
      page = {name, "/", (before ? "earlier " : "crawl ") + id,
              "<div class=\"mast\"><p class=\"kicker\">Crawl " + html_escape(id) + "</p><h1>" + html_escape(name) +
                  "</h1></div>" + place("crawl", crawl_section(connection, id)) +
                  headed(before ? "Snapshots, earlier" : "Snapshots", "gallery",
                         gallery_section(connection, id, before, links))};
    } else if (path.starts_with("/snapshot/") && is_uuid(path.substr(10))) {
      const auto id = path.substr(10);
      const auto parts = snapshot_sections(connection, id, links);
      if (parts.head.empty()) return text(404, "there is no such snapshot\n");
      page = {parts.title, "/", "snapshot " + id,
              place("head", parts.head) + "<section>" + place("shot", parts.shot) + "</section>" +
                  headed("Results", "results", parts.results)};
    } else {
      return text(404, "there is no such page\n");
    }
    Response response;
    response.body = layout(page, query);
    return response;
  });
}

} // namespace holdfast::serve
