#include "services/worker/machine/archive_watch.hpp"

#include "lib/base/coroutine.hpp"
#include "lib/s3/client.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <utility>

namespace holdfast::worker {

namespace {

constexpr std::chrono::milliseconds kLookTimeout{5000};
constexpr std::chrono::seconds kRecent{1};
constexpr std::chrono::seconds kRestOfArchive{30}; // doubled, up to 8 minutes
const std::string kRefuses = "the archive takes no pages: ";

} // namespace

ArchiveWatch::ArchiveWatch(asio::any_io_executor executor, const archive::Root& root, std::string name)
    : executor_(std::move(executor)), root_(root), name_(std::move(name)), answer_(executor_) {}

ArchiveWatch::~ArchiveWatch() { thread_.join(); }

void ArchiveWatch::look() {
  const auto now = std::chrono::steady_clock::now();
  const auto unreachable = root_.bucket() == nullptr ? std::string() : root_.bucket()->trouble();
  if (refusal_.empty() || now >= rests_until_)
    if (!looking_ && now - looked_ >= kRecent && (root_.bucket() == nullptr || probe_due_ || !unreachable.empty())) {
      looking_ = true;
      looked_ = now;
      asio::co_spawn(executor_, ask(), asio::detached);
    }
  if (root_.bucket() != nullptr)
    trouble_ = unreachable.empty() ? refusal_ : "the object store does not answer (" + unreachable + ")";
}

void ArchiveWatch::publication_failed(const std::filesystem::path& directory, std::uint64_t bytes,
                                      const std::string& why) {
  if (!refusal_.empty()) return; // it began before this was known
  refusal_ = trouble_ = kRefuses + why;
  probed_directory_ = directory;
  probed_bytes_ = bytes;
  probe_due_ = true;
  const auto rest = failures_++ == 0 ? std::chrono::seconds(0) : kRestOfArchive * (1 << std::min(failures_ - 2, 4));
  rests_until_ = std::chrono::steady_clock::now() + std::max(rest, kRecent);
}

void ArchiveWatch::published() { failures_ = 0; }

awaitable<void> ArchiveWatch::answered() {
  if (!looking_ || (root_.bucket() != nullptr && !probe_due_)) co_return;
  const auto too_long = looked_ + kLookTimeout;
  answer_.expires_at(too_long);
  co_await answer_.async_wait(asio::as_tuple(asio::use_awaitable));
  if (looking_ && std::chrono::steady_clock::now() >= too_long) trouble_ = "the archive " + name_ + " does not answer";
}

void ArchiveWatch::hurry() { answer_.cancel(); }

awaitable<void> ArchiveWatch::ended() {
  while (looking_) {
    answer_.expires_at(asio::steady_timer::time_point::max());
    co_await answer_.async_wait(asio::as_tuple(asio::use_awaitable));
  }
}

awaitable<void> ArchiveWatch::ask() {
  std::string trouble;
  std::uint64_t free = free_;
  const bool probe = probe_due_;
  const auto directory = probed_directory_;
  const auto bytes = probed_bytes_;
  co_await base::on_thread(thread_, [&] {
    try {
      if (probe)
        root_.probe(directory, bytes);
      else
        root_.check();
      free = root_.free_bytes();
    } catch (const std::exception& error) {
      trouble = error.what();
    }
  });
  free_ = free;
  looking_ = false;
  if (probe) {
    refusal_ = trouble.empty() ? "" : kRefuses + trouble;
    probe_due_ = !trouble.empty();
  }
  trouble_ = probe ? refusal_ : trouble;
  answer_.cancel();
}

} // namespace holdfast::worker
