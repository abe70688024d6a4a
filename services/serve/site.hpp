#pragma once
// The read-only pages over a collection: crawls, snapshots, workers, hosts, failures, search; numbers for Prometheus.
// Any thread; each request takes a database connection of its own out of a few. The destructor closes them.

#include "lib/pg/connection.hpp"
#include "services/serve/files.hpp"
#include "services/serve/http_server.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace holdfast::serve {

// Read-only sessions, made when first needed and kept. Any thread.
class Connections {
public:
  // `patience`: how long a call may take.
  explicit Connections(std::string dsn, std::chrono::milliseconds patience = std::chrono::seconds(10))
      : dsn_(std::move(dsn)), patience_(patience) {}

  // Runs `work(pg::Connection&)`; once more with a new session if the one at hand turns out to be broken.
  template <class Work>
  auto with(Work&& work) {
    for (bool first = true;; first = false) {
      auto connection = take(!first);
      try {
        auto value = work(*connection);
        give_back(std::move(connection));
        return value;
      } catch (...) {
        if (!connection->broken()) {
          give_back(std::move(connection));
          throw;
        }
        if (!first) throw;
      }
    }
  }

private:
  std::unique_ptr<pg::Connection> take(bool fresh);
  void give_back(std::unique_ptr<pg::Connection> connection);

  const std::string dsn_;
  const std::chrono::milliseconds patience_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<pg::Connection>> idle_;
};

struct SiteOptions {
  std::string dsn, version;
  std::string token;              // empty: who reaches the address may look
  std::vector<std::string> hosts; // names under which it may be asked for; empty: any
  const Files* files{nullptr};    // may be null: no files here
  std::uint16_t files_port{0};    // where the browser finds them, on the same host
};

class Site {
public:
  explicit Site(SiteOptions options);

  Response answer(const Request& request);

private:
  std::string files_origin(const Request& request) const;
  bool admitted(const Request& request) const;
  Response route(const Request& request);
  Response live(const Request& request);

  SiteOptions options_;
  std::string pass_; // what the cookie holds
  Connections connections_;
};

} // namespace holdfast::serve
