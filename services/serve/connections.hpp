#pragma once
// Database sessions, made when first needed and kept. Any thread; each request takes one of its own. The destructor
// closes them.

#include "lib/pg/connection.hpp"

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace holdfast::serve {

class Connections {
public:
  // `timeout`: how long a call may take.
  explicit Connections(std::string dsn, std::chrono::milliseconds timeout = std::chrono::seconds(10),
                       bool read_only = true)
      : dsn_(std::move(dsn)), timeout_(timeout), read_only_(read_only) {}

  // Runs `work(pg::Connection&)`; once more with a new session if the present one turns out to be broken. So its work
  // must be repeatable, as all functions of the database are.
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
  const std::chrono::milliseconds timeout_;
  const bool read_only_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<pg::Connection>> idle_;
};

} // namespace holdfast::serve
