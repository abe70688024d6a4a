#pragma once
// Keeps the rows of holdfast.binary for this machine: says which binaries the plugins need, looks for those that are
// due - path, version, digest - and runs hooks of the old generation (on_Binary__*) to install what is not there, each
// under a claim. Main thread only; owned by Worker. Its work is on the side: it never throws, and no snapshot waits for
// it unless a crawl hook has asked for a binary.

#include "lib/base/async.hpp"
#include "lib/base/coroutine.hpp"
#include "lib/hooks/hook_run.hpp"
#include "lib/hooks/record.hpp"
#include "lib/store/worker.hpp"
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

  // Until stop(). Spawned by the worker, which waits for its end.
  awaitable<void> run();
  // Ends what runs for it.
  void stop();

  // A crawl runs these plugins. What those of them need that are not enabled here otherwise is looked for, too.
  void also(const std::vector<std::string>& plugins, const hooks::Options& options);
  // A crawl hook asks for binaries, or says where it has put them. Completes when those that were not requested before
  // before have been looked for, at most ten minutes later.
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

// What a binary prints, its beginning; "" if it fails. Ends after ten seconds at the latest; `running` is the process
// while it runs, for who wants to end it. `scratch`: a directory for what it prints.
awaitable<std::string> binary_output(process::Launcher& launcher, std::vector<std::string> argv,
                                     std::filesystem::path scratch, std::string cookie,
                                     std::shared_ptr<process::Child>& running);

} // namespace holdfast::worker
