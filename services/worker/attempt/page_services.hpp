#pragma once
// The services that attempts at pages use besides hooks. Owned by Worker, which outlives its users; main thread only.

#include "lib/archive/root.hpp"
#include "services/worker/hook/hook_services.hpp"

namespace holdfast::worker {

class ClaimConditions;
class CrawlSessions;
class RunningHooks;
class Turns;

struct PageServices : HookServices {
  const archive::Root& archive_root;
  CrawlSessions& sessions;
  Turns& turns;
  RunningHooks& running_hooks;
  ClaimConditions& claim_conditions;
};

} // namespace holdfast::worker
