#pragma once
// The snapshots that a worker has in work: a job for each, from its claim to its page's answer; and others that it
// holds according to the database. Owned by Worker; main thread only. Destroy it when it is empty.

#include "lib/base/async.hpp"
#include "lib/store/snapshot.hpp"
#include "services/worker/attempt/page_work.hpp"
#include "services/worker/page/snapshot_job.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::worker {

class Jobs {
public:
  struct Callbacks {
    std::function<void()> changed;                                     // a job has started or ended
    std::function<awaitable<void>(std::string crawl_id)> crawl_sealed; // with one of its pages
    std::function<void(awaitable<void>)> spawn;                        // what must end before the jobs are destroyed
  };

  Jobs(PageServices& context, Callbacks callbacks);
  Jobs(const Jobs&) = delete;
  Jobs& operator=(const Jobs&) = delete;

  void start(const std::vector<store::Claim>& claims);
  // Interrupts all jobs, also those that start later.
  void interrupt_all(const std::string& reason);
  void lose_all(const std::string& reason);

  bool empty() const noexcept { return jobs_.empty(); }
  std::size_t size() const noexcept { return jobs_.size(); }
  std::size_t running() const noexcept; // whose pages are not submitted: they take up slots
  std::uint64_t sealed() const noexcept { return sealed_; }
  std::vector<store::Lease> leases() const;
  std::vector<store::ActiveHook> hooks() const;
  std::set<std::string> crawls() const;

  // Takes the answer of a heartbeat: leases that are not ours, and leases that are ours without our knowledge. The
  // latter are released, unless a turn that was in flight when they were first reported may still answer for them.
  void take_heartbeat(const std::vector<store::Lease>& lost, const std::vector<store::Lease>& extra);

private:
  using Key = std::pair<std::string, std::int64_t>; // snapshot and fence

  awaitable<void> run(std::shared_ptr<SnapshotJob> job);
  awaitable<void> release(store::Lease lease);

  PageServices& context_;
  const Callbacks callbacks_;
  // A lost page may be claimed again while its first run still ends.
  std::map<Key, std::shared_ptr<SnapshotJob>> jobs_;
  std::map<Key, std::uint64_t> unaware_; // of the last heartbeat: the last turn that may still answer for it
  std::set<Key> releasing_;
  std::string interrupted_, lost_; // reasons; empty: not
  std::uint64_t sealed_{0};
};

} // namespace holdfast::worker
