#pragma once
// Checks whether the browser of the built-in plugins starts on this machine, by starting it: when a worker that stays
// begins, after a crawl could not be opened here, and again as long as it does not start. The database gets the result,
// and leaves crawls that need the browser to other workers. Owned by Worker; main thread only, the try is on a thread.

#include "lib/base/async.hpp"
#include "lib/base/coroutine.hpp"
#include "services/worker/hook/hook_sandbox.hpp"
#include "services/worker/hook/hook_services.hpp"
#include "services/worker/hook/try_browser.hpp"

namespace holdfast::worker {

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
