#pragma once
// Binaries that plugins need, and options that hold on one machine. One free function per SQL function
// (migrations/functions/62_binary.sql). Blocking; call on the thread that owns the connection.

#include "lib/pg/connection.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::store {

struct BinaryClaim {
  std::string name, id;
  std::int64_t fence{0};
  std::string providers, overrides;
  std::string path, version, sha256, fingerprint; // as last found; empty: never, or gone
};

struct BinaryFound {
  std::string path, version, sha256, fingerprint, provider; // path empty: not found, `error` has the reason
  std::string error;
};

// A claim: what its lost answer held is due again after ten minutes.
std::vector<BinaryClaim> binary_claim(pg::Connection& connection, const std::string& worker, int limit);
// May be repeated. Errors: lease_lost if the fence is stale.
void binary_set(pg::Connection& connection, const std::string& worker, const BinaryClaim& claim,
                const BinaryFound& found);
struct KnownBinary {
  std::string name, path, error; // path empty: not found
};
std::vector<KnownBinary> binary_known(pg::Connection& connection, const std::string& worker);

std::map<std::string, std::string> machine_options(pg::Connection& connection, const std::string& worker);

struct CrawlOptions {
  std::vector<std::string> plugins;
  std::map<std::string, std::string> options;
  std::string persona;
};
CrawlOptions crawl_options(pg::Connection& connection, const std::string& crawl);

} // namespace holdfast::store
