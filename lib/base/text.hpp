#pragma once
// Small work on text that several modules need. Pure but for tail_of; any thread; nothing is owned.

#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::base {

// "a, b,,c" at "," -> {"a", "b", "c"}: any of `separators` ends a part; blanks around it go, empty parts are left out.
std::vector<std::string> split(std::string_view text, std::string_view separators);

std::string join(const std::vector<std::string>& parts, std::string_view separator);

// At most the last `bytes` of a file; empty if it cannot be read.
std::string tail_of(const std::filesystem::path& file, std::size_t bytes);

// "2026-01-31T23:59:59Z", now.
std::string utc_timestamp();
// "2026-01-31T23:59:59.123456Z".
std::string utc_timestamp(std::chrono::system_clock::time_point time);

} // namespace holdfast::base
