#pragma once
// Words for people about how a hook ended. Private to this module; pure.

#include "lib/process/command.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast::hooks {

// The line of a hook's stderr that says what went wrong: the last one that is not empty and not the tail of a stack
// trace. At most 500 bytes of clean text; "" if there is none.
std::string telling_line(std::string_view stderr_text);

// 60 s -> "60s", 1500 ms -> "1.5s": in the unit in which timeouts are configured.
std::string in_seconds(std::chrono::milliseconds duration);

// It ended because we asked it to, while we were leaving, and not for a reason of its own.
bool ended_by_stop(const process::Exit& exit);

// Which limit of its tree it exceeded, in words; "" if none.
std::string describe_excess(const process::Exit& exit, const process::Limits& limits);

} // namespace holdfast::hooks
