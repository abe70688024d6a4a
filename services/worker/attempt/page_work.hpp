#pragma once
// One page between the end of its last hook and its seal: what the steps (steps.hpp) read and change. Owned by
// SnapshotJob, which runs one step at a time; a step may use it on the files thread.

#include "lib/archive/attempt.hpp"
#include "lib/archive/captures.hpp"
#include "lib/archive/root.hpp"
#include "lib/change/reuse.hpp"
#include "lib/store/snapshot.hpp"
#include "lib/warc/redact.hpp"
#include "services/worker/attempt/attempt_files.hpp"
#include "services/worker/attempt/verdict.hpp"
#include "services/worker/hook/hook_network.hpp"
#include "services/worker/hook/hook_services.hpp"

#include <nlohmann/json.hpp>

#include <memory>
#include <optional>
#include <string>

namespace holdfast::worker {

class ArchiveWatch;
class ClaimConditions;
class CrawlSessions;
class RunningHooks;
class Turns;

// Services that the attempts at pages use besides hooks. Owned by Worker, which outlives its users; main thread only.
struct PageServices : HookServices {
  const archive::Root& archive_root;
  ArchiveWatch& archive_watch;
  CrawlSessions& sessions;
  Turns& turns;
  RunningHooks& running_hooks;
  ClaimConditions& claim_conditions;
};

// The last capture of the URL, whose files are shown again because the site has said that they are unchanged.
struct Earlier {
  std::string previous, kind, body; // of its fingerprint; body: as bytes
  change::Reuse reuse;
  std::string directory; // of the capture by hooks
};

struct PageWork {
  PageServices& services;
  const store::Claim& claim;
  AttemptFiles& files;
  archive::SnapshotView& view;

  std::unique_ptr<Route> route{};           // null: hooks have the machine's network, or have ended
  std::optional<egress::Traffic> traffic{}; // of the route, once the hooks have ended
  std::optional<warc::Redactor> redactor{}; // of its persona, unless archive.redact is off
  process::Sandbox sandbox{};               // of its hooks
  Verdict verdict{};
  std::string machine_trouble{}; // the last hook that the machine ended; empty: none

  std::string hooks{};              // digest of the hooks to run, and of their options
  std::optional<Earlier> earlier{}; // no hook has run

  archive::Captures captures{};   // the records of its WARC files
  nlohmann::json replay{};        // of capture.check; null: the page was not replayed
  std::string text{};             // of the page, for search
  archive::Published published{}; // not yet sealed
  store::Page page{};             // for the seal

  // Adds a sentence to the reason of the page.
  void add_reason(const std::string& why) { page.reason += (page.reason.empty() ? "" : "; ") + why; }
};

} // namespace holdfast::worker
