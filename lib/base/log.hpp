#pragma once
// Logging for every module: spdlog's default logger, text on a terminal, one JSON object a line otherwise. Logs go to
// standard error; standard output belongs to results. Configure once in main, then use spdlog::info and friends from
// any thread.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace holdfast::base {

enum class LogFormat { automatic, text, json };

// level: trace, debug, info, warn, error, off. Throws Error(configuration) for another word.
void configure_logging(LogFormat format, std::string_view level);

// Calls `around` for each line from now on, which writes the line by calling its argument: for who draws on the same
// terminal. An empty function ends that; after the call returns, the old one is not called any more.
void set_log_around(std::function<void(const std::function<void()>&)> around);

// The level from now on: the requested one (empty: the configured one), unless debugging is switched on. Words
// that are no level are ignored.
void request_log_level(std::string_view level);
// Switches debugging on, or off again (SIGUSR1).
void toggle_debugging();

// Every JSON line names this process from now on.
void set_log_process(std::string_view label);

// Subject of a log line. Empty fields are left out.
struct LogSubject {
  std::string crawl, snapshot;
  std::int64_t attempt{0};
  std::string plugin, hook;
};

// Adds the fields of the subject to the JSON lines that this thread logs during its life, besides those of an outer
// one. The destructor removes them. In a coroutine it must not live across a co_await, which may change the thread.
class LogAbout {
public:
  explicit LogAbout(LogSubject subject);
  ~LogAbout();
  LogAbout(const LogAbout&) = delete;
  LogAbout& operator=(const LogAbout&) = delete;

  const LogSubject& subject() const noexcept { return subject_; }
  const LogAbout* outer() const noexcept { return outer_; }

private:
  LogSubject subject_;
  const LogAbout* outer_;
};

} // namespace holdfast::base
