#pragma once
// The directories of one crawl session, or of a sign-in: CRAWL_DIR, and what its hooks see of personas and the library.
// Owned by CrawlSession or SignIn; main thread only, with the work on files on the files thread.

#include "lib/base/async.hpp"
#include "lib/hooks/environment.hpp"
#include "services/worker/hook/hook_services.hpp"

#include <boost/asio/steady_timer.hpp>

#include <filesystem>
#include <string>

namespace holdfast::worker {

class SessionDirectory {
public:
  SessionDirectory(HookServices& context, const std::string& crawl_id, const std::string& session_id,
                   const std::string& persona); // its name; empty: none

  // The crawl has hooks: they need more than its snapshots do.
  void set_hooks(bool any) { hooks_ = any; }
  const std::filesystem::path& path() const { return path_; }
  // Outside of CRAWL_DIR: what is secret of its persona, which only hooks of persona.plugins are shown. Empty: it has
  // none.
  std::filesystem::path persona_files() const;
  std::filesystem::path temporary() const;
  // The crawl's browser saves what it downloads into the directories of its pages.
  std::filesystem::path attempts() const;

  // Makes the directory and leases the user of its hooks. Throws Error(cannot_create), and as HookUsers::lease() does.
  awaitable<void> make();
  // Says where it all is.
  void describe(hooks::HookContext& hook) const;
  // Returns the sandbox of all hooks of the crawl on this worker; from make() on.
  const process::Sandbox& sandbox() const { return sandbox_; }
  // Refreshes the heartbeat file until remove(). Hooks that clean up treat a crawl directory without a fresh heartbeat
  // as abandoned.
  awaitable<void> keep_heartbeat();
  awaitable<void> remove();

private:
  // A browser locks its profile: each session has one of its own.
  std::filesystem::path personas() const { return path_ / ".persona"; }
  // Hooks of a crawl keep things in the library for the hooks of its pages. In the sandbox the real one is read-only,
  // as its programs run in other crawls too: each session has one of its own, with links to what the real one has.
  std::filesystem::path library() const;
  bool sandboxed() const { return context_.sandbox.level != process::SandboxLevel::none; }

  HookServices& context_;
  const std::string crawl_id_, session_id_, persona_;
  const std::filesystem::path path_;
  process::Sandbox sandbox_;
  std::shared_ptr<const process::HookUser> user_; // null: hooks run as this process does
  bool hooks_{false};
  asio::steady_timer pulse_;
};

} // namespace holdfast::worker
