// Time passes for whatever waits for its time: pages that no worker holds, their lanes, their crawls and their hosts.
#pragma once

#include <string>

namespace holdfast::test {

// The SQL for it. `time` is an interval.
inline std::string passes(const std::string& time) {
  const std::string later = " - interval '" + time + "'";
  return "update holdfast.snapshot_queue set retry_at = retry_at" + later +
         " where status = 'queued'; "
         "update holdfast.crawl_lane set next_at = next_at" +
         later + ", low_at = low_at" + later +
         "; "
         "update holdfast.crawl_queue set ready_at = ready_at" +
         later +
         "; "
         "update holdfast.host set last_at = last_at" +
         later + ", backoff_until = backoff_until" + later + ", updated_at = updated_at" + later;
}

} // namespace holdfast::test
