#include "services/serve/sections.hpp"

#include "lib/archive/html.hpp"
#include "lib/base/duration.hpp"
#include "lib/store/why.hpp"
#include "services/serve/parts.hpp"

#include <nlohmann/json.hpp>

#include <chrono>

namespace holdfast::serve {

using archive::counted;
using archive::html_escape;
using archive::status_badge;

namespace {

constexpr int kRows = 50; // rows of a list
constexpr int kEvents = 100;
constexpr int kFilesShown = 12; // of a result
constexpr std::size_t kLongestError = 600;

} // namespace

std::string Links::file(const std::string& path) const { return html_escape(origin + files->href(path)); }

std::string numbers_section(pg::Connection& connection) {
  const auto result = connection.call("select * from holdfast.v_status");
  const auto row = result.one();
  std::string out = "<dl class=\"numbers\">";
  const auto fact = [&](const char* name, const std::string& value) {
    out += std::string("<div><dt>") + name + "</dt><dd>" + value + "</dd></div>";
  };
  fact("Workers", number(row.integer("workers")));
  fact("In work", number(row.integer("snapshots_held")) + " of " + number(row.integer("slots")));
  fact("Hooks running", number(row.integer("hooks_running")));
  fact("Open snapshots", number(row.integer("snapshots_open")));
  fact("Open crawls",
       number(row.integer("crawls_open")) +
           (row.integer("crawls_paused") > 0 ? ", " + number(row.integer("crawls_paused")) + " paused" : ""));
  out += "</dl>";
  if (row.integer("crawls_to_do") > 0 && row.integer("workers") == 0)
    out += "<p class=\"why\">There is work, but no worker runs: <code>holdfast run</code>, or <code>holdfast "
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
               when(row, "created_at")});
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
               html_escape(row.text("what")), seconds(row, "seconds"), sentence(row.text_or("reason", ""))});
  }
  return "<h2>Stuck</h2>" + table.html("");
}

std::string running_section(pg::Connection& connection) {
  const auto rows = connection.call("select *, extract(epoch from running_for) as seconds from holdfast.v_running "
                                    "where not background order by running_for desc limit 20");
  Table table({{"Hook", "nw"}, {"For", "nw"}, {"Snapshot", "long"}, {"Worker", ""}}, "Hooks that run");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto row = rows[i];
    table.row({html_escape(row.text("plugin")), seconds(row, "seconds"),
               snapshot_link(row.text("snapshot_id"), row.text("url")), html_escape(row.text("worker"))});
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
    table.row({when(row, "ended_at"), html_escape(row.text("plugin")), html_escape(error),
               snapshot_link(row.text("snapshot_id"), row.text("url"))});
  }
  return table.html("No hook has failed.");
}

std::string workers_section(pg::Connection& connection) {
  const auto rows = connection.call(
      "select n.*, extract(epoch from n.lease_left) as lease_seconds, w.reason from holdfast.v_worker n "
      "cross join lateral holdfast.why(n.id) w where n.status = 'running' order by n.started_at limit 200");
  Table table({{"Process", "long"}, {"Machine", ""}, {"Holds", "n"}, {"Lease left", "nw"}, {"What it does", "long"}},
              "Processes that run");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto row = rows[i];
    table.row({html_escape(row.text("label")), html_escape(row.text("hostname")),
               row.text("process_type") == "worker" ? row.text("held") + "/" + row.text("slots") : "",
               seconds(row, "lease_seconds"), sentence(row.text("reason"))});
  }
  return table.html("No worker runs: <code>holdfast worker</code> starts one here.");
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
    table.row({html_escape(row.text("label")), html_escape(row.text("hostname")), when(row, "ended_at"),
               html_escape(row.text_or("exit_reason", ""))});
  }
  return table.html("None has ended yet.");
}

std::string hosts_section(pg::Connection& connection) {
  const auto rows =
      connection.call("select h.name, extract(epoch from greatest(h.min_delay, h.robots_delay)) as delay_seconds, "
                      "h.max_parallel, w.reason from "
                      "holdfast.v_host h "
                      "cross join lateral holdfast.why(h.name) w order by h.backoff_until desc nulls last, h.paused "
                      "desc, h.name limit 200");
  Table table({{"Host", "long"}, {"Min delay", "nw"}, {"Max parallel", "n"}, {"Now", "long"}}, "Hosts with limits");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto row = rows[i];
    table.row({html_escape(row.text("name")), row.number("delay_seconds") > 0 ? seconds(row, "delay_seconds") : "",
               html_escape(row.text_or("max_parallel", "")), sentence(row.text("reason"))});
  }
  return table.html("No host has limits of its own.");
}

std::string crawl_section(pg::Connection& connection, const std::string& id) {
  const auto rows = connection.call("select * from holdfast.v_crawl where id = $1::uuid", pg::Params::of(id));
  if (rows.empty()) return "";
  const auto row = rows[0];
  const auto why = store::why(connection, id);
  const auto total = row.integer("total"), open = row.integer("open");
  std::string out = "<p>" + state_of(row) + " " + progress(total - open, total + row.integer("seeds_left")) +
                    "</p><p class=\"why\">" + sentence(why.reason) + "</p><dl class=\"facts\">";
  out += fact("Succeeded", number(row.integer("succeeded")));
  out += fact("Partial", number(row.integer("partial")));
  out += fact("Failed", number(row.integer("failed")));
  out += fact("Cancelled", row.integer("cancelled") > 0 ? number(row.integer("cancelled")) : "");
  out += fact("Size", size_of(row.integer("bytes")));
  out += fact("Depth", row.text("max_depth"));
  out += fact("At most", row.integer("max_urls") > 0 ? number(row.integer("max_urls")) + " URLs" : "");
  const auto by = row.text("created_by");
  out += fact("Added", when(row, "created_at") + (by.empty() ? "" : " by " + html_escape(by)));
  out += fact("Sealed", when(row, "sealed_at"));
  out += fact("Tags", tag_links(row.text_array("tags")));
  out += fact("Notes", html_escape(row.text("notes")));
  return out + "</dl>";
}

namespace {

std::string tile(const pg::Row& row, const Links& links) {
  const auto title = row.text_or("title", "");
  const auto url = row.text("url");
  const auto name = title.empty() ? std::string(archive::without_scheme(url)) : title;
  std::string picture = "<span>" + html_escape(name.substr(0, 60)) + "</span>";
  if (links.files != nullptr && !row.is_null("thumbnail") && !row.is_null("directory"))
    picture = "<img loading=\"lazy\" alt=\"\" src=\"" +
              links.file(row.text("directory") + "/" + row.text("thumbnail")) + "\">";
  const auto id = html_escape(row.text("id"));
  return "<li class=\"tile\" data-key=\"" + id +
         "\"><a class=\"thumb\" tabindex=\"-1\" aria-hidden=\"true\" href=\"/snapshot/" + id + "\">" + picture +
         "</a><h3>" + snapshot_link(row.text("id"), name) + "</h3><p class=\"where\">" +
         html_escape(archive::without_scheme(url)) + "</p><p class=\"meta\">" + state_of(row) + "</p></li>\n";
}

// Links to the files of a result; `shot`: the first picture of a page, if it has none yet.
std::string file_links(const pg::Row& result, const std::string& directory, const Links& links, std::string& shot) {
  const auto plugin = result.text("plugin");
  const auto list = nlohmann::json::parse(result.text("files_json"), nullptr, false);
  if (directory.empty() || links.files == nullptr || !list.is_array()) return {};
  std::string out;
  int count = 0;
  for (const auto& file : list) {
    if (!file.is_object() || !file.contains("path") || !file["path"].is_string()) continue;
    const auto name = file["path"].get<std::string>();
    const auto href = links.file(directory + "/" + plugin + "/" + name);
    if (shot.empty() && plugin == "screenshot" && file.value("type", std::string()).starts_with("image/")) shot = href;
    if (++count <= kFilesShown) out += "<a href=\"" + href + "\">" + html_escape(name) + "</a>";
  }
  if (count > kFilesShown)
    out += "<span>and " + counted(static_cast<std::uint64_t>(count - kFilesShown), "more file") + "</span>";
  return out;
}

} // namespace

std::string gallery_section(pg::Connection& connection, const std::string& crawl,
                            const std::optional<std::string>& before, const Links& links) {
  const auto rows = connection.call("select * from holdfast.crawl_snapshots($1::uuid, $2::uuid, $3::bigint)",
                                    pg::Params::of(crawl, before, kPage));
  if (rows.empty()) return "<p class=\"none\">None yet.</p>";
  std::string tiles;
  for (std::size_t i = 0; i < rows.size(); ++i)
    tiles += tile(rows[i], links);
  return "<ul class=\"tiles\">" + tiles + "</ul>" +
         (rows.size() < kPage ? ""
                              : "<a class=\"more\" href=\"/crawl/" + crawl +
                                    "?before=" + rows[rows.size() - 1].text("id") + "\">Earlier ones</a>");
}

SnapshotSections snapshot_sections(pg::Connection& connection, const std::string& id, const Links& links) {
  SnapshotSections sections;
  const auto rows = connection.call("select * from holdfast.v_snapshot where id = $1::uuid", pg::Params::of(id));
  if (rows.empty()) return sections;
  const auto row = rows[0];
  const auto title = row.text_or("title", ""), url = row.text("url");
  const auto directory = row.text_or("directory", "");
  sections.title = title.empty() ? url : title;

  auto& head = sections.head;
  head = "<div class=\"mast\"><p class=\"kicker\">" + state_of(row) + " Snapshot " + html_escape(id) + "</p><h1>" +
         html_escape(sections.title) + "</h1><p class=\"url\">" + archive::outside_link(url, url) +
         "</p><p class=\"ways\">";
  if (!directory.empty() && links.files != nullptr)
    head += "<a href=\"" + links.file(directory + "/index.html") + "\">Files of this snapshot</a>";
  head += "<a href=\"/crawl/" + html_escape(row.text("crawl_id")) + "\">Crawl</a></p></div><p class=\"why\">" +
          sentence(store::why(connection, id).reason) + "</p><dl class=\"facts\">";
  if (!row.is_null("http_status"))
    head += fact("Response", "HTTP " + row.text("http_status") + " " + html_escape(row.text_or("mime", "")));
  head += fact("Depth", row.text("depth"));
  head += fact("Kept", row.is_null("bytes") || row.integer("bytes") == 0
                           ? ""
                           : size_of(row.integer("bytes")) + " <span class=\"sub\">in " +
                                 counted(static_cast<std::uint64_t>(row.integer("files")), "file") + "</span>");
  head += fact("Attempts", row.text_or("attempts", ""));
  head += fact("Owners lost", row.integer_or("lapses", 0) > 0 ? row.text("lapses") : "");
  head += fact("Worker", html_escape(row.text_or("owner", "")));
  head += fact("Added", when(row, "created_at"));
  head += fact("Sealed", when(row, "sealed_at"));
  head += fact("Tags", tag_links(row.text_array("tags")));
  head += fact("Manifest", html_escape(row.text_or("manifest_sha256", "").substr(0, 16))) + "</dl>";

  const auto results = connection.call("select *, output_files::text as files_json from holdfast.v_result where "
                                       "snapshot_id = $1::uuid and counts order by started_at",
                                       pg::Params::of(id));
  Table table({{"Plugin", "nw"}, {"Status", "nw"}, {"Output", "long"}, {"Time", "n"}, {"Memory", "n"}, {"Size", "n"}},
              "Results of the hooks");
  std::string shot;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto result = results[i];
    const auto files = file_links(result, directory, links, shot);
    auto error = result.text("error");
    if (error.size() > kLongestError) error = error.substr(0, kLongestError) + " …";
    table.row(
        {html_escape(result.text("plugin")), status_badge(result.text("status")),
         html_escape(result.text("output")) + (error.empty() ? "" : "<br>" + html_escape(error)) +
             (files.empty() ? "" : "<div class=\"files\">" + files + "</div>"),
         result.is_null("wall_ms") ? "" : base::format_duration(std::chrono::milliseconds(result.integer("wall_ms"))),
         size_of(result.integer_or("peak_memory_bytes", 0)), size_of(result.integer_or("output_bytes", 0))});
  }
  if (!shot.empty())
    sections.shot = "<figure class=\"shot\" data-key=\"shot\"><a href=\"" + shot +
                    "\"><img alt=\"Screenshot of the page\" src=\"" + shot + "\"></a></figure>";
  sections.results = table.html("No hook has run yet.");
  return sections;
}

std::string events_section(pg::Connection& connection) {
  const auto rows = connection.call("select * from holdfast.v_event order by id desc limit " + std::to_string(kEvents));
  Table table({{"When", "nw"}, {"What", "nw"}, {"Event", "nw"}, {"Detail", "long"}}, "Events");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto row = rows[i];
    const auto kind = row.text("lifecycle"), id = row.text("object_id");
    table.row({when(row, "at"),
               html_escape(kind) + " " +
                   (kind == "crawl"      ? crawl_link(id, short_id(id))
                    : kind == "snapshot" ? snapshot_link(id, short_id(id))
                                         : html_escape(short_id(id))),
               html_escape(row.text("event")) + " → " + html_escape(row.text("to_state")),
               sentence(row.text_or("detail", ""))});
  }
  return table.html("Nothing yet.");
}

} // namespace holdfast::serve
