#pragma once
// Logging for every module: spdlog's default logger, text on a terminal, one JSON object a line otherwise. Logs go to
// standard error; standard output belongs to results. Configure once in main, then use spdlog::info and friends from
// any thread. No secret is ever logged: URLs of databases go through redact_dsn().

#include <string>
#include <string_view>

namespace holdfast::base {

enum class LogFormat { automatic, text, json };

// level: trace, debug, info, warn, error, off. Throws Error(configuration) for another word.
void configure_logging(LogFormat format, std::string_view level);

// The level from now on: what somebody asked for (empty: the configured one), unless debugging is switched on. Words
// that are no level are ignored.
void request_log_level(std::string_view level);
// Switches debugging on, or off again (SIGUSR1).
void toggle_debugging();

// "postgresql://u:secret@h/db?password=x" -> the same with every password replaced by "***".
std::string redact_dsn(std::string_view dsn);

} // namespace holdfast::base
