#include "lib/archive/root.hpp"
#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/text/time.hpp"
#include "lib/catalog/list.hpp"
#include "lib/store/live.hpp"
#include "services/cli/command/fields.hpp"
#include "services/cli/command/verbs.hpp"
#include "services/cli/context/signals.hpp"
#include "services/cli/terminal/output.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

namespace holdfast::cli {

namespace {

void print_list(pg::Connection& connection, const catalog::ListQuery& query, const char* title, std::ostream& out) {
  const auto rows = catalog::list(connection, query);
  if (rows.empty()) return;
  out << '\n' << title << '\n';
  print_table(rows, catalog::list_of(query.view).columns, out);
}

void print_now(pg::Connection& connection, const Context& context, std::ostream& out) {
  const auto rows = store::status(connection);
  const auto now = rows.one();
  const auto lapsed = now.integer("workers_lapsed");
  print_fields(
      {{"data", context.embedded() ? context.data_dir().string() + " (embedded PostgreSQL)" : "database.url"},
       {"archive", context.archive_root().string()},
       {"archived",
        fmt::format("{} page{}, {}, in {} crawl{}", now.text("archived"), now.integer("archived") == 1 ? "" : "s",
                    base::format_size(now["bytes"]), now.text("crawls"), now.integer("crawls") == 1 ? "" : "s")},
       {"workers", fmt::format("{} running, {} slots{}", now.text("workers"), now.text("slots"),
                               lapsed == 0 ? "" : fmt::format(", {} lapsed in the last hour", lapsed))},
       {"runner",
        now.integer("runners") > 0 ? "leads" : "none: no schedules or maintenance until one starts (holdfast runner)"},
       {"crawls", fmt::format("{} open, {} paused", now.text("crawls_open"), now.text("crawls_paused"))},
       {"snapshots", fmt::format("{} open, {} in work", now.text("snapshots_open"), now.text("snapshots_held"))},
       {"hooks", fmt::format("{} running", now.text("hooks_running"))},
       {"last sealed",
        now.is_null("last_sealed_at") ? "none in the last 30 days" : local_time(now.text("last_sealed_at"))}},
      out);
  if (!now.is_null("paused")) out << '\n' << printable(now.text("paused")) << ": holdfast resume --all\n";
  if (now.integer("crawls_to_do") > 0 && now.integer("workers") == 0)
    out << "\nThere is work, but no worker runs: holdfast run, or holdfast worker.\n";
  for (const auto one : store::stuck(connection, 3))
    out << "\nstuck: " << printable(one["name"].value_or("")) << ": "
        << printable(with_local_times(one["reason"].value_or(""))) << '\n';
}

// A screen of its own, given back by the destructor. Longer lines than it has are cut by the terminal.
class Screen {
public:
  Screen() { print("\x1b[?1049h\x1b[?25l\x1b[?7l"); }
  ~Screen() { print("\x1b[?7h\x1b[?25h\x1b[?1049l"); }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  // Draws in one write, over the old text: nothing is cleared first, so nothing flickers.
  static void draw(const std::string& text) {
    winsize size{};
    ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    std::string frame = "\x1b[?2026h\x1b[H", line;
    std::istringstream lines(text);
    for (int row = 1; (size.ws_row == 0 || row < size.ws_row) && std::getline(lines, line); ++row)
      frame += line + "\x1b[K\r\n";
    print(frame + "\x1b[J\x1b[?2026l");
  }

private:
  static void print(const std::string& text) { base::write_all(STDOUT_FILENO, text); }
};

struct StatusOptions {
  bool follow{false};
  double delay{1};
};

// Returns the display of `status --follow`: a line of JSON, or the state with running hooks.
std::string picture(pg::Connection& connection, const Context& context) {
  std::ostringstream out;
  if (context.json()) {
    print_record("Status", store::status_json(connection), out);
    return out.str();
  }
  print_now(connection, context, out);
  catalog::ListQuery workers{"workers", 8};
  print_list(connection, workers.by("status", "running").by("kind", "worker"), "workers", out);
  catalog::ListQuery crawls{"crawls", 8};
  print_list(connection, crawls.by("status", "started"), "crawls", out);
  print_list(connection, {"running", 100}, "running now", out);
  return out.str();
}

int follow(Context& context, double delay) {
  auto* session = &context.diagnosis();
  std::unique_ptr<pg::Connection> own; // after the first one was lost
  interrupted();
  std::optional<Screen> screen;
  if (!context.json() && ::isatty(STDOUT_FILENO) != 0) screen.emplace();
  while (!interrupted()) {
    std::string text;
    try {
      if (session->broken()) {
        own = std::make_unique<pg::Connection>(context.dsn());
        session = own.get();
      }
      text = picture(*session, context);
    } catch (const base::Error& error) {
      text = printable(std::string("no answer from the database: ") + error.what()) + "; trying again\n";
      if (!screen) std::cerr << "holdfast: " << std::exchange(text, "");
    }
    if (screen)
      Screen::draw(text);
    else if (!(std::cout << text << std::flush))
      break; // our reader has closed the pipe
    interrupted_within(std::chrono::milliseconds(static_cast<std::int64_t>(delay * 1000)));
  }
  return base::kExitInterrupted;
}

int status(Context& context, const StatusOptions& options) {
  if (options.follow) return follow(context, options.delay);
  auto& connection = context.diagnosis();
  if (context.json()) {
    print_record("Status", store::status_json(connection));
  } else {
    print_now(connection, context, std::cout);
    print_list(connection, {"failures", 5}, "latest failures", std::cout);
  }
  std::cout << std::flush;
  return base::kExitSuccess;
}

} // namespace

Action status_verb(CLI::App& command) {
  const auto options = std::make_shared<StatusOptions>();
  command.add_flag("-f,--follow", options->follow, "Show again and again what runs, until interrupted");
  command.add_option("-d,--delay", options->delay, "Seconds between updates (1)")
      ->needs("--follow")
      ->check(number(0.1, std::optional(3600.0)));
  return [options](Context& context) { return status(context, *options); };
}

} // namespace holdfast::cli
