#pragma once
// How the archive is, as far as can be told soon. A directory whose server is away (NFS) blocks its readers for as long
// as that lasts, so a thread of its own looks at it, and nothing waits longer than five seconds. A bucket is asked only
// while it is in trouble. Owned by Worker; main thread only. The destructor joins the thread: first wait for ended().

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
  // `name`: of the archive, for people.
  ArchiveWatch(asio::any_io_executor executor, const archive::Root& root, std::string name);
  ~ArchiveWatch();
  ArchiveWatch(const ArchiveWatch&) = delete;
  ArchiveWatch& operator=(const ArchiveWatch&) = delete;

  // Begins to look unless the last look is recent.
  void look();
  // Completes when that look has an answer, has taken too long, or hurry() is called.
  awaitable<void> answered();
  void hurry();
  // No look is under way.
  awaitable<void> ended();

  // As it was last; empty: none.
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
