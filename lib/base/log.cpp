#include "lib/base/log.hpp"

#include "lib/base/error.hpp"
#include "lib/base/text/json.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/ansicolor_sink.h>
#include <spdlog/sinks/sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <utility>

namespace holdfast::base {

namespace {

constexpr std::array kLevels = std::to_array<std::pair<std::string_view, spdlog::level::level_enum>>({
    {"trace", spdlog::level::trace},
    {"debug", spdlog::level::debug},
    {"info", spdlog::level::info},
    {"warn", spdlog::level::warn},
    {"error", spdlog::level::err},
    {"off", spdlog::level::off},
});

std::string_view level_name(spdlog::level::level_enum level) {
  for (const auto& [name, value] : kLevels) {
    if (value == level) return name;
  }
  return "error"; // spdlog's own "critical", which we never use
}

spdlog::level::level_enum parse_level(std::string_view name) {
  for (const auto& [known, value] : kLevels) {
    if (known == name) return value;
  }
  throw Error(ErrorClass::configuration, fmt::format("\"{}\" is not a log level", name),
              "Choose one of trace, debug, info, warn, error and off.");
}

// The message with control characters spelled out: what hooks and pages send us must neither break a line in two nor
// steer the reader's terminal.
class SafeMessage : public spdlog::custom_flag_formatter {
public:
  void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& out) override {
    for (const char c : message.payload) {
      const auto byte = static_cast<unsigned char>(c);
      if (c == '\n') {
        fmt::format_to(std::back_inserter(out), "\\n");
      } else if ((byte < 0x20 && c != '\t') || byte == 0x7F) {
        fmt::format_to(std::back_inserter(out), "\\x{:02x}", byte);
      } else {
        out.push_back(c);
      }
    }
  }
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<SafeMessage>(); }
};

// The sinks write at once, in the thread that logs.
thread_local const LogAbout* innermost = nullptr;

std::mutex process_mutex;
std::string process_label;

void add_subject(nlohmann::ordered_json& line, const LogAbout* about) {
  if (about == nullptr) return;
  add_subject(line, about->outer());
  const LogSubject& subject = about->subject();
  if (!subject.crawl.empty()) line["crawl"] = subject.crawl;
  if (!subject.snapshot.empty()) line["snapshot"] = subject.snapshot;
  if (subject.attempt != 0) line["attempt"] = subject.attempt;
  if (!subject.plugin.empty()) line["plugin"] = subject.plugin;
  if (!subject.hook.empty()) line["hook"] = subject.hook;
}

// Formats one JSON object a line: {"time":"2026-01-31T12:00:00.123Z","level":"info","message":"...","process":"...",
// "crawl":"...","snapshot":"...","attempt":1,"plugin":"...","hook":"..."}, of the last ones those that the line is
// about.
class JsonFormatter : public spdlog::formatter {
public:
  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override {
    using std::chrono::floor;
    const auto milliseconds = floor<std::chrono::milliseconds>(message.time.time_since_epoch()).count() % 1000;
    nlohmann::ordered_json line;
    line["time"] = fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(spdlog::log_clock::to_time_t(message.time)),
                               milliseconds);
    line["level"] = level_name(message.level);
    line["message"] = std::string_view(message.payload.data(), message.payload.size());
    {
      const std::lock_guard lock(process_mutex);
      if (!process_label.empty()) line["process"] = process_label;
    }
    add_subject(line, innermost);
    // Captured text may be invalid UTF-8; a log line must never fail for it.
    const std::string text = json_text(line);
    out.append(text.data(), text.data() + text.size());
    out.push_back('\n');
  }
  std::unique_ptr<formatter> clone() const override { return std::make_unique<JsonFormatter>(); }
};

std::mutex around_mutex;
std::function<void(const std::function<void()>&)> around_line;

// Lets a progress display on the terminal make way for each line.
class PoliteSink : public spdlog::sinks::sink {
public:
  explicit PoliteSink(spdlog::sink_ptr inner) : inner_(std::move(inner)) {}
  void log(const spdlog::details::log_msg& message) override {
    const std::lock_guard lock(around_mutex);
    if (around_line)
      around_line([&] { inner_->log(message); });
    else
      inner_->log(message);
  }
  void flush() override { inner_->flush(); }
  void set_pattern(const std::string& pattern) override { inner_->set_pattern(pattern); }
  void set_formatter(std::unique_ptr<spdlog::formatter> formatter) override {
    inner_->set_formatter(std::move(formatter));
  }

private:
  spdlog::sink_ptr inner_;
};

std::unique_ptr<spdlog::formatter> text_formatter() {
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<SafeMessage>('*').set_pattern("%Y-%m-%d %H:%M:%S.%e %^%-5l%$ %*");
  return formatter;
}

// Inputs of the level in force.
std::mutex level_mutex;
spdlog::level::level_enum configured = spdlog::level::info;
std::string requested;
bool debugging = false;

// With level_mutex held.
void apply_level() {
  auto level = debugging ? spdlog::level::debug : configured;
  for (const auto& [name, value] : kLevels)
    if (!debugging && name == requested) level = value;
  const auto before = spdlog::get_level();
  if (before == level) return;
  // Told at whichever of the two levels lets it through.
  spdlog::set_level(std::min({before, level, spdlog::level::info}));
  spdlog::info("log level: {}, it was {}", level_name(level), level_name(before));
  spdlog::set_level(level);
}

} // namespace

void set_log_around(std::function<void(const std::function<void()>&)> around) {
  const std::lock_guard lock(around_mutex);
  around_line = std::move(around);
}

void set_log_process(std::string_view label) {
  const std::lock_guard lock(process_mutex);
  process_label = label;
}

LogAbout::LogAbout(LogSubject subject) : subject_(std::move(subject)), outer_(std::exchange(innermost, this)) {}
LogAbout::~LogAbout() { innermost = outer_; }

void request_log_level(std::string_view level) {
  const std::lock_guard lock(level_mutex);
  if (requested == level) return;
  requested = level;
  apply_level();
}

void toggle_debugging() {
  const std::lock_guard lock(level_mutex);
  debugging = !debugging;
  apply_level();
}

void configure_logging(LogFormat format, std::string_view level) {
  const auto threshold = parse_level(level);
  {
    const std::lock_guard lock(level_mutex);
    configured = threshold;
  }
  const bool text = format == LogFormat::text || (format == LogFormat::automatic && isatty(STDERR_FILENO) == 1);
  spdlog::sink_ptr sink;
  if (text) {
    sink = std::make_shared<spdlog::sinks::ansicolor_stderr_sink_mt>(); // colours only if it is a terminal
    sink->set_formatter(text_formatter());
  } else {
    sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
    sink->set_formatter(std::make_unique<JsonFormatter>());
  }
  // set_default_logger(..., pattern) would put spdlog's own formatter over ours.
  auto logger = std::make_shared<spdlog::logger>("", std::make_shared<PoliteSink>(std::move(sink)));
  logger->set_level(threshold);
  spdlog::set_default_logger(std::move(logger));
}

} // namespace holdfast::base
