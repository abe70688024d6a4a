#pragma once
// Crawl sessions of one worker: the crawl hooks of a crawl, run once for it on this worker and shared
// by its snapshots here. A session opens with its first snapshot, stays while it has any and a while longer, and ends
// by the ladder: each hook has its own remaining time. A crawl without crawl hooks has one as well, which costs
// nothing.
//
// Main thread only; owned by Worker. Its coroutines end when close() has completed: destroy it only then.

#include "lib/base/async.hpp"
#include "lib/hooks/environment.hpp"
#include "lib/store/snapshot.hpp"
#include "services/worker/job_context.hpp"

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace holdfast::worker {

class CrawlSession;

// Thrown by join(): this worker has as many crawls open as it may. The snapshot is released for another worker.
struct SessionsFull {};
// Thrown by join(): the session could not be opened, or was given up meanwhile.
class SessionFailed : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

struct HookNetwork;

class CrawlSessions {
public:
  // A snapshot's share in a session, which stays open while there is one. Destroyed before the sessions.
  class Share {
  public:
    Share() = default;
    Share(std::shared_ptr<CrawlSession> session, int number);
    ~Share();
    Share(Share&& other) noexcept;
    Share& operator=(Share&& other) noexcept;
    // CRAWL_DIR and PERSONAS_DIR of its hooks.
    std::filesystem::path directory() const;
    std::filesystem::path library() const;
    std::filesystem::path personas() const;
    // Of its hooks; null: the machine's.
    std::shared_ptr<HookNetwork> network() const;
    // What crawl hooks have set for the hooks after them.
    const hooks::Options& options() const;

  private:
    std::shared_ptr<CrawlSession> session_;
    int number_{0};
  };

  // `changed`: called when a session has opened or gone, so that the worker claims again.
  CrawlSessions(JobContext& context, std::function<void()> changed);
  ~CrawlSessions();
  CrawlSessions(const CrawlSessions&) = delete;
  CrawlSessions& operator=(const CrawlSessions&) = delete;

  // Opens the crawl's session or joins it, and completes when it is ready. `broken`: called if a hook of it dies while
  // the share lives. Throws SessionsFull, SessionFailed, and Error(configuration) for options that do not fit.
  awaitable<Share> join(const store::Claim& claim, std::function<void(const std::string&)> broken);

  // Crawls whose hooks run here, or are about to: claims prefer them.
  std::vector<std::string> open() const;
  // No further crawl with hooks may be opened now.
  bool full() const;

  // The crawl needs no session any more: it ends with its last share here.
  void crawl_over(const std::string& crawl_id, const std::string& reason);
  // We are leaving: what is opening is given up, and hooks get no more than kill_grace to end from here on.
  void hurry(const std::string& reason);
  // The worker may not act any more: KILL, write nothing.
  void kill(const std::string& reason);
  // Ends every session; completes when nothing of them runs.
  awaitable<void> close(const std::string& reason);

private:
  friend class CrawlSession;
  void remove(const CrawlSession& session);
  std::size_t with_hooks() const;
  std::shared_ptr<CrawlSession> idle() const;

  JobContext& context_;
  std::function<void()> changed_;
  std::map<std::string, std::shared_ptr<CrawlSession>> sessions_; // by crawl id
  std::string hurry_, killed_;                                    // reasons; empty: not
};

} // namespace holdfast::worker
