#include "services/cli/terminal/progress.hpp"

#include "lib/base/error.hpp"
#include "lib/base/log.hpp"
#include "lib/base/text/time.hpp"
#include "lib/catalog/list.hpp"
#include "lib/pg/connection.hpp"
#include "lib/store/live.hpp"
#include "services/cli/terminal/output.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <iostream>
#include <memory>
#include <vector>

namespace holdfast::cli {

namespace {

constexpr std::chrono::milliseconds kRedraw{250};
constexpr int kHooks = 6;

std::vector<std::string> draw(const store::Crawl& crawl, const pg::Result& hooks, std::size_t width) {
  const auto done = crawl.total - crawl.open;
  const std::int64_t all = std::max<std::int64_t>(crawl.total + crawl.seeds_left, 1);
  constexpr std::size_t bar = 24;
  const auto filled = static_cast<std::size_t>(done * static_cast<std::int64_t>(bar) / all);
  std::string line = "[" + std::string(filled, '#') + std::string(bar - std::min(filled, bar), '.') + "] " +
                     std::to_string(done) + "/" + std::to_string(crawl.total + crawl.seeds_left) + " snapshots";
  if (crawl.failed + crawl.partial > 0)
    line += ", " + std::to_string(crawl.partial) + " partial, " + std::to_string(crawl.failed) + " failed";
  if (crawl.cancelled > 0) line += ", " + std::to_string(crawl.cancelled) + " cancelled";
  line += ", " + base::format_size(static_cast<std::uint64_t>(crawl.bytes));
  std::vector<std::string> lines = {fitted(line, width)};
  for (const auto hook : hooks)
    lines.push_back(fitted("  " + printable(hook.text("plugin")) + " " +
                               catalog::written_interval(hook.text("running_for")) + "  " + printable(hook.text("url")),
                           width));
  return lines;
}

} // namespace

Progress::Progress(std::string dsn, std::string crawl_id) : dsn_(std::move(dsn)), crawl_id_(std::move(crawl_id)) {
  if (isatty(STDERR_FILENO) == 0) return;
  base::set_log_around([this](const std::function<void()>& write) {
    const std::lock_guard lock(screen_);
    erase();
    write();
  });
  thread_ = std::thread([this] { loop(); });
}

Progress::~Progress() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  stop_changed_.notify_all();
  if (!thread_.joinable()) return;
  thread_.join();
  base::set_log_around({});
}

void Progress::erase() {
  if (drawn_ > 0) std::cerr << "\x1b[" + std::to_string(drawn_) + "A\r\x1b[J" << std::flush;
  drawn_ = 0;
}

void Progress::loop() {
  std::unique_ptr<pg::Connection> connection;
  for (bool last = false; !last;) {
    {
      std::unique_lock lock(mutex_);
      stop_changed_.wait_for(lock, kRedraw, [this] { return stop_; });
      last = stop_;
    }
    try {
      if (!connection || connection->broken()) connection = std::make_unique<pg::Connection>(dsn_);
      const auto crawl = store::crawl(*connection, crawl_id_);
      const auto hooks = catalog::list(*connection, catalog::ListQuery{"running", kHooks}.by("crawl", crawl_id_));
      const auto lines = draw(crawl, hooks, terminal_width() - 1);
      const std::lock_guard lock(screen_);
      std::string frame;
      if (drawn_ > 0) frame += "\x1b[" + std::to_string(drawn_) + "A\r";
      for (const auto& line : lines)
        frame += line + "\x1b[K\n";
      frame += "\x1b[J";
      std::cerr << frame << std::flush;
      drawn_ = lines.size();
    } catch (const base::Error&) {
      // The display is optional: the verb that works with the database reports its errors.
      connection.reset();
    }
  }
}

} // namespace holdfast::cli
