#include "lib/store/catalog/view.hpp"
#include "lib/store/live.hpp"
#include "services/serve/embedded.hpp"
#include "services/serve/pages/pages.hpp"
#include "services/serve/pages/parts.hpp"

namespace holdfast::serve {

namespace {

constexpr int kRunning = 200, kTreeLines = 500, kEnded = 20;

Html acts_on_process(const pg::Row& process) {
  const std::string id = process["id"];
  std::vector<Act> acts;
  if (!process.boolean("draining")) acts.push_back({"drainWorker", "Drain", id});
  if (process.text("process_type") == "worker") {
    acts.push_back({"pauseWorker", "Pause", id});
    acts.push_back({"resumeWorker", "Resume", id});
  }
  return buttons(acts, "/workers");
}

Html running_workers(pg::Connection& connection, bool may_change) {
  std::vector<Table::Column> columns{
      {"Process", "long"}, {"Machine", ""}, {"Holds", "n"}, {"Lease left", "nw"}, {"Activity", "long"}};
  if (may_change) columns.push_back({"Change", ""});
  Table table(columns, "Running processes");
  for (const auto process : store::running_processes(connection, kRunning)) {
    const bool worker = process.text("process_type") == "worker";
    std::vector<html::Value> cells{process.text("label"), process.text("hostname"),
                                   worker ? process.text("held") + "/" + process.text("slots") : "",
                                   store::written_interval(process["lease_left"].value_or("")),
                                   sentence(process.text("why"))};
    if (may_change) cells.emplace_back(acts_on_process(process));
    table.row(std::move(cells));
  }
  return table.html(Html(html::Literal(embedded::no_workers_html)));
}

Html tree(pg::Connection& connection) {
  Table table({{"Process", ""}, {"State", "nw"}, {"Machine", ""}, {"Pid", "n"}, {"For", "nw"}},
              "Processes and their hooks", Table::Phone::scroll);
  for (const auto line : store::process_tree(connection, kTreeLines))
    table.row({html::fill(embedded::tree_name_html, {{"text", line.text("tree")}}), line.text("state"),
               line.text("hostname"), line["pid"].value_or(""), store::written_interval(line["age"].value_or(""))});
  return table.html("Nothing runs.");
}

Html ended(pg::Connection& connection) {
  Table table({{"Process", "long"}, {"Machine", ""}, {"Ended", "nw"}, {"Why", "long"}}, "Stopped processes");
  for (const auto process : store::list(connection, store::ListQuery{"workers", kEnded}.by("status", "exited")))
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

} // namespace holdfast::serve
