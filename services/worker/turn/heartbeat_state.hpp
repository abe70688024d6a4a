#pragma once
// Part of the worker's state for the heartbeat thread: written on the main thread, read on the other. Shared by both.

#include "lib/pg/failing_calls.hpp"
#include "lib/store/call.hpp"
#include "lib/store/snapshot.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::worker {

class HeartbeatState {
public:
  struct State {
    std::vector<store::Lease> leases;
    std::uint64_t sealed{0};
    std::optional<std::uint64_t> free_bytes; // none: not asked yet, which is not a full disk
    std::string not_claiming;                // why; empty: it claims

    std::string stats_json() const {
      nlohmann::json stats = {{"sealed", sealed}};
      if (free_bytes) stats["free_bytes"] = *free_bytes;
      if (!not_claiming.empty()) stats["not_claiming"] = not_claiming;
      for (const auto& failing : pg::failing_calls())
        stats["failing_calls"].push_back({{"call", failing.call},
                                          {"seconds", failing.age.count()},
                                          {"text", failing.text},
                                          {"way_out", failing.way_out}});
      return store::json_text(std::move(stats));
    }
  };

  void publish(State state) {
    const std::lock_guard lock(mutex_);
    state_ = std::move(state);
  }
  State read() const {
    const std::lock_guard lock(mutex_);
    return state_;
  }

private:
  mutable std::mutex mutex_;
  State state_;
};

} // namespace holdfast::worker
