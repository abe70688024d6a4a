#include "tests/bench/simulation.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <random>
#include <thread>
#include <utility>

namespace holdfast::bench {

namespace {

using namespace std::chrono_literals;
constexpr auto kHooksLeast = 250ms; // between two calls of worker_hooks

struct Totals {
  std::mutex mutex;
  int pages{0}, turns{0};
  Times times;
  std::string trouble;
};

struct Plan {
  std::string dsn;
  int slots, hooks;
  std::chrono::milliseconds page, heartbeat;
  std::atomic<int> ready{0};
  std::atomic<bool> measuring{false}, over{false};
  Totals totals{};
};

class Worker {
public:
  Worker(Plan& plan, unsigned seed)
      : plan_(plan), connection_(connect(plan.dsn)), id_(join(connection_)), random_(seed) {}

  void run() {
    while (!plan_.over) {
      const auto now = Clock::now();
      if (now >= next_heartbeat_) heartbeat();
      if (now >= next_hooks_) tell_hooks();
      if (running_.size() < static_cast<std::size_t>(plan_.slots) ||
          std::any_of(running_.begin(), running_.end(), ended))
        turn();
      std::this_thread::sleep_until(next_event());
    }
    const std::lock_guard lock(plan_.totals.mutex);
    plan_.totals.pages += pages_;
    plan_.totals.turns += turns_;
    plan_.totals.times.add(times_);
  }

private:
  struct Running {
    store::Claim claim;
    Clock::time_point from, to;
  };
  static bool ended(const Running& page) { return Clock::now() >= page.to; }

  Clock::time_point next_event() const {
    auto next = std::min(next_heartbeat_, next_hooks_);
    for (const auto& page : running_)
      next = std::min(next, page.to);
    return next;
  }

  void turn() {
    store::TurnRequest request;
    const auto first = std::partition(running_.begin(), running_.end(), [](const auto& page) { return !ended(page); });
    for (auto page = first; page != running_.end(); ++page)
      request.pages.push_back(sealed_page(page->claim, plan_.hooks));
    running_.erase(first, running_.end());
    request.claim.room = plan_.slots - static_cast<int>(running_.size());
    const auto from = Clock::now();
    store::TurnAnswer answer;
    repeat_temporary([&] { answer = store::worker_turn(connection_, id_, request); });
    if (plan_.measuring) {
      times_.add(from);
      ++turns_;
      pages_ += static_cast<int>(answer.pages.size());
    }
    const auto now = Clock::now();
    std::uniform_real_distribution<double> length(0.5, 1.5);
    for (const auto& claim : answer.claims)
      running_.push_back({claim, now, now + std::chrono::duration_cast<Clock::duration>(plan_.page * length(random_))});
    if (running_.empty()) throw std::runtime_error("the queue is empty: it must hold more pages");
  }

  // The hook that runs now on each page.
  void tell_hooks() {
    std::vector<store::ActiveHook> hooks;
    const auto now = Clock::now();
    for (const auto& page : running_) {
      const int number = static_cast<int>((now - page.from) * plan_.hooks / (page.to - page.from));
      const auto result = result_of_hook(std::min(number, plan_.hooks - 1));
      store::ActiveHook hook;
      hook.lease = page.claim.lease;
      hook.plugin = result.plugin;
      hook.hook = result.hook;
      hook.pid = result.pid;
      hook.started = result.started;
      hook.timeout = 60s;
      hooks.push_back(hook);
    }
    store::worker_hooks(connection_, id_, hooks);
    next_hooks_ = Clock::now() + kHooksLeast;
  }

  void heartbeat() {
    std::vector<store::Lease> held;
    for (const auto& page : running_)
      held.push_back(page.claim.lease);
    store::worker_heartbeat(connection_, id_, kLease, held, "{}");
    next_heartbeat_ = Clock::now() + plan_.heartbeat;
    if (std::exchange(joined_, true)) return;
    ++plan_.ready;
  }

  Plan& plan_;
  pg::Connection connection_;
  const std::string id_;
  std::mt19937 random_;
  std::vector<Running> running_;
  Clock::time_point next_heartbeat_{}, next_hooks_{};
  bool joined_{false};
  int pages_{0}, turns_{0};
  Times times_;
};

} // namespace

nlohmann::json simulate(const std::string& dsn, const Settings& settings) {
  const int workers = number(settings, "workers", 1);
  Plan plan{.dsn = dsn,
            .slots = number(settings, "slots", 16),
            .hooks = number(settings, "hooks", 10),
            .page = std::chrono::milliseconds(number(settings, "page_ms", 500)),
            .heartbeat = std::chrono::milliseconds(number(settings, "heartbeat_ms", 5000))};
  std::vector<std::thread> threads;
  for (int i = 0; i < workers; ++i)
    threads.emplace_back([&plan, i] {
      try {
        Worker(plan, static_cast<unsigned>(i)).run();
      } catch (const std::exception& error) {
        const std::lock_guard lock(plan.totals.mutex);
        plan.totals.trouble = error.what();
        plan.over = true;
        ++plan.ready;
      }
    });
  while (plan.ready < workers && !plan.over)
    std::this_thread::sleep_for(1ms);
  std::this_thread::sleep_for(std::chrono::milliseconds(number(settings, "warm_ms", 2000)));
  begin_phase("work");
  const double cpu = cpu_seconds();
  const auto from = Clock::now();
  plan.measuring = true;
  for (const auto end = from + std::chrono::seconds(number(settings, "seconds", 10)); Clock::now() < end && !plan.over;)
    std::this_thread::sleep_for(1ms);
  plan.measuring = false;
  const double seconds = seconds_since(from), client = cpu_seconds() - cpu;
  begin_phase("rest");
  plan.over = true;
  for (auto& thread : threads)
    thread.join();
  auto& totals = plan.totals;
  if (!totals.trouble.empty()) throw std::runtime_error(totals.trouble);
  nlohmann::json answer{{"items", totals.pages},
                        {"turns", totals.turns},
                        {"seconds", seconds},
                        {"client_cpu_seconds", client},
                        {"offered", workers * plan.slots * 1000.0 / static_cast<double>(plan.page.count())}};
  totals.times.report(answer, "turn");
  return answer;
}

} // namespace holdfast::bench
