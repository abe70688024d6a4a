#include "services/worker/machine/housekeeping.hpp"

#include "lib/base/backoff.hpp"
#include "lib/base/error.hpp"
#include "lib/base/log.hpp"
#include "lib/store/call.hpp"
#include "lib/store/runner.hpp"
#include "lib/store/worker.hpp"

#include <spdlog/spdlog.h>

namespace holdfast::worker {

namespace {

constexpr std::chrono::milliseconds kHousekeepingEvery{30000};
constexpr std::chrono::milliseconds kAge{60000}; // until then it is left to a runner, which says what it cannot do

} // namespace

Housekeeping::Housekeeping(asio::any_io_executor executor, pg::Pool& pool, asio::thread_pool& files,
                           const archive::Root& archive, const Options& options)
    : pool_(pool), archive_(archive), maintenance_(pool, files, {kAge, kAge}, spdlog::level::debug, options.text_bytes),
      poll_(options.poll), sleeper_(std::move(executor)) {}

awaitable<void> Housekeeping::run() {
  while (!sleeper_.stopped()) {
    try {
      co_await check_clock();
      co_await maintenance_.step(archive_);
    } catch (const base::Error& error) {
      spdlog::debug("no housekeeping: {}", error.what());
    }
    co_await sleeper_.sleep(base::jittered(kHousekeepingEvery));
  }
}

awaitable<void> Housekeeping::check_clock() {
  const auto mended = co_await pool_.run(
      [](pg::Connection& connection) { return store::call_for<std::int64_t>(connection, "clock_check"); });
  if (mended > 0) spdlog::warn("the clock of the database was set back: {} due times were too far ahead", mended);
}

bool Housekeeping::lapse_due() const { return !lapsing_ && std::chrono::steady_clock::now() - lapsed_ > poll_; }

awaitable<void> Housekeeping::lapse_process() {
  if (!lapse_due()) co_return;
  lapsed_ = std::chrono::steady_clock::now();
  lapsing_ = true;
  try {
    co_await pool_.run([](pg::Connection& connection) { return store::call_for<int>(connection, "lapse_process"); });
  } catch (const base::Error& error) {
    spdlog::debug("no lapsed worker looked for: {}", error.what()); // another round
  }
  lapsing_ = false;
}

awaitable<void> Housekeeping::make_crawl_page(std::string crawl_id) {
  try {
    co_await pool_.run([&](pg::Connection& connection) {
      maintenance::refresh_crawl_pages(connection, archive_, std::chrono::milliseconds(0), crawl_id);
    });
  } catch (const base::Error& error) {
    const base::LogAbout about({crawl_id, "", 0, "", ""});
    spdlog::warn("no page for crawl {}: {}", crawl_id, error.what()); // it stays marked as stale
  }
}

} // namespace holdfast::worker
