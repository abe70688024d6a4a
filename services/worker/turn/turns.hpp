#pragma once
// A worker's turns: one database call at a time, which finishes the pages whose jobs have ended and claims new ones, in
// one transaction. Pages that are submitted while a call is in flight go with the next. Owned by Worker, outlives its
// jobs. Main thread only; the calls themselves run on the database pool.

#include "lib/base/async.hpp"
#include "lib/store/snapshot.hpp"
#include "services/worker/turn/retry_policy.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <string>
#include <vector>

namespace holdfast::worker {

class Turns {
public:
  // Call of a turn: blocking, on a thread of the pool. With room it may not be repeated.
  using Call = store::TurnAnswer (*)(pg::Connection&, const std::string& worker, const store::TurnRequest&);

  // `submitted`: called when a page waits for a turn. `given_up`: called first of all when the database reports that
  // this worker has lost its lease.
  Turns(RetryPolicy& retry, const std::string& worker, Call call, std::function<void()> submitted,
        std::function<void(const std::string&)> given_up);
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;

  // Hands a page in; completes with the database's answer. Throws what the database refuses it with, and
  // Error(lease_lost) if the worker's trust ends before there is an answer.
  awaitable<store::PageAnswer> finish(store::Page page);

  // Returns the number of submitted pages that are in no call yet.
  std::size_t waiting() const noexcept { return waiting_.size(); }
  // Return how many turns have begun, and have ended.
  std::uint64_t begun() const noexcept { return begun_; }
  std::uint64_t ended() const noexcept { return ended_; }

  // Makes a turn: finishes waiting pages (at most 100) and claims. A temporary error is thrown if no page waits; else
  // the turn is built again, without a claim, until the pages are finished. If the database refuses the whole, each
  // page is finished alone, so that none fails because of another. One at a time.
  awaitable<store::TurnAnswer> make(store::ClaimRequest claim);

  // Ends turns: waiting pages, and pages submitted from now on, end with Error(lease_lost).
  void close(const std::string& reason);

private:
  struct HandedIn;

  awaitable<store::TurnAnswer> make_until_told(store::ClaimRequest claim);
  std::vector<HandedIn*> take();
  awaitable<void> finish_alone(HandedIn& page);
  void refuse_waiting(std::exception_ptr why);

  RetryPolicy& retry_;
  const std::string& worker_;
  const Call call_;
  const std::function<void()> submitted_;
  const std::function<void(const std::string&)> given_up_;
  std::deque<HandedIn*> waiting_;
  std::uint64_t begun_{0}, ended_{0};
  std::string closed_; // why; empty: open
};

// Calls worker_turn(), between the fault suite's test points.
store::TurnAnswer call_turn(pg::Connection& connection, const std::string& worker, const store::TurnRequest& request);

} // namespace holdfast::worker
