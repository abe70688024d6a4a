#pragma once
// Bounds on how often a client may do something. A client may do it as often at once as in a minute; then as time goes
// by. Any thread.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <mutex>
#include <string>

namespace holdfast::serve {

class Rates {
public:
  explicit Rates(int in_a_minute) : most_(in_a_minute) {} // 0: no bound

  // Returns how long a client must wait; zero: not at all.
  std::chrono::seconds wait(const std::string& client) {
    const std::lock_guard lock(mutex_);
    return wait_of(filled(client));
  }
  // Counts what it does. Returns what wait() did before: unless that is zero, it may not do it, and nothing is counted.
  std::chrono::seconds take(const std::string& client) {
    const std::lock_guard lock(mutex_);
    auto& bucket = filled(client);
    const auto wait = wait_of(bucket);
    if (wait == std::chrono::seconds(0)) bucket.left -= 1;
    return wait;
  }

private:
  using Clock = std::chrono::steady_clock;
  struct Bucket {
    double left;
    Clock::time_point at;
  };
  static constexpr std::size_t kRemembered = 10'000; // clients

  std::chrono::seconds wait_of(const Bucket& bucket) const {
    if (most_ == 0 || bucket.left >= 1) return std::chrono::seconds(0);
    return std::chrono::seconds(static_cast<long>(std::ceil((1 - bucket.left) * 60 / most_)));
  }
  double refilled(const Bucket& bucket, Clock::time_point now) const {
    const std::chrono::duration<double> passed = now - bucket.at;
    return std::min<double>(most_, bucket.left + passed.count() * most_ / 60);
  }
  Bucket& filled(const std::string& client) {
    const auto now = Clock::now();
    if (buckets_.size() >= kRemembered)
      std::erase_if(buckets_, [&](const auto& one) { return refilled(one.second, now) >= most_; });
    auto& bucket = buckets_.try_emplace(client, Bucket{static_cast<double>(most_), now}).first->second;
    bucket = {refilled(bucket, now), now};
    return bucket;
  }

  const int most_;
  std::mutex mutex_;
  std::map<std::string, Bucket> buckets_;
};

} // namespace holdfast::serve
