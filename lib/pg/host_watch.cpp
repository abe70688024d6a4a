#include "lib/pg/host_watch.hpp"

#include "lib/pg/hosts.hpp"
#include "lib/pg/session.hpp"

#include <pthread.h>

#include <condition_variable>
#include <mutex>
#include <thread>

namespace holdfast::pg {
namespace {

constexpr std::chrono::milliseconds kBetweenLooks{3000};
constexpr std::chrono::milliseconds kPatience{2000};

} // namespace

struct HostWatch::Impl {
  Impl(std::string dsn_in, const std::string& label, std::function<void()> superseded_in)
      : dsn(std::move(dsn_in)), superseded(std::move(superseded_in)) {
    options.application_name = label + " watch";
    options.connect_timeout = options.statement_timeout = options.answer_timeout = kPatience;
    options.lock_timeout = kPatience;
    thread = std::thread([this] { run(); });
  }

  ~Impl() {
    {
      const std::lock_guard lock(mutex);
      stopping = true;
    }
    halt.notify_all();
    thread.join();
  }

  void run() {
    pthread_setname_np(pthread_self(), "hf-hosts");
    while (!stopped_after(kBetweenLooks)) {
      for (const auto& other : other_hosts(dsn)) {
        if (stopped_after({})) return;
        const auto timeline = look_at_server(other, options);
        if (timeline && timeline->news) superseded();
      }
    }
  }

  bool stopped_after(std::chrono::milliseconds pause) {
    std::unique_lock lock(mutex);
    return halt.wait_for(lock, pause, [this] { return stopping; });
  }

  const std::string dsn;
  const std::function<void()> superseded;
  ConnectionOptions options;
  std::mutex mutex;
  std::condition_variable halt;
  bool stopping{false};
  std::thread thread; // last: it uses everything above
};

HostWatch::HostWatch(const std::string& dsn, const std::string& label, std::function<void()> superseded) {
  if (hosts_of(dsn).size() > 1) impl_ = std::make_unique<Impl>(dsn, label, std::move(superseded));
}

HostWatch::~HostWatch() = default;

} // namespace holdfast::pg
