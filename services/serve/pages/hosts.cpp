#include "lib/store/live.hpp"
#include "services/serve/embedded.hpp"
#include "services/serve/pages/pages.hpp"
#include "services/serve/pages/parts.hpp"

#include <cmath>

namespace holdfast::serve {

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
  std::vector<Table::Column> columns{{"Host", "long"}, {"Min delay", "nw"}, {"Max parallel", "n"}, {"Now", "long"}};
  if (request.may_change) columns.push_back({"Change", ""});
  Table table(columns, "Hosts with limits");
  for (const auto host : store::limited_hosts(request.connection, kHosts)) {
    const std::string name = host["name"], parallel = host["max_parallel"].value_or("");
    const auto delay = host.number("delay_seconds");
    std::vector<html::Value> cells{name, delay > 0 ? duration(delay) : "", parallel, sentence(host.text("reason"))};
    if (request.may_change) {
      Html acts = host_form(name, typed(delay), parallel);
      acts += buttons(acts_on("host", name, host.boolean("paused") ? "paused" : ""), request.here);
      cells.emplace_back(std::move(acts));
    }
    table.row(std::move(cells));
  }
  Page page{"Hosts", "Per-host limits", {{"hosts", table.html("No host has limits of its own."), "", false}}};
  if (request.may_change) page.sections.push_back({"new", host_form("", "", ""), "Limits for a host", true, false});
  return page;
}

} // namespace holdfast::serve
