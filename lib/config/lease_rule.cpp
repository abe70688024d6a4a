#include "lib/base/error.hpp"
#include "lib/base/text/duration.hpp"
#include "lib/config/settings.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace holdfast::config {

namespace {

using base::Error;
using base::ErrorClass;

// Returns the time, besides kill_grace, that a worker needs to end its hooks: notice, signal, reap. With a lease
// shorter than a minute, a late kill costs less, so a twelfth of the lease is enough.
std::chrono::milliseconds stop_overhead(std::chrono::milliseconds lease) {
  return std::min<std::chrono::milliseconds>(std::chrono::seconds(5), lease / 12);
}

// "lease is 60s (default), margin is 20s (/etc/holdfast.yaml:3)".
std::string describe(const Settings& settings, std::initializer_list<std::string_view> keys) {
  std::string description;
  for (const std::string_view key : keys) {
    const Value& value = settings.value(key);
    description += fmt::format("{}{} is {} ({})", description.empty() ? "" : ", ", key, value.text, value.origin);
  }
  return description;
}

} // namespace

void check_lease_rule(const Settings& settings) {
  const auto lease = settings.duration("lease");
  const auto heartbeat = settings.duration("heartbeat");
  const auto margin = settings.duration("margin");
  if (2 * heartbeat > lease - margin) {
    throw Error(ErrorClass::configuration,
                "two heartbeats must fit into lease - margin: " + describe(settings, {"heartbeat", "lease", "margin"}),
                "One lost heartbeat must not cost a worker its work: lengthen lease, or shorten heartbeat or margin.");
  }
  if (const auto overhead = stop_overhead(lease); settings.duration("kill_grace") + overhead >= margin) {
    throw Error(ErrorClass::configuration,
                fmt::format("kill_grace + {} must be less than margin: ", base::format_duration(overhead)) +
                    describe(settings, {"kill_grace", "margin"}),
                "A cut-off worker must have ended its hooks before others take its work: lengthen margin, or shorten "
                "kill_grace.");
  }
  if (2 * settings.duration("runner.heartbeat") > settings.duration("runner.lease")) {
    throw Error(
        ErrorClass::configuration,
        "two heartbeats must fit into runner.lease: " + describe(settings, {"runner.heartbeat", "runner.lease"}),
        "One lost heartbeat must not cost the runner its lead: lengthen runner.lease or shorten runner.heartbeat.");
  }
}

} // namespace holdfast::config
