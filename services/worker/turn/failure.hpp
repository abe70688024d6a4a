#pragma once
// Why a job ended before its page could be sealed with what its hooks made, and what becomes of the page then. A
// Failure is also what a job throws to unwind. Pure values.

#include "lib/base/error.hpp"
#include "lib/store/snapshot.hpp"

#include <chrono>
#include <string>

namespace holdfast::worker {

struct Failure {
  enum class Kind {
    lost,        // the lease is no longer ours
    interrupted, // this worker leaves
    refused,     // nothing of this page may be kept
    later,       // its host, or its robots.txt, requests a pause
    no_session,  // this worker may not open another crawl
    no_plugin,   // this worker has not the plugins that are wanted, or cannot open the persona
    error,       // of the page, or of this worker
  };
  Kind kind{Kind::error};
  std::string reason;
  base::ErrorClass error_class{base::ErrorClass::bug}; // of error
  std::chrono::milliseconds delay{0};                  // of later
  bool spend{false};                                   // of later: the attempt counts
};

// Returns the page to submit; not for `lost`. The database decides when a failed page is tried again, and when it is
// given up.
store::Page page_after(const store::Lease& lease, const Failure& failure);

} // namespace holdfast::worker
