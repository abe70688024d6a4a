#pragma once
// Starts the browser of the built-in plugins once, as its crawl hook would: in the sandbox of hooks. Blocking, about a
// second.

#include "services/worker/hook_sandbox.hpp"

#include <string>

namespace holdfast::cli {

// What can be said of it here: "with its own sandbox", "without its own sandbox, in that of its hook", or why it does
// not start.
struct BrowserState {
  bool starts{false};
  std::string description;
};
BrowserState try_browser(const worker::Options& options, const worker::SandboxState& state, const std::string& program);

} // namespace holdfast::cli
