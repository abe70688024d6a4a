#include "lib/base/duration.hpp"
#include "lib/base/error.hpp"
#include "lib/store/operate.hpp"
#include "lib/store/view.hpp"
#include "services/cli/look.hpp"
#include "services/cli/output.hpp"
#include "services/cli/times.hpp"

#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::cli {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::array<const char*, 4> kOrders{"age", "plugin", "url", "node"};

void write_all(std::string_view text) {
  while (!text.empty()) {
    const auto wrote = ::write(STDOUT_FILENO, text.data(), text.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(wrote));
  }
}

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
    write_all("\x1b[?1049h\x1b[?25l");
  }
  ~Screen() {
    write_all("\x1b[?25h\x1b[?1049l");
    ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  // One write, over what is there: nothing is cleared first, so nothing flickers.
  static void draw(const std::vector<std::string>& lines) {
    std::string frame = "\x1b[?2026h\x1b[H";
    for (std::size_t at = 0; at < lines.size(); ++at)
      frame += lines[at] + "\x1b[0m\x1b[K" + (at + 1 < lines.size() ? "\r\n" : "");
    write_all(frame + "\x1b[J\x1b[?2026l");
  }

private:
  termios before_{};
};

std::string padded(const std::string& text, std::size_t width) {
  auto cut = fitted(printable(text), width);
  return cut + std::string(width - std::min(width, display_width(cut)), ' ');
}

std::string seconds(const pg::Row& row, std::string_view column) {
  if (row.is_null(column)) return "";
  return base::format_duration(
      std::chrono::milliseconds(static_cast<std::int64_t>(std::llround(std::max(row.number(column), 0.0) * 1000))));
}

std::string counted(std::int64_t count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

std::string heading(const std::string& text, std::size_t width) { return "\x1b[7m" + padded(text, width); }

std::vector<std::string> picture(pg::Connection& connection, const std::string& order, bool paused, std::size_t width,
                                 std::size_t height) {
  std::vector<std::string> lines;
  const auto status = store::status(connection);
  const auto now = status.one();
  lines.push_back("\x1b[1mholdfast\x1b[0m  " +
                  fitted(counted(now.integer("nodes"), "node") + ", " + now.text("snapshots_held") + "/" +
                             now.text("slots") + " slots taken, " + counted(now.integer("hooks_running"), "hook") +
                             ", " + counted(now.integer("snapshots_open"), "snapshot") + " open in " +
                             counted(now.integer("crawls_open"), "crawl"),
                         width > 12 ? width - 10 : 2));
  const auto stuck = store::stuck(connection, 3);
  for (std::size_t i = 0; i < stuck.size(); ++i)
    lines.push_back("\x1b[33m" +
                    fitted("stuck " + seconds(stuck[i], "seconds") + ": " + printable(stuck[i]["name"].value_or("")) +
                               ": " + printable(with_local_times(stuck[i]["reason"].value_or(""))),
                           width));
  lines.emplace_back();
  const auto nodes = store::nodes(connection, 8);
  lines.push_back(heading("NODE", 40 > width ? width : 40) +
                  (width > 40 ? padded("HOLDS    LEASE LEFT  SAYS", width - 40) : ""));
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const auto row = nodes[i];
    lines.push_back(fitted(padded(row.text("label"), 40) + padded(row.text("held") + "/" + row.text("slots"), 9) +
                               padded(seconds(row, "lease_seconds"), 12) + (row.boolean("draining") ? "draining " : ""),
                           width));
  }
  if (nodes.empty()) lines.emplace_back("no node runs");
  lines.emplace_back();
  const auto crawls = store::open_crawls(connection, 8);
  lines.push_back(heading("CRAWL", std::min<std::size_t>(width, 10)) +
                  padded("STATE     DONE             FAILED  WHAT", width - std::min<std::size_t>(width, 10)));
  for (std::size_t i = 0; i < crawls.size(); ++i) {
    const auto row = crawls[i];
    const auto total = row.integer("total");
    const auto label = row.text("label");
    const auto id = row.text("id");
    lines.push_back(fitted(padded(id.substr(id.size() - 8), 10) + padded(row.text("status"), 10) +
                               padded(std::to_string(total - row.integer("open")) + "/" +
                                          std::to_string(total + row.integer("seeds_left")),
                                      17) +
                               padded(row.text("failed"), 8) + printable(label.empty() ? row.text("first_url") : label),
                           width));
  }
  if (crawls.empty()) lines.emplace_back("no crawl is open");
  lines.emplace_back();
  lines.push_back(heading("PLUGIN", std::min<std::size_t>(width, 16)) +
                  padded("FOR       NODE                          URL   (order: " + order + ")",
                         width - std::min<std::size_t>(width, 16)));
  const auto room = height > lines.size() + 2 ? height - lines.size() - 2 : 0;
  const auto hooks = store::running(connection, order, static_cast<int>(std::max<std::size_t>(room, 1)));
  for (std::size_t i = 0; i < hooks.size() && i < room; ++i) {
    const auto row = hooks[i];
    lines.push_back(fitted(padded(row.text("plugin"), 16) + padded(seconds(row, "seconds"), 10) +
                               padded(row.text("node"), 30) + printable(row.text("url")),
                           width));
  }
  if (hooks.empty()) lines.emplace_back("nothing runs");
  if (lines.size() > height - 1) lines.resize(height - 1);
  while (lines.size() + 1 < height)
    lines.emplace_back();
  lines.push_back("\x1b[2m" +
                  fitted(std::string("q quit   s order   p pause   space now") + (paused ? "   PAUSED" : ""), width));
  return lines;
}

} // namespace

int top(Context& context, double interval) {
  if (::isatty(STDIN_FILENO) == 0 || ::isatty(STDOUT_FILENO) == 0)
    throw base::Error(base::ErrorClass::usage, "top needs a terminal", "holdfast status --json, holdfast list running");
  auto* connection = &context.connection();
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

} // namespace holdfast::cli
