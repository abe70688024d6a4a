#pragma once
// Work left by commands (catalog/operation.hpp): crawls to stop, files to delete, pages to make again. Blocking; call
// on the thread that owns the connection.

#include "lib/pg/connection.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::store {

// Open crawls that nothing stops yet.
std::vector<std::string> crawls_to_stop(pg::Connection& connection, int limit);
std::vector<std::string> workers_running(pg::Connection& connection, const std::vector<std::string>& ids);

struct StalePage {
  std::string crawl_id, since;
  bool there{true}; // else the crawl was removed, and its page is to go
};
// Returns pages that have waited for `age`; with `crawl` only its own.
std::vector<StalePage> crawl_pages_stale(pg::Connection& connection, std::int64_t limit, std::chrono::milliseconds age,
                                         const std::optional<std::string>& crawl);

bool may_act_as(pg::Connection& connection, const std::string& role);

} // namespace holdfast::store
