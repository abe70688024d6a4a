#pragma once
// The services that run hooks on this machine. Owned by Worker, which outlives its users; main thread only.

#include "lib/process/hook_users.hpp"
#include "lib/process/launcher.hpp"
#include "lib/process/sandbox.hpp"
#include "services/worker/hook/binary_lookup.hpp"
#include "services/worker/turn/worker_context.hpp"

#include <string>

namespace holdfast::worker {

class HookNetworks;

struct HookServices : WorkerContext {
  process::Launcher& launcher;
  BinaryLookup& binaries;
  const process::Sandbox& sandbox;      // of all hooks; those of a page or crawl get their own directories on top
  const process::HookUsers& hook_users; // a crawl's hooks get one
  HookNetworks& networks;
};

} // namespace holdfast::worker
