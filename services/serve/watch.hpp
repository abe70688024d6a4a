#pragma once
// Messages for one client of server-sent events. The feed writes them, the client's connection takes them; any thread.
// A client that takes nothing while kMost messages come is closed, and may come again: it costs a bounded amount.

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::serve {

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
