#include "services/worker/turn/crawl_expander.hpp"

#include "lib/base/backoff.hpp"
#include "lib/base/error.hpp"
#include "lib/base/test_point.hpp"
#include "lib/store/call.hpp"

#include <spdlog/spdlog.h>

#include <utility>

namespace holdfast::worker {

namespace {

constexpr int kSeedBatch = 2000; // seeds turned into snapshots in one transaction

} // namespace

CrawlExpander::CrawlExpander(asio::any_io_executor executor, RetryPolicy& retry, const std::string& worker,
                             const Options& options, Callbacks callbacks)
    : retry_(retry), worker_(worker), options_(options), callbacks_(std::move(callbacks)),
      sleeper_(std::move(executor)) {}

awaitable<void> CrawlExpander::run() {
  while (!sleeper_.stopped()) {
    bool expanded = false;
    try {
      if (callbacks_.may_claim()) expanded = co_await expand_one();
    } catch (const base::Error& error) {
      if (error.error_class() != base::ErrorClass::temporary) throw;
      spdlog::debug("no crawl expanded: {}", error.what());
    }
    if (!expanded) co_await sleeper_.sleep(base::jittered(options_.poll));
  }
}

// Expands one crawl; returns false if none was due. One crawl is expanded at a time, so a crawl that this worker owns
// before a claim is left over from a claim whose answer was lost.
awaitable<bool> CrawlExpander::expand_one() {
  if (in_doubt_) co_await release();
  in_doubt_ = true;
  const auto lease = co_await retry_.once([this](pg::Connection& connection) {
    const auto claim = store::crawl_claim(connection, worker_, options_.lease, options_.only_crawls);
    if (claim) base::test_point("after_crawl_claim");
    return claim;
  });
  bool more = lease.has_value();
  while (more) {
    store::Expansion expansion;
    bool taken_away = false;
    try {
      expansion = co_await retry_.repeat([&](pg::Connection& connection) {
        base::test_point("before_expand");
        const auto answer = store::crawl_expand(connection, worker_, *lease, kSeedBatch);
        base::test_point("after_expand");
        return answer;
      });
    } catch (const base::Error& error) {
      if (error.error_class() != base::ErrorClass::lease_lost) throw;
      taken_away = true; // paused, for instance; if this worker has lapsed, its next call says so
    }
    if (taken_away) co_return true;
    if (expansion.status == "sealed") co_await callbacks_.sealed(lease->crawl_id);
    callbacks_.expanded();
    more = expansion.seeds_left > 0;
    if (more && sleeper_.stopped()) {
      co_await release();
      break;
    }
  }
  in_doubt_ = false;
  co_return lease.has_value();
}

awaitable<void> CrawlExpander::release() { co_await retry_.repeat("crawl_release", worker_); }

} // namespace holdfast::worker
