#pragma once
// What of a persona's state must not stand in the archive. Pure; any thread.

#include "lib/persona/state.hpp"

#include <string>
#include <vector>

namespace holdfast::persona {

// Passwords, headers, cookies, and what looks like a token in its storage, each also without its percent escapes and
// in the parts that a site may show alone. Words and numbers, such as the name of a theme, are none.
std::vector<std::string> secrets_of(const State& state);

} // namespace holdfast::persona
