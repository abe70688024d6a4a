#pragma once
// Checks whether pages can be published. A directory whose server is unreachable (NFS) blocks its
// readers for as long as that lasts, so a thread of its own looks at it, and nothing waits longer than five seconds.
// The first look, and each one after a publication has failed, makes all steps of a publication. Otherwise a directory
// is only looked at, and a bucket is left alone unless its client has given it up. Owned by Worker; main thread only.
// The destructor joins the thread: first wait for ended().

#include "lib/archive/root.hpp"
#include "lib/base/async.hpp"

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>

#include <chrono>
#include <cstdint>
#include <filesystem>
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
  // A page could not be published below `directory`. The watch is in trouble until a probe of that size succeeds there,
  // and longer each time that a publication fails although the probe had succeeded.
  void publication_failed(const std::filesystem::path& directory, std::uint64_t bytes, const std::string& why);
  void published();
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
  std::filesystem::path probed_directory_; // what the next probe tries
  std::uint64_t probed_bytes_{0};
  bool probe_due_{true};
  std::string refusal_; // of the last publication or probe; empty: it succeeded
  int failures_{0};     // publications since the last one that succeeded, those of one time counted once
  std::chrono::steady_clock::time_point rests_until_{};
  asio::thread_pool thread_{1};
  asio::steady_timer answer_; // expires when a look has taken too long
  bool looking_{false};
  std::chrono::steady_clock::time_point looked_{}; // when the last look began
  std::string trouble_;
  std::uint64_t free_{std::numeric_limits<std::uint64_t>::max()};
};

} // namespace holdfast::worker
