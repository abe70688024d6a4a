#pragma once
// Keeps the rows of holdfast.binary for this machine: records which binaries the plugins require, looks for those that
// are due - path, version, digest - and runs hooks of the old generation (on_Binary__*) to install missing ones, each
// under a claim. Main thread only; owned by Worker. It never throws, and no snapshot waits for it unless a crawl hook
// has requested a binary.

#include "lib/base/async.hpp"
#include "lib/base/coroutine.hpp"
#include "lib/hooks/hook_run.hpp"
#include "lib/hooks/record.hpp"
#include "lib/store/binary.hpp"
#include "services/worker/hook/hook_services.hpp"

#include <boost/asio/steady_timer.hpp>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::worker {

class BinaryResolver {
public:
  explicit BinaryResolver(HookServices& context);
  ~BinaryResolver();
  BinaryResolver(const BinaryResolver&) = delete;
  BinaryResolver& operator=(const BinaryResolver&) = delete;

  // Runs until stop(). Spawned by the worker, which waits for its end.
  awaitable<void> run();
  // Ends what runs for it.
  void stop();

  // Adds the plugins of a crawl. Binaries that they require and that are not enabled here otherwise are looked for,
  // too.
  void also(const std::vector<std::string>& plugins, const hooks::Options& options);
  // Handles a crawl hook that requests binaries, or reports where it has put them. Completes when those that were not
  // requested before have been looked for, at most ten minutes later.
  awaitable<void> provide(std::vector<hooks::BinaryRecord> records, std::string plugin);
  // A hook has set options of this machine.
  awaitable<void> keep(hooks::Options options);

private:
  std::string wanted() const;
  awaitable<void> look_for(store::BinaryClaim claim);
  awaitable<std::string> install(const store::BinaryClaim& claim, std::string& provider, std::string& problem);
  bool can_install() const;

  HookServices& context_;
  base::Sleeper sleeper_;
  asio::steady_timer looked_;                   // never expires; cancel() wakes those who wait
  bool looking_{false};                         // the first second is over
  bool told_{false};                            // the database knows what we need
  std::map<std::string, hooks::Options> asked_; // plugins of crawls, with the options of the first that ran it
  std::map<std::string, int> looks_;            // at each name
  std::shared_ptr<process::Child> probe_;
  hooks::HookRun* installer_{nullptr};
};

// Returns the beginning of the output of a binary; "" if it fails. Ends after ten seconds at the latest; `running` is
// the process while it runs, so that it can be ended. `scratch`: a directory for its output.
awaitable<std::string> binary_output(process::Launcher& launcher, std::vector<std::string> argv,
                                     std::filesystem::path scratch, std::string cookie,
                                     std::shared_ptr<process::Child>& running);

} // namespace holdfast::worker
