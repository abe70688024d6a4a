#pragma once
// Starts the browser of the built-in plugins once, as its crawl hook would: in the sandbox of hooks. Blocking, a third
// of a second; any thread.

#include "services/worker/hook/hook_sandbox.hpp"

#include <filesystem>
#include <string>

namespace holdfast::worker {

// State of the browser here: "with its own sandbox", "without its own sandbox, in that of its hook", or why it does not
// start.
struct BrowserState {
  bool starts{false};
  std::string description;
};
// Starts the browser once. `place`: an empty directory of the caller's, which hooks get and may fill.
BrowserState try_browser(const Options& options, const SandboxState& state, const std::string& program,
                         const std::filesystem::path& place);

// The last line that a browser has written into a log; empty: none.
std::string last_line(const std::filesystem::path& log);

} // namespace holdfast::worker
