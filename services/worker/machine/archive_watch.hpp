#pragma once
// Watches the archive. A directory whose server is unreachable (NFS) blocks its readers for as long as that lasts, so a
// thread of its own checks it, and no caller waits longer than five seconds. A bucket is checked only after a failure.
// Owned by Worker; main thread only. The destructor joins the thread: first wait for ended().

#include "lib/archive/root.hpp"
#include "lib/base/async.hpp"

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>

#include <chrono>
#include <cstdint>
#include <limits>
#include <string>

namespace holdfast::worker {

class ArchiveWatch {
public:
  // `name`: of the archive, for users.
  ArchiveWatch(asio::any_io_executor executor, const archive::Root& root, std::string name);
  ~ArchiveWatch();
  ArchiveWatch(const ArchiveWatch&) = delete;
  ArchiveWatch& operator=(const ArchiveWatch&) = delete;

  // Begins a check unless the last one is recent.
  void look();
  // Completes when that check has an answer, has taken too long, or hurry() is called.
  awaitable<void> answered();
  void hurry();
  // Completes when no check is running.
  awaitable<void> ended();

  // Returns the error of the last check; empty: none.
  const std::string& trouble() const noexcept { return trouble_; }
  // Bytes; of a bucket: more than can be needed.
  std::uint64_t free_bytes() const noexcept { return free_; }

private:
  awaitable<void> ask();

  asio::any_io_executor executor_;
  const archive::Root& root_;
  const std::string name_;
  asio::thread_pool thread_{1};
  asio::steady_timer answer_; // expires when a look has taken too long
  bool looking_{false};
  std::chrono::steady_clock::time_point looked_{}; // when the last look began
  std::string trouble_;
  std::uint64_t free_{std::numeric_limits<std::uint64_t>::max()};
};

} // namespace holdfast::worker
