#pragma once

#include "services/cli/context/context.hpp"

#include <chrono>
#include <string>

namespace holdfast::cli {

// Outcome of a crawl, for the verbs that work on one until it ends. Main thread.

// Prints one sentence and a pointer to the result; as JSON the snapshots and the crawl.
void print_crawl_outcome(Context& context, const std::string& crawl_id);

// Notices that no running worker can take a crawl (store::crawl_lacks). Passing reasons get 20 s. Logs once why nothing
// of the crawl is in work, after two seconds of that.
class UnableWatch {
public:
  bool look(pg::Connection& connection, const std::string& crawl_id);
  // Throws Error(unavailable) if the last check found that.
  void check() const;

private:
  std::string crawl_, lacking_;
  bool unable_{false}, said_{false};
  std::chrono::steady_clock::time_point since_{}, idle_since_{std::chrono::steady_clock::now()};
};

} // namespace holdfast::cli
