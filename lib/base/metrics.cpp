#include "lib/base/metrics.hpp"

#include "lib/base/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <mutex>

namespace holdfast::base {

namespace {

// Hooks take from milliseconds to many minutes.
constexpr std::array kBounds = {0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 900.0};

struct Family {
  std::string_view name, type, help;
  bool labelled; // without labels there is one series, which begins at zero
};

constexpr std::array kFamilies = {
    Family{"holdfast_worker_claims_total", "counter", "Claims that gave this worker work.", false},
    Family{"holdfast_worker_snapshots_claimed_total", "counter", "Snapshots that this worker was given.", false},
    Family{"holdfast_worker_takeovers_total", "counter",
           "Snapshots that this worker was given after another had been lost with them.", false},
    Family{"holdfast_worker_lease_losses_total", "counter",
           "Snapshots that this worker had to drop because they were no longer its own.", false},
    Family{"holdfast_worker_fencings_total", "counter",
           "Times this worker killed its hooks because it could not be sure of its lease.", false},
    Family{"holdfast_worker_hooks_total", "counter", "Hooks that have ended, by plugin and outcome.", true},
    Family{"holdfast_worker_hook_duration_seconds", "histogram", "How long hooks took, by plugin.", true},
    Family{"holdfast_worker_hook_memory_max_bytes", "gauge",
           "Most memory that one process of a hook has used, by plugin.", true},
    Family{"holdfast_worker_egress_requests_total", "counter", "Requests of hooks to the egress proxy.", false},
    Family{"holdfast_worker_egress_refused_total", "counter", "Of these, refused because the address is not public.",
           false},
    Family{"holdfast_worker_egress_received_bytes_total", "counter",
           "Bytes that hooks received through the egress proxy.", false},
    Family{"holdfast_worker_orphans_killed_total", "counter",
           "Processes killed that a hook had left behind without a supervisor.", false},
    Family{"holdfast_worker_browser_failures_total", "counter", "Tries in which the browser did not start here.",
           false},
    Family{"holdfast_serve_refused_hooks_total", "counter",
           "Connections of hooks on this machine to a server that guests may read.", false},
    Family{"holdfast_worker_database_errors_total", "counter", "Calls of the database that failed, by class.", true},
    Family{"holdfast_worker_webhook_attempts_total", "counter", "Deliveries to webhooks that were tried, by outcome.",
           true},
};

struct Series {
  double value{0}; // of a histogram: the sum
  double observations{0};
  std::array<double, kBounds.size()> buckets{}; // not cumulative
};

std::mutex registry_mutex;

std::map<std::string_view, std::map<Labels, Series>>& all() {
  static std::map<std::string_view, std::map<Labels, Series>> series;
  return series;
}

const Family& family_of(std::string_view name) {
  const auto found =
      std::find_if(kFamilies.begin(), kFamilies.end(), [&](const Family& one) { return one.name == name; });
  if (found == kFamilies.end()) throw Error(ErrorClass::bug, "nothing called " + std::string(name) + " is counted");
  return *found;
}

} // namespace

void count(std::string_view family, const Labels& labels, double by) {
  const auto& known = family_of(family);
  const std::lock_guard lock(registry_mutex);
  all()[known.name][labels].value += by;
}

void observe(std::string_view family, const Labels& labels, double value) {
  const auto& known = family_of(family);
  const std::lock_guard lock(registry_mutex);
  auto& series = all()[known.name][labels];
  if (known.type == "gauge") {
    series.value = std::max(series.value, value);
    return;
  }
  series.value += value;
  ++series.observations;
  const auto bound = std::lower_bound(kBounds.begin(), kBounds.end(), value);
  if (bound != kBounds.end()) ++series.buckets[static_cast<std::size_t>(bound - kBounds.begin())];
}

std::vector<Sample> own_samples() {
  std::vector<Sample> samples;
  const std::lock_guard lock(registry_mutex);
  for (const auto& family : kFamilies) {
    auto& series = all()[family.name];
    if (!family.labelled) series.try_emplace({});
    for (const auto& [labels, one] : series) {
      const Sample sample{std::string(family.name),
                          std::string(family.name),
                          std::string(family.type),
                          std::string(family.help),
                          labels,
                          one.value};
      if (family.type != "histogram") {
        samples.push_back(sample);
        continue;
      }
      double below = 0;
      const auto bucket = [&](const std::string& bound, double value) {
        auto line = sample;
        line.name += "_bucket";
        line.labels["le"] = bound;
        line.value = value;
        samples.push_back(std::move(line));
      };
      for (std::size_t i = 0; i < kBounds.size(); ++i)
        bucket(fmt::format("{}", kBounds[i]), below += one.buckets[i]);
      bucket("+Inf", one.observations);
      auto sum = sample;
      sum.name += "_sum";
      samples.push_back(std::move(sum));
      auto number = sample;
      number.name += "_count";
      number.value = one.observations;
      samples.push_back(std::move(number));
    }
  }
  return samples;
}

} // namespace holdfast::base
