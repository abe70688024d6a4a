#include "services/worker/page/jobs.hpp"

#include "lib/base/error.hpp"
#include "lib/base/metrics.hpp"
#include "services/worker/turn/turns.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <spdlog/spdlog.h>

#include <algorithm>

namespace holdfast::worker {

Jobs::Jobs(PageServices& context, Callbacks callbacks) : context_(context), callbacks_(std::move(callbacks)) {}

void Jobs::start(const std::vector<store::Claim>& claims) {
  if (claims.empty()) return;
  for (const auto& claim : claims) {
    const auto& [id, crawl, fence] = claim.lease;
    for (auto older = jobs_.lower_bound({id, 0}); older != jobs_.end() && older->first.first == id; ++older)
      older->second->lose("it was taken away and has come back as a" + std::to_string(fence));
    auto job = std::make_shared<SnapshotJob>(context_, claim);
    if (!interrupted_.empty()) job->interrupt(interrupted_);
    if (!lost_.empty()) job->lose(lost_);
    jobs_[{id, fence}] = job;
    asio::co_spawn(context_.executor, run(std::move(job)), asio::detached);
    if (claim.lapses > 0) base::count("holdfast_worker_takeovers_total");
  }
  base::count("holdfast_worker_claims_total");
  base::count("holdfast_worker_snapshots_claimed_total", {}, static_cast<double>(claims.size()));
  callbacks_.changed();
}

awaitable<void> Jobs::run(std::shared_ptr<SnapshotJob> job) {
  const auto ending = co_await job->run();
  if (ending == SnapshotJob::Ending::sealed) ++sealed_;
  if (ending == SnapshotJob::Ending::lost) base::count("holdfast_worker_lease_losses_total");
  if (job->sealed_crawl()) co_await callbacks_.crawl_sealed(job->lease().crawl_id);
  jobs_.erase({job->lease().snapshot_id, job->lease().fence});
  callbacks_.changed();
}

void Jobs::interrupt_all(const std::string& reason) {
  if (interrupted_.empty()) interrupted_ = reason;
  for (auto& [key, job] : jobs_)
    job->interrupt(reason);
}

void Jobs::lose_all(const std::string& reason) {
  if (lost_.empty()) lost_ = reason;
  for (auto& [key, job] : jobs_)
    job->lose(reason);
}

std::size_t Jobs::running() const noexcept {
  return static_cast<std::size_t>(
      std::count_if(jobs_.begin(), jobs_.end(), [](const auto& entry) { return !entry.second->submitted(); }));
}

std::vector<store::Lease> Jobs::leases() const {
  std::vector<store::Lease> leases;
  for (const auto& [key, job] : jobs_)
    leases.push_back(job->lease());
  return leases;
}

std::vector<store::ActiveHook> Jobs::hooks() const {
  std::vector<store::ActiveHook> hooks;
  for (const auto& [key, job] : jobs_)
    job->list_hooks(hooks);
  return hooks;
}

std::set<std::string> Jobs::crawls() const {
  std::set<std::string> crawls;
  for (const auto& [key, job] : jobs_)
    crawls.insert(job->lease().crawl_id);
  return crawls;
}

void Jobs::take_heartbeat(const std::vector<store::Lease>& lost, const std::vector<store::Lease>& extra) {
  for (const auto& lease : lost)
    if (const auto job = jobs_.find({lease.snapshot_id, lease.fence}); job != jobs_.end())
      job->second->lose("the database says that it is no longer ours");
  std::map<Key, std::uint64_t> unaware;
  for (const auto& lease : extra) {
    const Key key{lease.snapshot_id, lease.fence};
    if (jobs_.contains(key) || releasing_.contains(key)) continue;
    const auto seen = unaware_.find(key);
    if (seen != unaware_.end() && seen->second <= context_.turns.ended())
      callbacks_.spawn(release(lease));
    else
      unaware[key] = seen != unaware_.end() ? seen->second : context_.turns.begun();
  }
  unaware_ = std::move(unaware);
}

awaitable<void> Jobs::release(store::Lease lease) {
  const Key key{lease.snapshot_id, lease.fence};
  releasing_.insert(key);
  store::Page page;
  page.lease = lease;
  page.ending = "declined";
  page.reason = "the answer to its claim was lost";
  try {
    co_await context_.turns.finish(std::move(page));
  } catch (const base::Error& error) {
    spdlog::debug("not released: {}", error.what());
  }
  releasing_.erase(key);
}

} // namespace holdfast::worker
