#pragma once
// holdfast webhook add|list|pause|resume|retry|test|remove. Main thread.

#include "services/cli/context.hpp"

#include <functional>

namespace CLI {
class App;
}

namespace holdfast::cli {

// Adds the verb to the command line. `verb` must live until it has run.
void add_webhook_commands(CLI::App& app, std::function<int(Context&)>& verb);

} // namespace holdfast::cli
