#include "services/worker/housekeeping.hpp"

#include "lib/archive/verify.hpp"
#include "lib/base/error.hpp"
#include "lib/base/log.hpp"
#include "lib/store/control.hpp"
#include "services/worker/crawl_page.hpp"
#include "services/worker/jitter.hpp"
#include "services/worker/on_thread.hpp"

#include <spdlog/spdlog.h>

#include <chrono>
#include <vector>

namespace holdfast::worker {

namespace {

constexpr std::chrono::milliseconds kHousekeepingEvery{30000};
constexpr std::chrono::milliseconds kAge{60000}; // until then it is left to a runner
constexpr int kPurgeBatch = 20;

} // namespace

awaitable<void> Housekeeping::run() {
  while (!stopped_) {
    std::string problem;
    try {
      co_await check_clock();
      co_await purge();
      co_await pool_.run([this](pg::Connection& connection) { refresh_crawl_pages(connection, archive_, kAge); });
    } catch (const base::Error& error) {
      problem = error.what();
    }
    if (!problem.empty()) spdlog::debug("no housekeeping: {}", problem);
    if (!stopped_) co_await sleeper_.sleep(jittered(kHousekeepingEvery));
  }
}

void Housekeeping::stop() {
  stopped_ = true;
  sleeper_.wake();
}

awaitable<void> Housekeeping::check_clock() {
  const auto mended = co_await pool_.run([](pg::Connection& connection) { return store::clock_check(connection); });
  if (mended > 0) spdlog::warn("the clock of the database has gone back: {} due times were too far ahead", mended);
}

awaitable<void> Housekeeping::purge() {
  const auto directories = co_await pool_.run(
      [](pg::Connection& connection) { return store::purge_waiting(connection, kPurgeBatch, kAge); });
  std::vector<std::string> gone;
  co_await on_thread(files_, [&] {
    if (!directories.empty()) archive_.check();
    for (const auto& directory : directories) {
      try {
        archive::remove_snapshot(archive_, directory);
        gone.push_back(directory);
      } catch (const base::Error& error) {
        spdlog::debug("not deleted: {}", error.what()); // a runner says it once
      }
    }
  });
  if (gone.empty()) co_return;
  co_await pool_.run([&](pg::Connection& connection) { store::purge_done(connection, gone); });
  spdlog::info("deleted the files of {} removed snapshots", gone.size());
}

awaitable<void> Housekeeping::make_crawl_page(std::string crawl_id) {
  std::string problem;
  try {
    co_await pool_.run([&](pg::Connection& connection) {
      refresh_crawl_pages(connection, archive_, std::chrono::milliseconds(0), crawl_id);
    });
  } catch (const base::Error& error) {
    problem = error.what(); // it stays marked as stale
  }
  const base::LogAbout about({crawl_id, "", 0, "", ""});
  if (!problem.empty()) spdlog::warn("no page for crawl {}: {}", crawl_id, problem);
}

} // namespace holdfast::worker
