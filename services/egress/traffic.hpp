#pragma once
// Counts the traffic of an endpoint of the proxy. Any thread; owned by the endpoint.

#include "services/egress/proxy.hpp"

#include <cstdint>
#include <mutex>
#include <string>

namespace holdfast::egress {

class TrafficMeter {
public:
  static constexpr std::size_t kMostHosts = 1000;

  void limit(std::uint64_t most_bytes) { most_bytes_ = most_bytes; } // before the first connection; 0: no limit
  bool count_request(const std::string& host, bool tunnel) {
    const std::lock_guard lock(mutex_);
    ++traffic_.requests;
    if (traffic_.hosts.size() < kMostHosts || traffic_.hosts.contains(host)) {
      auto& of_host = traffic_.hosts[host];
      ++of_host.requests;
      of_host.tunnels += tunnel;
    }
    return !traffic_.over_limit;
  }
  void count_refusal(const std::string& why) {
    const std::lock_guard lock(mutex_);
    if (traffic_.refused++ == 0) traffic_.first_refusal = why;
  }
  void note_trouble(const std::string& what) {
    const std::lock_guard lock(mutex_);
    traffic_.trouble = what;
  }
  // Returns false once the endpoint has had its bytes.
  bool count_bytes(const std::string& host, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    traffic_.bytes += bytes;
    if (const auto found = traffic_.hosts.find(host); found != traffic_.hosts.end()) found->second.bytes += bytes;
    if (most_bytes_ > 0 && traffic_.bytes > most_bytes_) traffic_.over_limit = true;
    return !traffic_.over_limit;
  }
  Traffic read() const {
    const std::lock_guard lock(mutex_);
    return traffic_;
  }

private:
  std::uint64_t most_bytes_{0};
  mutable std::mutex mutex_;
  Traffic traffic_;
};

} // namespace holdfast::egress
