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
  std::string path, version, sha256, fingerprint, provider; // path empty: not found, and `error` says why
  std::string error;
};

// `wanted_json`: [{name, providers, overrides, plugins}]. May be repeated. Returns how many names are new.
int binary_want(pg::Connection& connection, const std::string& worker, const std::string& wanted_json);
// A claim: what its lost answer held is due again after ten minutes.
std::vector<BinaryClaim> binary_claim(pg::Connection& connection, const std::string& worker, int limit);
// May be repeated. Errors: lease_lost if the fence is stale.
void binary_set(pg::Connection& connection, const std::string& worker, const BinaryClaim& claim,
                const BinaryFound& found);
struct KnownBinary {
  std::string name, path, error; // path empty: not found
};
std::vector<KnownBinary> binary_known(pg::Connection& connection, const std::string& worker);
// Of all machines if `host` is empty, all binaries if `name` is. Returns how many will be looked at.
std::int64_t binary_recheck(pg::Connection& connection, const std::string& name, const std::string& host);

std::map<std::string, std::string> machine_options(pg::Connection& connection, const std::string& worker);
void machine_set_options(pg::Connection& connection, const std::string& worker,
                         const std::map<std::string, std::string>& options);

struct CrawlOptions {
  std::vector<std::string> plugins;
  std::map<std::string, std::string> options;
  std::string persona;
};
CrawlOptions crawl_options(pg::Connection& connection, const std::string& crawl);

} // namespace holdfast::store
