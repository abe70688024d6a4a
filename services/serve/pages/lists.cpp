// The pages that are one table: hosts, failures, events.
#include "lib/store/live.hpp"
#include "services/serve/pages.hpp"
#include "services/serve/parts.hpp"

namespace holdfast::serve {

namespace {

constexpr int kHosts = 200, kFailures = 50, kEvents = 100;
constexpr std::size_t kLongestError = 400;

Page one_table(std::string title, std::string heading, std::string id, Html table) {
  return {std::move(title), std::move(heading), {{std::move(id), std::move(table), "", false}}};
}

} // namespace

std::optional<Page> hosts_page(const PageRequest& request) {
  Table table({{"Host", "long"}, {"Min delay", "nw"}, {"Max parallel", "n"}, {"Now", "long"}}, "Hosts with limits");
  for (const auto& host : store::limited_hosts(request.connection, kHosts))
    table.row(
        {host.name, host.delay_seconds > 0 ? duration(host.delay_seconds) : "", host.max_parallel, sentence(host.why)});
  return one_table("Hosts", "Per-host limits", "hosts", table.html("No host has limits of its own."));
}

std::optional<Page> failures_page(const PageRequest& request) {
  Table table({{"When", "nw"}, {"Plugin", "nw"}, {"Why", "long"}, {"Snapshot", "long"}}, "Hooks that failed");
  for (const auto& failure : store::latest_failures(request.connection, kFailures))
    table.row({when(failure.ended_at), failure.plugin, cut(failure.error, kLongestError),
               snapshot_link(failure.snapshot_id, failure.url)});
  return one_table("Failures", "Latest failures", "failures", table.html("No hook has failed."));
}

std::optional<Page> events_page(const PageRequest& request) {
  Table table({{"When", "nw"}, {"What", "nw"}, {"Event", "nw"}, {"Detail", "long"}}, "Events");
  for (const auto& event : store::latest_events(request.connection, kEvents)) {
    const auto id = short_id(event.object_id);
    Html what = html::escaped(event.lifecycle + " ");
    what += event.lifecycle == "crawl"      ? crawl_link(event.object_id, id)
            : event.lifecycle == "snapshot" ? snapshot_link(event.object_id, id)
                                            : html::escaped(id);
    table.row({when(event.at), what, event.event + " → " + event.to_state, sentence(event.detail)});
  }
  return one_table("Events", "Recent events", "events", table.html("Nothing yet."));
}

} // namespace holdfast::serve
