#pragma once
// The row of holdfast.process of a verb that stays or reads much: serve, imports, exports, verify, adopt, check, search
// --rebuild. Owned by the verb. It has a thread with a connection of its own, which joins, renews the lease, and
// leaves; only the destructor waits for it, and ends it. A login that may not write such a row has none.

#include "lib/store/worker.hpp"
#include "services/cli/context/context.hpp"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace holdfast::cli {

class Presence {
public:
  // type: "serve" or "command"; what: where it listens, or the verb.
  Presence(Context& context, const std::string& type, const std::string& what);
  ~Presence();
  Presence(const Presence&) = delete;
  Presence& operator=(const Presence&) = delete;

  void set_standby(bool standby); // it waits for another process to end

private:
  void keep();

  const std::string dsn_;
  const std::chrono::milliseconds lease_, heartbeat_;
  store::ProcessInfo process_;
  std::mutex mutex_; // of the next line
  bool standby_{false}, ended_{false}, failed_{false};
  std::condition_variable changed_;
  std::thread thread_;
};

} // namespace holdfast::cli
