#pragma once
// The persona of a page's crawl, as this page was given it. Owned by SnapshotJob; main thread only.

#include "lib/base/async.hpp"
#include "lib/hooks/hook_run.hpp"
#include "lib/store/snapshot.hpp"
#include "lib/warc/redact.hpp"
#include "services/worker/options.hpp"
#include "services/worker/session/session_persona.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace holdfast::worker {

class PagePersona {
public:
  // Reads what other workers have stored since. `persona`: of the session, which outlives this; null: it has none.
  awaitable<void> join(SessionPersona* persona);
  // Removes the persona's secrets from texts of this page; none if there is no persona, or archive.redact is off.
  std::optional<warc::Redactor> redactor(const Options& options, const std::string& url) const;
  // A hook has ended. Throws Failure(later) if it reports that the persona is signed out.
  awaitable<void> heed(const hooks::HookRun& hook, const hooks::HookOutcome& outcome, const Options& options,
                       const store::Lease& lease);
  // Stores what the page has changed in the persona's state, and gives `redactor`, if there is one, its new secrets.
  awaitable<void> keep(const store::Lease& lease, std::optional<warc::Redactor>& redactor, const std::string& url);

private:
  SessionPersona* persona_{nullptr};
  std::int64_t version_{0}; // that the hooks of this page were given
};

// Removes secrets from the texts of an outcome. archive::redact_attempt() does the same with files.
void hide_secrets(const warc::Redactor& redactor, hooks::HookOutcome& outcome);

} // namespace holdfast::worker
