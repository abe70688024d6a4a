#pragma once
// The persona of a crawl session, decrypted, and as each page was given it. Its files are cookies.txt and auth.json,
// and changes/, where a hook may put the changes of its page. Owned by CrawlSession; main thread only, with the work on
// files on the files thread.

#include "lib/base/async.hpp"
#include "lib/hooks/hook_run.hpp"
#include "lib/hooks/plugin_set.hpp"
#include "lib/store/persona.hpp"
#include "lib/store/snapshot.hpp"
#include "lib/warc/redact.hpp"
#include "services/worker/options.hpp"
#include "services/worker/session/session_directory.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

namespace holdfast::worker {

class SessionPersona {
public:
  // Opens the persona; null without a name. Throws Failure(no_plugin) if it was removed or cannot be decrypted here:
  // another worker may.
  static awaitable<std::unique_ptr<SessionPersona>> open(HookServices& context, const std::string& name);

  const std::string& name() const { return persona_.name; }
  const hooks::Options& options() const { return persona_.options; } // for all hooks
  std::int64_t version() const { return persona_.version; }
  // Adds the secrets of the versions that pages were given, and those that pages have made of them.
  void add_secrets(warc::Redactor& redactor) const;
  // A page that was given `version` was captured signed out. Notes it, and throws Failure(later).
  awaitable<void> signed_out(std::int64_t version, const store::Lease& lease, std::string reason);

  // Writes its files into the directory, which outlives it.
  awaitable<void> make(const SessionDirectory& directory);
  // Before a page: what another worker has stored since. Throws as open().
  awaitable<void> renew();
  // After a page: stores what it has changed, unless another has changed the same meanwhile.
  awaitable<void> keep(store::Lease lease);

private:
  struct Change {
    std::int64_t version{0}; // that the page was given
    persona::State state;
  };

  SessionPersona(HookServices& context, store::Persona persona);
  awaitable<void> take(store::Persona persona);
  void write_files() const;
  std::vector<Change> read_changes() const;

  HookServices& context_;
  store::Persona persona_;
  const SessionDirectory* directory_{nullptr};   // from make() on
  std::map<std::int64_t, persona::State> given_; // the last versions that pages were given
  std::set<std::string> renewed_;                // secrets of states that pages have reported, kept or not
};

// The persona of a crawl as one page was given it. Owned by SnapshotJob; main thread only.
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
