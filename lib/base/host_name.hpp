#pragma once
// The host part of a URL, as written by anyone, in its one canonical spelling. Internal to lib/base. Pure; any thread.

#include <optional>
#include <string>
#include <string_view>

namespace holdfast::base {

// "EXAMPLE.com" -> "example.com", "bücher.example" -> "xn--bcher-kva.example", "0x7f.1" -> "127.0.0.1",
// "[0:0::1]" -> "::1". nullopt, and what is wrong in `problem`, if no resolver should ever see it.
std::optional<std::string> canonical_host(std::string_view written, std::string& problem);

} // namespace holdfast::base
