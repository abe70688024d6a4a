#include "lib/catalog/list.hpp"
#include "lib/store/live.hpp"
#include "services/serve/embedded.hpp"
#include "services/serve/pages/pages.hpp"
#include "services/serve/pages/parts.hpp"

#include <cmath>

namespace holdfast::serve {

namespace {

constexpr int kRunning = 200, kTreeLines = 500, kEnded = 20;

Html acts_on_process(const pg::Row& process) {
  const std::string id = process["id"];
  std::vector<Act> acts;
  if (!process.boolean("draining")) acts.push_back({"drainWorker", "Drain", id});
  if (process.text("process_type") == "worker") {
    const bool paused = process.text("state") == "paused";
    acts.push_back({paused ? "resumeWorker" : "pauseWorker", paused ? "Resume" : "Pause", id});
  }
  return buttons(acts, "/workers");
}

Html running_workers(pg::Connection& connection, bool may_change) {
  Table table({{"Process", "long"},
               {"Machine", ""},
               {"Holds", "n"},
               {"Lease left", "nw"},
               {"Activity", "long"},
               {may_change ? "Change" : "", ""}},
              "Running processes");
  for (const auto process : store::running_processes(connection, kRunning)) {
    const bool worker = process.text("process_type") == "worker";
    table.row({process.text("label"), process.text("hostname"),
               worker ? process.text("held") + "/" + process.text("slots") : "",
               catalog::written_interval(process["lease_left"].value_or("")), sentence(process.text("why")),
               acts_on_process(process)});
  }
  return table.html(Html(html::Literal(embedded::no_workers_html)));
}

Html tree(pg::Connection& connection) {
  Table table({{"Process", ""}, {"State", "nw"}, {"Machine", ""}, {"Pid", "n"}, {"For", "nw"}},
              "Processes and their hooks", Table::Phone::scroll);
  for (const auto line : store::process_tree(connection, kTreeLines))
    table.row({html::fill(embedded::tree_name_html, {{"text", line.text("tree")}}), line.text("state"),
               line.text("hostname"), line["pid"].value_or(""), catalog::written_interval(line["age"].value_or(""))});
  return table.html("Nothing runs.");
}

Html ended(pg::Connection& connection) {
  Table table({{"Process", "long"}, {"Machine", ""}, {"Ended", "nw"}, {"Why", "long"}}, "Stopped processes");
  for (const auto process : catalog::list(connection, catalog::ListQuery{"workers", kEnded}.by("status", "exited")))
    table.row({process.text("label"), process.text("hostname"), ago(process["ended_at"].value_or("")),
               process["exit_reason"].value_or("")});
  return table.html("None has ended yet.");
}

} // namespace

std::optional<Page> workers_page(const PageRequest& request) {
  auto& connection = request.connection;
  return Page{"Workers",
              "Workers",
              {{"workers", running_workers(connection, request.may_change), "", false},
               {"tree", tree(connection), "Process tree"},
               {"ended", ended(connection), "Ended"}}};
}

namespace {

constexpr int kHosts = 200;

Html host_form(const std::string& name, const std::string& delay, const std::string& parallel) {
  return html::fill(embedded::host_form_html, {{"name", name}, {"delay", delay}, {"parallel", parallel}});
}

// Formats a delay for an input field: "90s"; empty for none.
std::string typed(double seconds) {
  const auto all = std::llround(seconds * 1000);
  return all <= 0 ? "" : all % 1000 == 0 ? std::to_string(all / 1000) + "s" : std::to_string(all) + "ms";
}

} // namespace

std::optional<Page> hosts_page(const PageRequest& request) {
  Table table({{"Host", "long"},
               {"Min delay", "nw"},
               {"Max parallel", "n"},
               {"Now", "long"},
               {request.may_change ? "Change" : "", ""}},
              "Hosts with limits");
  for (const auto host : store::limited_hosts(request.connection, kHosts)) {
    const std::string name = host["name"], parallel = host["max_parallel"].value_or("");
    const auto delay = host.number("delay_seconds");
    auto acts = host_form(name, typed(delay), parallel);
    acts += buttons(acts_on("host", name, host.boolean("paused") ? "paused" : ""), request.here);
    table.row({name, delay > 0 ? duration(delay) : "", parallel, sentence(host.text("reason")), std::move(acts)});
  }
  Page page{"Hosts", "Per-host limits", {{"hosts", table.html("No host has limits of its own."), "", false}}};
  if (request.may_change) page.sections.push_back({"new", host_form("", "", ""), "Limits for a host", true, false});
  return page;
}

} // namespace holdfast::serve
