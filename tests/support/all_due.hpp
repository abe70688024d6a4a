// Whatever waits for its time is due: pages that no worker holds, their lanes and their crawls.
#pragma once

namespace holdfast::test {

inline constexpr const char* kAllDue =
    "update holdfast.snapshot_queue set retry_at = clock_timestamp() where status = 'queued'; "
    "update holdfast.crawl_lane set next_at = clock_timestamp(), low_at = '-infinity'; "
    "update holdfast.crawl_queue set ready_at = clock_timestamp()";

} // namespace holdfast::test
