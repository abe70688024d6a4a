#include "lib/base/text/url.hpp"
#include "services/worker/attempt/steps.hpp"

#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace holdfast::worker {

namespace {

constexpr std::uint64_t kHandshake = 10u << 10;   // certificates, tickets and settings of one connection
constexpr std::uint64_t kLeastOfMany = 64u << 10; // of a host that has records
constexpr std::size_t kMostHosts = 50;            // in the fact
constexpr int kSwitchingProtocols = 101;

struct Recorded {
  std::uint64_t bytes{0};
  bool undecided{false};
};

} // namespace

std::map<std::string, std::uint64_t> unrecorded(const egress::Traffic& traffic,
                                                const std::vector<warc::Capture>& records) {
  std::map<std::string, Recorded> recorded;
  for (const auto& record : records) {
    const auto url = base::try_parse_url(record.url);
    if (!url) continue;
    auto& host = recorded[url->host];
    host.bytes += record.size;
    host.undecided = host.undecided || record.mime.starts_with("audio/") || record.mime.starts_with("video/") ||
                     record.mime == "warc/revisit" || record.status == kSwitchingProtocols;
  }
  std::map<std::string, std::uint64_t> found;
  for (const auto& [name, host] : traffic.hosts) {
    const auto known = recorded.find(name);
    const auto handshakes = host.tunnels * kHandshake;
    if (known == recorded.end()) {
      if (host.bytes > handshakes) found.emplace(name, host.bytes);
      continue;
    }
    const auto expected = known->second.bytes + known->second.bytes / 4 + handshakes + kLeastOfMany;
    if (!known->second.undecided && host.bytes > expected) found.emplace(name, host.bytes - known->second.bytes);
  }
  return found;
}

void witness(PageWork& work) {
  const auto& records = work.captures.records;
  if (!work.traffic || records.empty() || records.size() >= archive::kMostCaptures) return;
  const auto found = unrecorded(*work.traffic, records);
  std::vector<std::pair<std::string, std::uint64_t>> most(found.begin(), found.end());
  std::sort(most.begin(), most.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  most.resize(std::min(most.size(), kMostHosts));
  nlohmann::json fact = nlohmann::json::object();
  for (const auto& [host, bytes] : most)
    fact[host] = bytes;
  work.view.facts["unrecorded"] = fact.dump();
  if (!most.empty())
    spdlog::info("{}: {} bytes from {} and {} other hosts are in no record", work.claim.url, most.front().second,
                 most.front().first, most.size() - 1);
}

} // namespace holdfast::worker
