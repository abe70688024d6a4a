#pragma once
// Database sessions, made when first needed and kept. Any thread; each request takes one of its own. The destructor
// closes them.

#include "lib/pg/connection.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::serve {

class Connections {
public:
  // `timeout`: how long a call may take.
  explicit Connections(std::string dsn, std::chrono::milliseconds timeout = std::chrono::seconds(10),
                       bool read_only = true)
      : dsn_(std::move(dsn)), timeout_(timeout), read_only_(read_only) {}

  // Runs `work(pg::Connection&)`; once more with a new session if the present one turns out to be broken. So its work
  // must be repeatable, as all functions of the database are.
  template <class Work>
  auto with(Work&& work) {
    for (bool first = true;; first = false) {
      auto connection = take(!first);
      try {
        auto value = work(*connection);
        give_back(std::move(connection));
        return value;
      } catch (...) {
        if (!connection->broken()) {
          give_back(std::move(connection));
          throw;
        }
        if (!first) throw;
      }
    }
  }

private:
  std::unique_ptr<pg::Connection> take(bool fresh);
  void give_back(std::unique_ptr<pg::Connection> connection);

  const std::string dsn_;
  const std::chrono::milliseconds timeout_;
  const bool read_only_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<pg::Connection>> idle_;
};

// Messages for one client of server-sent events. The feed writes them, the client's connection takes them; any thread.
// A client that takes nothing while kMost messages come is closed, and may come again: it costs a bounded amount.
class Watch {
public:
  static constexpr std::size_t kMost = 64;
  using Message = std::shared_ptr<const std::string>; // shared by all clients that get it

  explicit Watch(std::string token) : token_(std::move(token)) {}
  const std::string& token() const noexcept { return token_; } // of the client; empty: a guest

  void push(Message message) {
    const std::lock_guard lock(mutex_);
    if (messages_.size() >= kMost) closed_ = true;
    if (!closed_) messages_.push_back(std::move(message));
    if (wake_) wake_();
  }
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    if (wake_) wake_();
  }
  // Called whenever there is something to take, on the thread that has put it there. Empty: not any more.
  void on_news(std::function<void()> wake) {
    const std::lock_guard lock(mutex_);
    wake_ = std::move(wake);
  }
  // All that wait. `closed`: nothing more comes.
  std::vector<Message> take(bool& closed) {
    const std::lock_guard lock(mutex_);
    closed = closed_;
    return std::exchange(messages_, {});
  }

private:
  const std::string token_;
  std::mutex mutex_;
  std::vector<Message> messages_;
  std::function<void()> wake_;
  bool closed_{false};
};

} // namespace holdfast::serve
