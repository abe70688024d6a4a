#pragma once
// A named thread with its own connection that sends heartbeats on time and listens for notifications. It never touches
// domain state: results are posted to the given executor. Owned by the service; constructed and destroyed on the main
// thread. The destructor stops the thread and joins it (at most one connect or statement timeout); no callback runs
// afterwards, even if it was posted before. After on_fatal the thread sends no more heartbeats.
//
// On a lost connection it reconnects with back-off (50 ms doubling to 5 s, with jitter) and goes on; the owner's
// TrustWindow decides when that has taken too long.

#include "lib/pg/connection.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <string>

namespace holdfast::pg {

class Heartbeat {
public:
  struct Callbacks {
    // Called on the heartbeat thread, once at start, every `interval`, and whenever heartbeat_now() was called. Does
    // the heartbeat on the connection and may post to the main thread itself. An exception of class `temporary` leads
    // to a reconnect; any other is posted to on_fatal.
    std::function<void(Connection&)> heartbeat;
    // Posted to the executor: one call per batch of notifications, with the payloads.
    std::function<void(std::vector<std::string>)> on_notify;
    // Posted to the executor when the connection was lost / is back. The text is for the log.
    std::function<void(std::string)> on_lost;
    std::function<void()> on_restored;
    std::function<void(std::exception_ptr)> on_fatal;
  };

  Heartbeat(std::string dsn, ConnectionOptions options, std::string channel, std::chrono::milliseconds interval,
            boost::asio::any_io_executor executor, Callbacks callbacks);
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  // Asks for a heartbeat as soon as possible. Any thread.
  void heartbeat_now();

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace holdfast::pg
