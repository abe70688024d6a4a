#include "lib/base/metrics.hpp"
#include "lib/base/text/duration.hpp"
#include "services/worker/attempt/steps.hpp"

#include <spdlog/spdlog.h>

namespace holdfast::worker {

void count_traffic(PageWork& work) {
  if (!work.route || work.view.facts.contains("requests")) return;
  const auto traffic = work.route->traffic();
  auto& facts = work.view.facts;
  facts["requests"] = std::to_string(traffic.requests);
  facts["requests_refused"] = std::to_string(traffic.refused);
  facts["received_bytes"] = std::to_string(traffic.bytes);
  if (traffic.over_limit)
    work.add_reason("its hooks were cut off after " + base::format_size(work.claim.max_snapshot_bytes) +
                    " from the network (max_snapshot_bytes)");
  base::count("holdfast_worker_egress_requests_total", {}, static_cast<double>(traffic.requests));
  base::count("holdfast_worker_egress_refused_total", {}, static_cast<double>(traffic.refused));
  base::count("holdfast_worker_egress_received_bytes_total", {}, static_cast<double>(traffic.bytes));
  const auto about = log_about(work.claim.lease);
  spdlog::debug("{}: {} requests to {} hosts, {}", work.claim.url, traffic.requests, traffic.hosts.size(),
                base::format_size(traffic.bytes));
  if (traffic.refused > 0)
    spdlog::warn("{}: {} requests of its hooks were refused: {}", work.claim.url, traffic.refused,
                 traffic.first_refusal);
}

} // namespace holdfast::worker
