#include "lib/base/duration.hpp"
#include "lib/base/error.hpp"
#include "lib/base/write_all.hpp"
#include "lib/store/live.hpp"
#include "services/cli/command/checks.hpp"
#include "services/cli/command/verbs.hpp"
#include "services/cli/context/signals.hpp"
#include "services/cli/terminal/output.hpp"
#include "services/cli/terminal/times.hpp"

#include <CLI/CLI.hpp>

#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::cli {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::array<const char*, 4> kOrders{"age", "plugin", "url", "worker"};

void print(std::string_view text) { base::write_all(STDOUT_FILENO, text); }

// The terminal while we draw: a screen of its own, no echo, keys at once. The destructor gives back what was there.
class Screen {
public:
  Screen() {
    ::tcgetattr(STDIN_FILENO, &before_);
    termios now = before_;
    now.c_lflag &= static_cast<tcflag_t>(~(ICANON | ECHO));
    now.c_cc[VMIN] = 0;
    now.c_cc[VTIME] = 0;
    ::tcsetattr(STDIN_FILENO, TCSANOW, &now);
    print("\x1b[?1049h\x1b[?25l");
  }
  ~Screen() {
    print("\x1b[?25h\x1b[?1049l");
    ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  // One write, over what is there: nothing is cleared first, so nothing flickers.
  static void draw(const std::vector<std::string>& lines) {
    std::string frame = "\x1b[?2026h\x1b[H";
    for (std::size_t at = 0; at < lines.size(); ++at)
      frame += lines[at] + "\x1b[0m\x1b[K" + (at + 1 < lines.size() ? "\r\n" : "");
    print(frame + "\x1b[J\x1b[?2026l");
  }

private:
  termios before_{};
};

std::string padded(const std::string& text, std::size_t width) {
  auto cut = fitted(printable(text), width);
  return cut + std::string(width - std::min(width, display_width(cut)), ' ');
}

std::string duration(std::optional<double> seconds) {
  if (!seconds) return "";
  return base::format_duration(
      std::chrono::milliseconds(static_cast<std::int64_t>(std::llround(std::max(*seconds, 0.0) * 1000))));
}

std::string counted(std::int64_t count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

std::string heading(const std::string& text, std::size_t width) { return "\x1b[7m" + padded(text, width); }

using Lines = std::vector<std::string>;

void add_status(pg::Connection& connection, std::size_t width, Lines& lines) {
  const auto now = store::status(connection);
  lines.push_back("\x1b[1mholdfast\x1b[0m  " +
                  fitted(counted(now.workers, "worker") + ", " + std::to_string(now.snapshots_held) + "/" +
                             std::to_string(now.slots) + " slots taken, " + counted(now.hooks_running, "hook") + ", " +
                             counted(now.snapshots_open, "snapshot") + " open in " + counted(now.crawls_open, "crawl"),
                         width > 12 ? width - 10 : 2));
  for (const auto one : store::stuck(connection, 3))
    lines.push_back("\x1b[33m" + fitted("stuck " + duration(one["seconds"].optional<double>()) + ": " +
                                            printable(one["name"].value_or("")) + ": " +
                                            printable(with_local_times(one["reason"].value_or(""))),
                                        width));
  lines.emplace_back();
}

void add_workers(pg::Connection& connection, std::size_t width, Lines& lines) {
  const auto workers = store::workers(connection, 8);
  lines.push_back(heading("WORKER", 40 > width ? width : 40) +
                  (width > 40 ? padded("HOLDS    LEASE LEFT  SAYS", width - 40) : ""));
  for (const auto& worker : workers)
    lines.push_back(fitted(padded(worker.label, 40) +
                               padded(std::to_string(worker.held) + "/" + std::to_string(worker.slots), 9) +
                               padded(duration(worker.lease_seconds), 12) + (worker.draining ? "draining " : ""),
                           width));
  if (workers.empty()) lines.emplace_back("no worker runs");
  lines.emplace_back();
}

void add_crawls(pg::Connection& connection, std::size_t width, Lines& lines) {
  const auto crawls = store::open_crawls(connection, 8);
  lines.push_back(heading("CRAWL", std::min<std::size_t>(width, 10)) +
                  padded("STATE     DONE             FAILED  WHAT", width - std::min<std::size_t>(width, 10)));
  for (const auto& crawl : crawls)
    lines.push_back(fitted(
        padded(crawl.id.substr(crawl.id.size() - 8), 10) + padded(crawl.status, 10) +
            padded(std::to_string(crawl.total - crawl.open) + "/" + std::to_string(crawl.total + crawl.seeds_left),
                   17) +
            padded(std::to_string(crawl.failed), 8) + printable(crawl.name()),
        width));
  if (crawls.empty()) lines.emplace_back("no crawl is open");
  lines.emplace_back();
}

void add_hooks(pg::Connection& connection, const std::string& order, std::size_t width, std::size_t height,
               Lines& lines) {
  lines.push_back(heading("PLUGIN", std::min<std::size_t>(width, 16)) +
                  padded("FOR       WORKER                        URL   (order: " + order + ")",
                         width - std::min<std::size_t>(width, 16)));
  const auto room = height > lines.size() + 2 ? height - lines.size() - 2 : 0;
  const auto hooks = store::running(connection, order, static_cast<int>(std::max<std::size_t>(room, 1)));
  for (std::size_t i = 0; i < hooks.size() && i < room; ++i)
    lines.push_back(fitted(padded(hooks[i].plugin, 16) + padded(duration(hooks[i].seconds), 10) +
                               padded(hooks[i].worker, 30) + printable(hooks[i].url),
                           width));
  if (hooks.empty()) lines.emplace_back("nothing runs");
}

Lines picture(pg::Connection& connection, const std::string& order, bool paused, std::size_t width,
              std::size_t height) {
  Lines lines;
  add_status(connection, width, lines);
  add_workers(connection, width, lines);
  add_crawls(connection, width, lines);
  add_hooks(connection, order, width, height, lines);
  lines.resize(height - 1);
  lines.push_back("\x1b[2m" +
                  fitted(std::string("q quit   s order   p freeze   space now") + (paused ? "   FROZEN" : ""), width));
  return lines;
}

int top(Context& context, double interval) {
  if (::isatty(STDIN_FILENO) == 0 || ::isatty(STDOUT_FILENO) == 0)
    throw base::Error(base::ErrorClass::usage, "top needs a terminal", "holdfast status --json, holdfast list running");
  auto* connection = &context.diagnosis();
  std::unique_ptr<pg::Connection> own;
  told_to_end();
  Screen screen;
  std::size_t order = 0;
  bool paused = false, look = true;
  auto next = Clock::now();
  while (!told_to_end()) {
    winsize size{};
    ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    const std::size_t width = size.ws_col > 20 ? size.ws_col : 80, height = size.ws_row > 6 ? size.ws_row : 24;
    if (look || (!paused && Clock::now() >= next)) {
      try {
        if (connection->broken()) {
          own = std::make_unique<pg::Connection>(context.dsn());
          connection = own.get();
        }
        Screen::draw(picture(*connection, kOrders[order], paused, width, height));
      } catch (const base::Error& error) {
        Screen::draw({fitted(printable(std::string("no answer from the database: ") + error.what()), width),
                      "trying again; q quits"});
      }
      next = Clock::now() + std::chrono::milliseconds(static_cast<std::int64_t>(interval * 1000));
      look = false;
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(next - Clock::now()).count();
    pollfd keys{STDIN_FILENO, POLLIN, 0};
    const int ready = ::poll(&keys, 1, paused ? 1000 : static_cast<int>(std::clamp<std::int64_t>(left, 0, 3'600'000)));
    if (ready < 0) {
      look = true; // another window size, or the end
      continue;
    }
    if (ready == 0) continue;
    char key = 0;
    if (::read(STDIN_FILENO, &key, 1) <= 0) break;
    if (key == 'q' || key == 'Q' || key == 4) break;
    if (key == 's') order = (order + 1) % kOrders.size();
    if (key == 'p') paused = !paused;
    look = key == 's' || key == 'p' || key == ' ';
  }
  return base::kExitSuccess;
}

} // namespace

Action top_verb(CLI::App& command) {
  const auto interval = std::make_shared<double>(1.0);
  command.add_option("-d,--delay", *interval, "Seconds between updates (1)")->check(number(0.1, std::optional(3600.0)));
  command.footer("Keys: q quit, s next order (age, plugin, url, worker), p pause, space update now.");
  return [interval](Context& context) { return top(context, *interval); };
}

} // namespace holdfast::cli
