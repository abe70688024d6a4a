#pragma once
// The crawl sessions of one worker, by crawl: opens, shares and ends them. Main thread only; owned by Worker. Its
// coroutines end when close() has completed: destroy it only then.

#include "lib/base/async.hpp"
#include "lib/store/snapshot.hpp"
#include "services/worker/session/crawl_session.hpp"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::worker {

// Thrown by join(): this worker has as many crawls open as it may. The snapshot is released for another worker.
struct SessionsFull {};

class CrawlSessions {
public:
  // A snapshot's share in a session, which stays open while there is one. Destroyed before the sessions.
  using Share = std::shared_ptr<CrawlSession>;

  // `changed`: called when a session has opened or ended, so that the worker claims again.
  CrawlSessions(SessionServices& context, std::function<void()> changed);
  ~CrawlSessions();
  CrawlSessions(const CrawlSessions&) = delete;
  CrawlSessions& operator=(const CrawlSessions&) = delete;

  // Opens the crawl's session or joins it, and completes when it is ready. `broken`: called if a hook of it dies while
  // the share lives. Throws SessionsFull, SessionFailed, Failure if
  // its persona cannot be used here, and Error(configuration) for options that do not fit.
  awaitable<Share> join(const store::Claim& claim, std::function<void(const std::string&)> broken);

  // Crawls whose hooks run here, or are about to: claims prefer them.
  std::vector<std::string> open() const;
  // No further crawl with hooks may be opened now.
  bool full() const;

  // The crawl needs no session any more: it ends with its last share here.
  void crawl_over(const std::string& crawl_id, const std::string& reason);
  // Ends all sessions because the worker leaves, or may not act any more (immediate). Nothing opens afterwards.
  void shut_down(ShutdownMode mode, const std::string& reason);
  // Ends every session; completes when nothing of them runs.
  awaitable<void> close(const std::string& reason);

private:
  std::size_t with_hooks() const;
  std::shared_ptr<CrawlSession> idle() const;

  SessionServices& context_;
  std::function<void()> changed_;
  std::map<std::string, std::shared_ptr<CrawlSession>> sessions_; // by crawl id
  ShutdownMode shutdown_{ShutdownMode::smart};
  std::string shutdown_reason_;
};

} // namespace holdfast::worker
