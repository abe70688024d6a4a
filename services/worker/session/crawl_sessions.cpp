#include "services/worker/session/crawl_sessions.hpp"

#include <algorithm>

namespace holdfast::worker {

CrawlSessions::CrawlSessions(SessionServices& context, std::function<void()> changed)
    : context_(context), changed_(std::move(changed)) {}
CrawlSessions::~CrawlSessions() = default;

awaitable<CrawlSessions::Share> CrawlSessions::join(const store::Claim& claim,
                                                    std::function<void(const std::string&)> broken) {
  for (;;) {
    if (shutdown_ != ShutdownMode::smart) throw SessionFailed(shutdown_reason_);
    if (!sessions_.contains(claim.lease.crawl_id)) {
      auto persona = co_await SessionPersona::open(context_, claim.persona);
      if (shutdown_ != ShutdownMode::smart || sessions_.contains(claim.lease.crawl_id)) continue; // meanwhile
      const auto opening = std::make_shared<CrawlSession>(
          context_, claim, std::move(persona), CrawlSession::Callbacks{changed_, [this](const CrawlSession& session) {
                                                                         sessions_.erase(session.crawl_id());
                                                                       }});
      if (opening->has_hooks() && with_hooks() >= context_.options.session_max) {
        const auto other = idle();
        if (!other) throw SessionsFull{};
        other->drain("another crawl needs its place");
        co_await other->ended();
        continue;
      }
      sessions_[claim.lease.crawl_id] = opening;
      opening->start();
    }
    const auto session = sessions_.at(claim.lease.crawl_id);
    if (session->ending()) {
      co_await session->ended();
      continue;
    }
    Share share(session.get(), [session, user = session->enter(broken)](CrawlSession*) { session->leave(user); });
    co_await session->opened();
    co_return share;
  }
}

std::size_t CrawlSessions::with_hooks() const {
  return static_cast<std::size_t>(
      std::count_if(sessions_.begin(), sessions_.end(), [](const auto& entry) { return entry.second->has_hooks(); }));
}

std::shared_ptr<CrawlSession> CrawlSessions::idle() const {
  for (const auto& [crawl, session] : sessions_)
    if (session->has_hooks() && session->idle()) return session;
  return nullptr;
}

std::vector<std::string> CrawlSessions::open() const {
  std::vector<std::string> crawls;
  for (const auto& [crawl, session] : sessions_)
    if (session->has_hooks() && !session->ending()) crawls.push_back(crawl);
  return crawls;
}

bool CrawlSessions::full() const { return with_hooks() >= context_.options.session_max && !idle(); }

void CrawlSessions::crawl_over(const std::string& crawl_id, const std::string& reason) {
  const auto found = sessions_.find(crawl_id);
  if (found == sessions_.end()) return;
  const auto session = found->second;
  session->finish_soon(reason);
}

void CrawlSessions::shut_down(ShutdownMode mode, const std::string& reason) {
  if (mode > shutdown_) shutdown_reason_ = reason;
  shutdown_ = std::max(shutdown_, mode);
  const auto sessions = sessions_;
  for (const auto& [crawl, session] : sessions)
    session->shut_down(mode, reason);
}

awaitable<void> CrawlSessions::close(const std::string& reason) {
  while (!sessions_.empty()) {
    const auto session = sessions_.begin()->second;
    const auto sessions = sessions_;
    for (const auto& [crawl, other] : sessions)
      other->drain(reason);
    co_await session->ended();
  }
}

} // namespace holdfast::worker
