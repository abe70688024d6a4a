#pragma once
// Sentences for users about the end of a hook. Private to this module; pure.

#include "lib/process/command.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast::hooks {

// Returns the line of a hook's stderr with the cause: the last one that is not empty and not the tail of a stack trace.
// At most 500 bytes of clean text; "" if there is none.
std::string telling_line(std::string_view stderr_text);

// 60 s -> "60s", 1500 ms -> "1.5s": in the unit in which timeouts are configured.
std::string in_seconds(std::chrono::milliseconds duration);

// Returns true if it ended because we requested it, while we were leaving, and not for a reason of its own.
bool ended_by_stop(const process::Exit& exit);

// Returns the limit of its tree that it exceeded, in words; "" if none.
std::string describe_excess(const process::Exit& exit, const process::Limits& limits);

} // namespace holdfast::hooks
