#include "tests/bench/measure.hpp"

#include "lib/base/backoff.hpp"
#include "lib/base/error.hpp"
#include "lib/base/uuid.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <iostream>
#include <thread>

namespace holdfast::bench {

double seconds_since(Clock::time_point from) { return std::chrono::duration<double>(Clock::now() - from).count(); }

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

int number(const Settings& settings, const std::string& name, int otherwise) {
  const auto found = settings.find(name);
  return found == settings.end() ? otherwise : std::stoi(found->second);
}

void begin_phase(const std::string& name) {
  std::cout << name << std::endl;
  std::string line;
  std::getline(std::cin, line);
}

void Times::report(nlohmann::json& answer, const std::string& name) {
  if (all.empty()) return;
  std::sort(all.begin(), all.end());
  answer[name + "_p50_ms"] = all[all.size() / 2];
  answer[name + "_p99_ms"] = all[all.size() * 99 / 100];
}

void repeat_temporary(const std::function<void()>& work) {
  base::Backoff backoff(std::chrono::milliseconds(50), std::chrono::seconds(2));
  for (int left = 30;; --left) {
    try {
      return work();
    } catch (const base::Error& error) {
      if (error.error_class() != base::ErrorClass::temporary || left == 0) throw;
    }
    std::this_thread::sleep_for(backoff.next());
  }
}

pg::Connection connect(const std::string& dsn) {
  pg::ConnectionOptions options;
  options.connect_timeout = options.statement_timeout = options.lock_timeout = options.answer_timeout = kLease;
  return pg::Connection(dsn, options);
}

std::string join(pg::Connection& connection) {
  store::ProcessInfo process;
  process.id = base::new_uuid();
  process.machine = {"bench", "bench", "", "", 1, 0};
  process.boot_id = "bench";
  process.process_type = "worker";
  process.worker_type = "snapshot";
  process.label = "bench";
  process.slots = 1000;
  store::process_join(connection, process, kLease);
  return process.id;
}

store::HookResult result_of_hook(int number) {
  store::HookResult result;
  result.plugin = "none";
  result.hook = "on_Snapshot__" + std::to_string(10 + number) + "_none";
  result.pid = 1000 + number;
  result.started = std::chrono::steady_clock::now() - std::chrono::milliseconds(10);
  result.output = "page.html";
  result.files = {{"page.html", "text/html", 1000, std::string(64, 'f')}};
  result.bytes = 1000;
  result.exit_code = 0;
  result.cost = store::HookCost{std::chrono::milliseconds(10), std::chrono::milliseconds(1), {}, 1 << 20, 0, 1000};
  return result;
}

store::Page sealed_page(const store::Claim& claim, int hooks) {
  store::Page page;
  page.lease = claim.lease;
  page.outcome = "succeeded";
  page.directory = "2026/01/site.example/" + claim.lease.snapshot_id + "/a" + std::to_string(claim.lease.fence);
  page.manifest = std::string(64, 'd');
  page.bytes = 1000 * static_cast<std::uint64_t>(hooks);
  page.files = static_cast<std::uint64_t>(hooks);
  for (int i = 0; i < hooks; ++i)
    page.results.push_back(result_of_hook(i));
  return page;
}

} // namespace holdfast::bench
