#pragma once
// The browser of the built-in plugins on this machine, and what its worker therefore announces.

#include "lib/base/async.hpp"
#include "lib/base/coroutine.hpp"
#include "lib/store/worker.hpp"
#include "services/worker/hook/hook_sandbox.hpp"
#include "services/worker/hook/hook_services.hpp"
#include "services/worker/options.hpp"

#include <filesystem>
#include <string>

namespace holdfast::worker {

// The plugin whose hook starts the browser of the built-in ones.
inline constexpr const char* kBrowserPlugin = "browser";

// State of the browser here: "with its own sandbox", "without its own sandbox, in that of its hook", or why it does not
// start.
struct BrowserState {
  bool starts{false};
  std::string description;
};
// Starts the browser once, as its crawl hook would: in the sandbox of hooks. Blocking, a third of a second; any thread.
// `place`: an empty directory of the caller's, which hooks get and may fill.
BrowserState try_browser(const Options& options, const SandboxState& state, const std::string& program,
                         const std::filesystem::path& place);

// The last line that a browser has written into a log; empty: none.
std::string last_line(const std::filesystem::path& log);

// Returns the capabilities of a worker for claims: `plugins`, those that it has and that work here; `lacks`, why not
// all that are enabled without being named do; `persona`, whose pages it can take; `browser`, its state; `archive`,
// where its files go.
std::string capabilities_json(const Options& options, const BrowserState& browser);

// Returns the description of a worker of these options, with the plugins that it has.
store::ProcessInfo describe_worker(const Options& options);

// Checks whether the browser starts, by starting it: when a worker that stays begins, after a crawl could not be opened
// here, and again as long as it does not start. The database gets the result, and leaves crawls that need the browser
// to other workers. Owned by Worker; main thread only, the try is on a thread.
class BrowserWatch {
public:
  BrowserWatch(HookServices& context, const SandboxState& sandbox);

  // Runs until stop(). Not `at_once`: a worker that ends with its pages starts the browser for them anyway.
  awaitable<void> run(bool at_once);
  void suspect() { sleeper_.wake(); }
  void stop() { sleeper_.stop(); }

private:
  awaitable<void> look();
  awaitable<void> tell();

  HookServices& context_;
  const SandboxState& sandbox_;
  BrowserState state_{true, ""};
  base::Sleeper sleeper_;
};

} // namespace holdfast::worker
