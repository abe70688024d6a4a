#include "services/serve/site.hpp"

#include "lib/archive/html.hpp"
#include "lib/archive/page_style.hpp"
#include "lib/base/duration.hpp"
#include "lib/base/error.hpp"
#include "lib/pg/sha256.hpp"
#include "lib/store/why.hpp"
#include "services/serve/assets.hpp"
#include "services/serve/metrics.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <functional>

namespace holdfast::serve {

namespace {

using archive::counted;
using archive::grouped;
using archive::html_escape;
using archive::status_badge;

constexpr int kPage = 48;            // snapshots on a page
constexpr int kRows = 50;            // rows of a list
constexpr int kSearchWindow = 20000; // snapshots that one search looks at

bool is_uuid(std::string_view text) {
  if (text.size() != 36) return false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool dash = at == 8 || at == 13 || at == 18 || at == 23;
    const char c = text[at];
    const bool hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
    if (dash ? c != '-' : !hex) return false;
  }
  return true;
}

std::string short_id(const std::string& id) { return id.size() > 8 ? id.substr(id.size() - 8) : id; }

std::string number(std::int64_t value) { return grouped(static_cast<std::uint64_t>(std::max<std::int64_t>(value, 0))); }

std::string size_of(std::int64_t bytes) {
  return bytes <= 0 ? "" : base::format_size(static_cast<std::uint64_t>(bytes));
}

std::string seconds(const pg::Row& row, std::string_view column) {
  if (row.is_null(column)) return "";
  return base::format_duration(std::chrono::milliseconds(static_cast<std::int64_t>(row.number(column) * 1000)));
}

std::string crawl_link(const std::string& id, const std::string& text) {
  return "<a href=\"/crawl/" + html_escape(id) + "\">" + html_escape(text) + "</a>";
}
std::string snapshot_link(const std::string& id, const std::string& text) {
  return "<a href=\"/snapshot/" + html_escape(id) + "\">" + html_escape(text) + "</a>";
}

// A table whose cells are HTML already; `fold`: on a phone each row becomes a block.
class Table {
public:
  struct Column {
    std::string title, style;
  };
  Table(std::vector<Column> columns, std::string caption)
      : columns_(std::move(columns)), caption_(std::move(caption)) {}
  void row(const std::vector<std::string>& cells) {
    rows_ += "<tr>";
    for (std::size_t at = 0; at < cells.size(); ++at)
      rows_ += "<td" + (columns_[at].style.empty() ? "" : " class=\"" + columns_[at].style + "\"") +
               (at == 0 || cells[at].empty() ? "" : " data-l=\"" + columns_[at].title + "\"") + ">" + cells[at] +
               "</td>";
    rows_ += "</tr>\n";
  }
  std::string html(const std::string& none) const {
    if (rows_.empty()) return "<p class=\"none\">" + none + "</p>";
    std::string out = "<div class=\"wide-table\"><table class=\"grid fold\"><caption class=\"sr\">" + caption_ +
                      "</caption><thead><tr>";
    for (const auto& column : columns_)
      out += "<th scope=\"col\"" + (column.style.empty() ? "" : " class=\"" + column.style + "\"") + ">" +
             column.title + "</th>";
    return out + "</tr></thead><tbody>\n" + rows_ + "</tbody></table></div>";
  }

private:
  std::vector<Column> columns_;
  std::string caption_, rows_;
};

std::string progress(std::int64_t done, std::int64_t all) {
  return "<progress max=\"" + std::to_string(std::max<std::int64_t>(all, 1)) + "\" value=\"" + std::to_string(done) +
         "\" aria-label=\"" + number(done) + " of " + number(all) + " done\"></progress> " + number(done) + "/" +
         number(all);
}

std::string state_of(const pg::Row& row) {
  return status_badge(row.text("status") == "sealed" ? row.text_or("outcome", "sealed") : row.text("status"));
}

// Sections
// ---------------------------------------------------------------------------------------------------------------

using Section = std::string (*)(pg::Connection&);

std::string numbers_section(pg::Connection& connection) {
  const auto result = connection.call("select * from holdfast.v_status");
  const auto row = result.one();
  std::string out = "<dl class=\"numbers\">";
  const auto fact = [&](const char* name, const std::string& value) {
    out += std::string("<div><dt>") + name + "</dt><dd>" + value + "</dd></div>";
  };
  fact("Nodes", number(row.integer("nodes")));
  fact("In work", number(row.integer("snapshots_held")) + " of " + number(row.integer("slots")));
  fact("Hooks running", number(row.integer("hooks_running")));
  fact("Open snapshots", number(row.integer("snapshots_open")));
  fact("Open crawls",
       number(row.integer("crawls_open")) +
           (row.integer("crawls_paused") > 0 ? ", " + number(row.integer("crawls_paused")) + " paused" : ""));
  out += "</dl>";
  if (row.integer("crawls_to_do") > 0 && row.integer("nodes") == 0)
    out += "<p class=\"why\">There is work, but no node runs: <code>holdfast run</code>, or <code>holdfast "
           "worker</code>.</p>";
  return out;
}

std::string crawls_section(pg::Connection& connection) {
  // Open ones first: those are few, and an index finds them.
  const auto rows = connection.call(
      "(select * from holdfast.v_crawl where status <> 'sealed' order by created_at desc limit 30) union all "
      "(select * from holdfast.v_crawl where status = 'sealed' order by created_at desc limit 30)");
  Table table({{"Crawl", "long"},
               {"State", "nw"},
               {"Progress", "nw"},
               {"Failed", "n"},
               {"Partial", "n"},
               {"Size", "n"},
               {"Added", "nw"}},
              "Crawls");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto row = rows[i];
    const auto total = row.integer("total"), open = row.integer("open");
    const auto label = row.text("label");
    table.row({crawl_link(row.text("id"), label.empty() ? row.text("first_url") : label), state_of(row),
               progress(total - open, total + row.integer("seeds_left")),
               row.integer("failed") > 0 ? number(row.integer("failed")) : "",
               row.integer("partial") > 0 ? number(row.integer("partial")) : "", size_of(row.integer("bytes")),
               html_escape(row.text("created_at").substr(0, 16))});
  }
  return table.html("There is no crawl yet: <code>holdfast add https://example.org/</code>");
}

std::string stuck_section(pg::Connection& connection) {
  const auto rows =
      connection.call("select *, extract(epoch from stuck_for) as seconds from holdfast.v_stuck limit 20");
  if (rows.empty()) return "";
  Table table({{"What", "long"}, {"Wrong", ""}, {"For", "nw"}, {"Why", "long"}}, "What is stuck");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto row = rows[i];
    const auto kind = row.text("kind"), id = row.text("id");
    const auto name = row.text_or("name", short_id(id));
    table.row({kind == "crawl"      ? crawl_link(id, name)
               : kind == "snapshot" ? snapshot_link(id, name)
                                    : html_escape(name),
               html_escape(row.text("what")), seconds(row, "seconds"), html_escape(row.text_or("reason", ""))});
  }
  return "<h2>Stuck</h2>" + table.html("");
}

std::string running_section(pg::Connection& connection) {
  const auto rows = connection.call("select *, extract(epoch from running_for) as seconds from holdfast.v_running "
                                    "where not background order by running_for desc limit 20");
  Table table({{"Hook", "nw"}, {"For", "nw"}, {"Snapshot", "long"}, {"Node", ""}}, "Hooks that run");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto row = rows[i];
    table.row({html_escape(row.text("plugin")), seconds(row, "seconds"),
               snapshot_link(row.text("snapshot_id"), row.text("url")), html_escape(row.text("node"))});
  }
  return table.html("Nothing runs.");
}

std::string failures_section(pg::Connection& connection) {
  const auto rows =
      connection.call("select * from holdfast.v_failure order by ended_at desc limit " + std::to_string(kRows));
  Table table({{"When", "nw"}, {"Plugin", "nw"}, {"Why", "long"}, {"Snapshot", "long"}}, "Hooks that failed");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto row = rows[i];
    auto error = row.text("error");
    if (error.size() > 400) error = error.substr(0, 400) + " …";
    table.row({html_escape(row.text("ended_at").substr(0, 19)), html_escape(row.text("plugin")), html_escape(error),
               snapshot_link(row.text("snapshot_id"), row.text("url"))});
  }
  return table.html("No hook has failed.");
}

std::string nodes_section(pg::Connection& connection) {
  const auto rows = connection.call(
      "select n.*, extract(epoch from n.lease_left) as lease_seconds, w.reason from holdfast.v_worker n "
      "cross join lateral holdfast.why(n.id) w where n.status = 'running' order by n.started_at limit 200");
  Table table({{"Process", "long"}, {"Machine", ""}, {"Holds", "n"}, {"Lease left", "nw"}, {"What it does", "long"}},
              "Processes that run");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto row = rows[i];
    table.row({html_escape(row.text("label")), html_escape(row.text("hostname")),
               row.text("process_type") == "worker" ? row.text("held") + "/" + row.text("slots") : "",
               seconds(row, "lease_seconds"), html_escape(row.text("reason"))});
  }
  return table.html("No node runs: <code>holdfast worker</code> starts one here.");
}

std::string tree_section(pg::Connection& connection) {
  const auto rows = connection.call(
      "select tree, state, hostname, pid, extract(epoch from age) as seconds from holdfast.v_process limit 500");
  if (rows.empty()) return "<p class=\"none\">Nothing runs.</p>";
  std::string out = "<div class=\"wide-table\"><table class=\"grid\"><caption class=\"sr\">Processes and their "
                    "hooks</caption><thead><tr>"
                    "<th scope=\"col\">Process</th><th scope=\"col\">State</th><th scope=\"col\">Machine</th><th "
                    "scope=\"col\" class=\"n\">Pid</th>"
                    "<th scope=\"col\">For</th></tr></thead><tbody>";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto row = rows[i];
    out += "<tr><td><pre>" + html_escape(row.text("tree")) + "</pre></td><td class=\"nw\">" +
           html_escape(row.text("state")) + "</td><td>" + html_escape(row.text("hostname")) + "</td><td class=\"n\">" +
           html_escape(row.text_or("pid", "")) + "</td><td class=\"nw\">" + seconds(row, "seconds") + "</td></tr>";
  }
  return out + "</tbody></table></div>";
}

std::string ended_section(pg::Connection& connection) {
  const auto rows =
      connection.call("select * from holdfast.v_worker where status = 'exited' order by started_at desc limit 20");
  Table table({{"Process", "long"}, {"Machine", ""}, {"Ended", "nw"}, {"Why", "long"}}, "Processes that ended");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto row = rows[i];
    table.row({html_escape(row.text("label")), html_escape(row.text("hostname")),
               html_escape(row.text("ended_at").substr(0, 19)), html_escape(row.text_or("exit_reason", ""))});
  }
  return table.html("None has ended yet.");
}

std::string hosts_section(pg::Connection& connection) {
  const auto rows =
      connection.call("select h.name, greatest(h.min_delay, h.robots_delay) as min_delay, h.max_parallel, h.backoff_level, w.reason from holdfast.v_host h "
                      "cross join lateral holdfast.why(h.name) w order by h.backoff_until desc nulls last, h.paused "
                      "desc, h.name limit 200");
  Table table({{"Host", "long"}, {"Least delay", "nw"}, {"At once", "n"}, {"Now", "long"}}, "Web sites with limits");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto row = rows[i];
    table.row({html_escape(row.text("name")), html_escape(row.text("min_delay")),
               html_escape(row.text_or("max_parallel", "")), html_escape(row.text("reason"))});
  }
  return table.html("No web site has limits of its own.");
}

std::string crawl_section(pg::Connection& connection, const std::string& id) {
  const auto rows = connection.call("select * from holdfast.v_crawl where id = $1::uuid", pg::Params::of(id));
  if (rows.empty()) return "";
  const auto row = rows[0];
  const auto why = store::why(connection, id);
  const auto total = row.integer("total"), open = row.integer("open");
  std::string out = "<p>" + state_of(row) + " " + progress(total - open, total + row.integer("seeds_left")) +
                    "</p><p class=\"why\">" + html_escape(why.reason) + "</p><dl class=\"facts\">";
  const auto fact = [&](const char* name, const std::string& value) {
    if (!value.empty()) out += std::string("<div><dt>") + name + "</dt><dd>" + html_escape(value) + "</dd></div>";
  };
  fact("Succeeded", number(row.integer("succeeded")));
  fact("Partial", number(row.integer("partial")));
  fact("Failed", number(row.integer("failed")));
  fact("Cancelled", row.integer("cancelled") > 0 ? number(row.integer("cancelled")) : "");
  fact("Size", size_of(row.integer("bytes")));
  fact("Depth", row.text("max_depth"));
  fact("At most", row.integer("max_urls") > 0 ? number(row.integer("max_urls")) + " URLs" : "");
  fact("Added",
       row.text("created_at").substr(0, 16) + (row.text("created_by").empty() ? "" : " by " + row.text("created_by")));
  fact("Sealed", row.is_null("sealed_at") ? "" : row.text("sealed_at").substr(0, 16));
  return out + "</dl>";
}

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
                                   {"/nodes", "Nodes"},
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

std::string place(const std::string& id, const std::string& html) {
  return "<div id=\"" + id + "\">" + html + "</div>";
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
  options.statement_timeout = std::chrono::milliseconds(10000);
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
  if (!options_.hosts.empty() &&
      std::find(options_.hosts.begin(), options_.hosts.end(), request.host) == options_.hosts.end()) {
    response = text(403, "ask for this page by the address it listens on\n");
  } else if (request.path == "/healthz") {
    response = text(200, "ok\n");
  } else if (const auto token = request.query.find("token");
             !pass_.empty() && token != request.query.end() &&
             pg::sha256_hex(token->second) == pg::sha256_hex(options_.token)) {
    response = text(303, "");
    response.headers = {{"Location", request.path.starts_with("//") ? "/" : request.path},
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
  const auto sections = connections_.with([&](pg::Connection& connection) {
    nlohmann::json all = nlohmann::json::object();
    if (page == "overview")
      all = {{"numbers", numbers_section(connection)},
             {"stuck", stuck_section(connection)},
             {"crawls", crawls_section(connection)},
             {"running", running_section(connection)}};
    else if (page == "nodes")
      all = {{"nodes", nodes_section(connection)},
             {"tree", tree_section(connection)},
             {"ended", ended_section(connection)}};
    else if (page == "hosts")
      all = {{"hosts", hosts_section(connection)}};
    else if (page == "failures")
      all = {{"failures", failures_section(connection)}};
    else if (page.starts_with("crawl ") && is_uuid(page.substr(6)))
      all = {{"crawl", crawl_section(connection, page.substr(6))}};
    return all;
  });
  Response response;
  response.type = "application/json";
  response.body = nlohmann::json{{"sections", sections}}.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
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
  const std::string origin = files_origin(request);

  const auto file_href = [&](const std::string& file) { return html_escape(origin + options_.files->href(file)); };
  const auto tile = [&](const pg::Row& row) {
    const auto title = row.text_or("title", "");
    const auto url = row.text("url");
    const auto name = title.empty() ? std::string(archive::without_scheme(url)) : title;
    std::string picture = "<span>" + html_escape(name.substr(0, 60)) + "</span>";
    if (options_.files && !row.is_null("thumbnail") && !row.is_null("directory"))
      picture = "<img loading=\"lazy\" alt=\"\" src=\"" +
                file_href(row.text("directory") + "/" + row.text("thumbnail")) + "\">";
    const auto state = row.text("status") == "sealed" ? row.text_or("outcome", "sealed") : row.text("status");
    return "<li class=\"tile\"><a class=\"thumb\" tabindex=\"-1\" aria-hidden=\"true\" href=\"/snapshot/" +
           row.text("id") + "\">" + picture + "</a><h3>" + snapshot_link(row.text("id"), name) +
           "</h3><p class=\"where\">" + html_escape(archive::without_scheme(url)) + "</p><p class=\"meta\">" +
           status_badge(state) + "</p></li>\n";
  };

  return connections_.with([&](pg::Connection& connection) -> Response {
    Page page;
    if (path == "/") {
      page = {"Crawls", "/", "overview",
              mast("What is kept, and what is being done") + place("numbers", numbers_section(connection)) +
                  "<section>" + place("stuck", stuck_section(connection)) + "</section>" +
                  headed("Crawls", "crawls", crawls_section(connection)) +
                  headed("Running now", "running", running_section(connection))};
    } else if (path == "/nodes") {
      page = {"Nodes", "/nodes", "nodes",
              mast("Nodes") + place("nodes", nodes_section(connection)) +
                  headed("What runs, as a tree", "tree", tree_section(connection)) +
                  headed("Ended", "ended", ended_section(connection))};
    } else if (path == "/hosts") {
      page = {"Hosts", "/hosts", "hosts", mast("Web sites with limits") + place("hosts", hosts_section(connection))};
    } else if (path == "/failures") {
      page = {"Failures", "/failures", "failures",
              mast("Latest failures") + place("failures", failures_section(connection))};
    } else if (path == "/events") {
      const auto rows = connection.call("select * from holdfast.v_event order by id desc limit 100");
      Table table({{"When", "nw"}, {"What", "nw"}, {"Event", "nw"}, {"Detail", "long"}}, "Events");
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const auto row = rows[i];
        const auto kind = row.text("lifecycle"), id = row.text("object_id");
        table.row({html_escape(row.text("at").substr(0, 19)),
                   html_escape(kind) + " " +
                       (kind == "crawl"      ? crawl_link(id, short_id(id))
                        : kind == "snapshot" ? snapshot_link(id, short_id(id))
                                             : html_escape(short_id(id))),
                   html_escape(row.text("event")) + " → " + html_escape(row.text("to_state")),
                   html_escape(row.text_or("detail", ""))});
      }
      page = {"Events", "/events", "", mast("What happened last") + table.html("Nothing yet.")};
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
        std::string escaped;
        static constexpr char digits[] = "0123456789ABCDEF";
        for (const char character : query)
          (escaped += '%', escaped += digits[static_cast<unsigned char>(character) >> 4],
           escaped += digits[static_cast<unsigned char>(character) & 15]);
        more = "<a class=\"more\" href=\"/search?q=" + escaped + "&amp;before=" + next + "\">Look among older ones</a>";
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
      const auto parts = connection.call("select * from holdfast.crawl_snapshots($1::uuid, $2::uuid, $3::bigint)",
                                         pg::Params::of(id, before, kPage));
      std::string tiles;
      for (std::size_t i = 0; i < parts.size(); ++i)
        tiles += tile(parts[i]);
      std::string more;
      if (parts.size() == kPage)
        more = "<a class=\"more\" href=\"/crawl/" + id + "?before=" + parts[parts.size() - 1].text("id") +
               "\">Earlier ones</a>";
      page = {name, "/", "crawl " + id,
              "<div class=\"mast\"><p class=\"kicker\">Crawl " + html_escape(id) + "</p><h1>" + html_escape(name) +
                  "</h1></div>" + place("crawl", crawl_section(connection, id)) + "<section><h2>Snapshots" +
                  (before ? ", earlier" : "") + "</h2>" +
                  (tiles.empty() ? "<p class=\"none\">None yet.</p>" : "<ul class=\"tiles\">" + tiles + "</ul>") +
                  more + "</section>"};
    } else if (path.starts_with("/snapshot/") && is_uuid(path.substr(10))) {
      const auto id = path.substr(10);
      const auto rows = connection.call("select * from holdfast.v_snapshot where id = $1::uuid", pg::Params::of(id));
      if (rows.empty()) return text(404, "there is no such snapshot\n");
      const auto row = rows[0];
      const auto title = row.text_or("title", "");
      const auto directory = row.text_or("directory", "");
      const auto why = store::why(connection, id);
      std::string body = "<div class=\"mast\"><p class=\"kicker\">" + state_of(row) + " Snapshot " + html_escape(id) +
                         "</p><h1>" + html_escape(title.empty() ? row.text("url") : title) + "</h1><p class=\"url\">" +
                         archive::outside_link(row.text("url"), row.text("url")) + "</p>";
      body += "<p class=\"ways\">";
      if (!directory.empty() && options_.files)
        body += "<a href=\"" + file_href(directory + "/index.html") + "\">Open the archived page</a>";
      body += "<a href=\"/crawl/" + html_escape(row.text("crawl_id")) + "\">Its crawl</a></p></div><p class=\"why\">" +
              html_escape(why.reason) + "</p><dl class=\"facts\">";
      const auto fact = [&](const char* name, const std::string& value) {
        if (!value.empty()) body += std::string("<div><dt>") + name + "</dt><dd>" + html_escape(value) + "</dd></div>";
      };
      fact("Response", row.is_null("http_status")
                           ? ""
                           : "HTTP " + row.text("http_status") + (row.is_null("mime") ? "" : ", " + row.text("mime")));
      fact("Depth", row.text("depth"));
      fact("Files", row.is_null("files") ? "" : row.text("files"));
      fact("Size", row.is_null("bytes") ? "" : size_of(row.integer("bytes")));
      fact("Attempts", row.text_or("attempts", ""));
      fact("Owners lost", row.integer_or("owners_lost", 0) > 0 ? row.text("owners_lost") : "");
      fact("Node", row.text_or("owner", ""));
      fact("Added", row.text("created_at").substr(0, 19));
      fact("Sealed", row.text_or("sealed_at", "").substr(0, 19));
      fact("Manifest", row.text_or("manifest_sha256", "").substr(0, 16));
      body += "</dl>";
      const auto results = connection.call("select *, output_files::text as files_json from holdfast.v_result where "
                                           "snapshot_id = $1::uuid and counts order by started_at",
                                           pg::Params::of(id));
      Table table(
          {{"Plugin", "nw"}, {"Status", "nw"}, {"Output", "long"}, {"Time", "n"}, {"Memory", "n"}, {"Size", "n"}},
          "Results of the hooks");
      std::string shot;
      for (std::size_t i = 0; i < results.size(); ++i) {
        const auto result = results[i];
        const auto plugin = result.text("plugin");
        std::string files;
        const auto list = nlohmann::json::parse(result.text("files_json"), nullptr, false);
        int shown = 0;
        if (!directory.empty() && options_.files && list.is_array())
          for (const auto& file : list) {
            if (!file.is_object() || !file.contains("path") || !file["path"].is_string()) continue;
            const auto name = file["path"].get<std::string>();
            const auto type = file.value("type", std::string());
            if (shot.empty() && plugin == "screenshot" && type.starts_with("image/"))
              shot = "<figure class=\"shot\"><img alt=\"Screenshot of the page\" src=\"" +
                     file_href(directory + "/" + plugin + "/" + name) + "\"></figure>";
            if (++shown <= 12)
              files +=
                  "<a href=\"" + file_href(directory + "/" + plugin + "/" + name) + "\">" + html_escape(name) + "</a>";
          }
        if (shown > 12)
          files += "<span>and " + counted(static_cast<std::uint64_t>(shown - 12), "more file") + "</span>";
        auto error = result.text("error");
        if (error.size() > 600) error = error.substr(0, 600) + " …";
        table.row({html_escape(plugin), status_badge(result.text("status")),
                   html_escape(result.text("output")) + (error.empty() ? "" : "<br>" + html_escape(error)) +
                       (files.empty() ? "" : "<div class=\"files\">" + files + "</div>"),
                   result.is_null("wall_ms")
                       ? ""
                       : base::format_duration(std::chrono::milliseconds(result.integer("wall_ms"))),
                   size_of(result.integer_or("peak_memory_bytes", 0)), size_of(result.integer_or("output_bytes", 0))});
      }
      body += (shot.empty() ? "" : "<section>" + shot + "</section>") + "<section><h2>Results</h2>" +
              table.html("No hook has run yet.") + "</section>";
      page = {title.empty() ? row.text("url") : title, "/", "", body};
    } else {
      return text(404, "there is no such page\n");
    }
    Response response;
    response.body = layout(page, query);
    return response;
  });
}

} // namespace holdfast::serve
