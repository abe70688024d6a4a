#pragma once
// Decides whether a page may be requested: only at public addresses, unless allowed otherwise, and as robots.txt
// allows, if its crawl obeys it. Redirects are checked by the same rules. Owned by SnapshotJob; main thread only, with
// blocking look-ups on the resolver threads.

#include "lib/archive/attempt.hpp"
#include "lib/base/async.hpp"
#include "lib/base/text/url.hpp"
#include "lib/hooks/hook_run.hpp"
#include "lib/store/snapshot.hpp"
#include "services/worker/attempt/page_work.hpp"
#include "services/worker/turn/failure.hpp"

#include <atomic>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::worker {

class Admission {
public:
  // `options`: of the page's hooks. `check`: throws when the job is to end.
  Admission(PageServices& context, const store::Claim& claim, const hooks::Options& options,
            std::function<void()> check)
      : context_(context), claim_(claim), options_(options), check_(std::move(check)), hosts_{claim.host} {}

  // Both throw Failure: refused or later.
  awaitable<void> judge_page();
  awaitable<void> judge_redirects(const std::vector<std::string>& urls);
  // Handles rate limits that an ended hook reports: of the page's own host, or one to which the page redirects. Returns
  // a failure if the page has to wait for that. Ignored ones are added to the result's error.
  awaitable<std::optional<Failure>> heed_rate_limits(const hooks::HookOutcome& outcome, archive::ResultView& result);
  // Ends a robots.txt request that is under way.
  void abandon() { abandon_ = true; }

private:
  awaitable<void> require_public();
  awaitable<std::string> robots_rule_against(const base::Url& url);
  awaitable<void> fetch_robots(const std::string& origin, const base::Url& url, bool own, store::Robots& known);

  PageServices& context_;
  const store::Claim& claim_;
  const hooks::Options& options_;
  const std::function<void()> check_;
  std::set<std::string> hosts_;  // of the page and its redirects
  std::set<std::string> judged_; // URLs of redirects that may be asked for
  std::atomic<bool> abandon_{false};
};

} // namespace holdfast::worker
