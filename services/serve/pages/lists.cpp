// The pages that are one table: hosts, failures, events.
#include "lib/store/catalog/view.hpp"
#include "lib/store/live.hpp"
#include "services/serve/embedded.hpp"
#include "services/serve/pages.hpp"
#include "services/serve/parts.hpp"

#include <cmath>

namespace holdfast::serve {

namespace {

constexpr int kHosts = 200, kFailures = 50, kEvents = 100;
constexpr std::size_t kLongestError = 400;

Page one_table(std::string title, std::string heading, std::string id, Html table) {
  return {std::move(title), std::move(heading), {{std::move(id), std::move(table), "", false}}};
}

Html host_form(const std::string& name, const std::string& delay, const std::string& parallel) {
  return html::fill(embedded::host_form_html, {{"name", name}, {"delay", delay}, {"parallel", parallel}});
}

// As it is typed: "90s"; empty for none.
std::string typed(double seconds) {
  const auto all = std::llround(seconds * 1000);
  return all <= 0 ? "" : all % 1000 == 0 ? std::to_string(all / 1000) + "s" : std::to_string(all) + "ms";
}

} // namespace

std::optional<Page> hosts_page(const PageRequest& request) {
  std::vector<Table::Column> columns{{"Host", "long"}, {"Min delay", "nw"}, {"Max parallel", "n"}, {"Now", "long"}};
  if (request.may_change) columns.push_back({"Change", ""});
  Table table(columns, "Hosts with limits");
  for (const auto host : store::limited_hosts(request.connection, kHosts)) {
    const std::string name = host["name"], parallel = host["max_parallel"].value_or("");
    const auto delay = host.number("delay_seconds");
    std::vector<html::Value> cells{name, delay > 0 ? duration(delay) : "", parallel, sentence(host.text("reason"))};
    if (request.may_change) {
      const bool paused = host["paused"];
      Html acts = host_form(name, typed(delay), parallel);
      acts += buttons({{paused ? "resumeHost" : "pauseHost", paused ? "Resume" : "Pause", name},
                       {"forgetHost", "Take limits off", name}},
                      "/hosts");
      cells.emplace_back(std::move(acts));
    }
    table.row(std::move(cells));
  }
  auto page = one_table("Hosts", "Per-host limits", "hosts", table.html("No host has limits of its own."));
  if (request.may_change) page.sections.push_back({"new", host_form("", "", ""), "Limits for a host", true, false});
  return page;
}

std::optional<Page> failures_page(const PageRequest& request) {
  Table table({{"When", "nw"}, {"Plugin", "nw"}, {"Why", "long"}, {"Snapshot", "long"}}, "Hooks that failed");
  for (const auto failure : store::list(request.connection, {"failures", kFailures}))
    table.row({ago(failure.text("ended_at")), failure.text("plugin"), cut(failure.text("error"), kLongestError),
               snapshot_link(failure.text("snapshot_id"), failure.text("url"))});
  return one_table("Failures", "Latest failures", "failures", table.html("No hook has failed."));
}

std::optional<Page> events_page(const PageRequest& request) {
  Table table({{"When", "nw"}, {"What", "nw"}, {"Event", "nw"}, {"Detail", "long"}}, "Events");
  for (const auto event : store::list(request.connection, {"events", kEvents})) {
    const std::string lifecycle = event["lifecycle"], object = event["object_id"], id = short_id(object);
    Html what = html::escaped(lifecycle + " ");
    what += lifecycle == "crawl"      ? crawl_link(object, id)
            : lifecycle == "snapshot" ? snapshot_link(object, id)
                                      : html::escaped(id);
    table.row({when(event.text("at")), what, event.text("event") + " → " + event.text("to_state"),
               sentence(event["detail"].value_or(""))});
  }
  return one_table("Events", "Recent events", "events", table.html("Nothing yet."));
}

} // namespace holdfast::serve
