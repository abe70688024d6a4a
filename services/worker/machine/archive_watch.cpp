#include "services/worker/machine/archive_watch.hpp"

#include "lib/base/coroutine.hpp"
#include "lib/s3/client.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <spdlog/spdlog.h>

#include <utility>

namespace holdfast::worker {

namespace {

constexpr std::chrono::milliseconds kLookTimeout{5000};
constexpr std::chrono::milliseconds kRecent{1000};

} // namespace

ArchiveWatch::ArchiveWatch(asio::any_io_executor executor, const archive::Root& root, std::string name)
    : executor_(std::move(executor)), root_(root), name_(std::move(name)), answer_(executor_) {}

ArchiveWatch::~ArchiveWatch() { thread_.join(); }

void ArchiveWatch::look() {
  const auto now = std::chrono::steady_clock::now();
  const auto* bucket = root_.bucket();
  const auto bucket_trouble = bucket == nullptr ? std::string() : bucket->trouble();
  if (!looking_ && now - looked_ >= kRecent && (bucket == nullptr || !bucket_trouble.empty())) {
    looking_ = true;
    looked_ = now;
    asio::co_spawn(executor_, ask(), asio::detached);
  }
  if (bucket != nullptr)
    trouble_ = bucket_trouble.empty() ? "" : "the object store does not answer (" + bucket_trouble + ")";
}

awaitable<void> ArchiveWatch::answered() {
  if (!looking_ || root_.bucket() != nullptr) co_return;
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
  co_await base::on_thread(thread_, [&] {
    try {
      root_.check();
      free = root_.free_bytes();
    } catch (const std::exception& error) {
      trouble = error.what();
    }
  });
  free_ = free;
  looking_ = false;
  if (root_.bucket() == nullptr)
    trouble_ = trouble;
  else if (!trouble.empty())
    spdlog::debug("still no object store: {}", trouble);
  answer_.cancel();
}

} // namespace holdfast::worker
