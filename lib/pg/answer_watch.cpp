#include "lib/pg/answer_watch.hpp"

#include <pthread.h>
#include <sys/socket.h>

#include <condition_variable>
#include <mutex>
#include <thread>
#include <unordered_map>

namespace holdfast::pg {
namespace {

using Clock = std::chrono::steady_clock;

// Interval of the thread's checks while there are calls. Waking it for each of them would cost more than many of the
// calls.
constexpr std::chrono::milliseconds kLook{100};

class AnswerWatch {
public:
  static AnswerWatch& instance() {
    static AnswerWatch watch;
    return watch;
  }

  std::uint64_t add(int socket, Clock::time_point deadline, const SessionTimeline* timeline) {
    const std::lock_guard lock(mutex_);
    if (!thread_.joinable()) thread_ = std::thread([this] { watch(); });
    calls_.emplace(++last_, Call{socket, deadline, timeline});
    if (asleep_) changed_.notify_all();
    return last_;
  }

  void remove(std::uint64_t id) {
    const std::lock_guard lock(mutex_);
    calls_.erase(id);
  }

private:
  struct Call {
    int socket;
    Clock::time_point deadline;
    const SessionTimeline* timeline; // may be null
    bool ended{false};

    bool overdue(Clock::time_point now) const { return now >= deadline || (timeline && timeline->superseded()); }
  };

  AnswerWatch() = default;
  ~AnswerWatch() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      changed_.notify_all();
    }
    if (thread_.joinable()) thread_.join();
  }

  void watch() {
    pthread_setname_np(pthread_self(), "hf-answers");
    std::unique_lock lock(mutex_);
    while (!stopping_) {
      if (calls_.empty()) {
        asleep_ = true;
        changed_.wait(lock);
        asleep_ = false;
      } else {
        changed_.wait_for(lock, kLook);
      }
      const auto now = Clock::now();
      for (auto& [id, call] : calls_) {
        if (call.ended || !call.overdue(now)) continue;
        ::shutdown(call.socket, SHUT_RDWR); // not close: the number belongs to libpq
        call.ended = true;
      }
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::unordered_map<std::uint64_t, Call> calls_;
  std::uint64_t last_{0};
  bool asleep_{false};
  bool stopping_{false};
  std::thread thread_;
};

} // namespace

AnswerDeadline::AnswerDeadline(int socket, std::chrono::milliseconds timeout, const SessionTimeline* timeline) {
  if (socket >= 0 && timeout.count() > 0) id_ = AnswerWatch::instance().add(socket, Clock::now() + timeout, timeline);
}

AnswerDeadline::~AnswerDeadline() {
  if (id_ != 0) AnswerWatch::instance().remove(id_);
}

} // namespace holdfast::pg
