#pragma once
// What became of a crawl, for the verbs that work on one until it ends. Main thread.

#include "services/cli/context/context.hpp"

#include <chrono>
#include <string>

namespace holdfast::cli {

// One sentence and where to look; as JSON its snapshots and the crawl.
void print_crawl_outcome(Context& context, const std::string& crawl_id);

// Whether a crawl is one that no running worker can take (store::crawl_lacks). What may pass is given 20 s.
class UnableWatch {
public:
  bool look(pg::Connection& connection, const std::string& crawl_id);
  // Throws Error(unavailable) if that was so at the last look.
  void check() const;

private:
  std::string crawl_, lacking_;
  bool unable_{false};
  std::chrono::steady_clock::time_point since_{};
};

} // namespace holdfast::cli
