#include "services/worker/turn/turns.hpp"

#include "lib/base/error.hpp"
#include "lib/base/test_point.hpp"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace holdfast::worker {

namespace {

constexpr std::size_t kMost = 100; // pages in one call, which must end well within the statement timeout

} // namespace

// On the frame of finish(), which waits until it is over.
struct Turns::HandedIn {
  HandedIn(const asio::any_io_executor& executor, store::Page the_page)
      : page(std::move(the_page)), wake(executor, asio::steady_timer::time_point::max()) {}

  void end(store::PageAnswer the_answer) {
    answer = the_answer;
    wake.cancel();
  }
  void end(std::exception_ptr why) {
    refusal = std::move(why);
    wake.cancel();
  }

  store::Page page;
  asio::steady_timer wake; // never expires; cancelled to wake
  std::optional<store::PageAnswer> answer;
  std::exception_ptr refusal;
};

Turns::Turns(RetryPolicy& retry, const std::string& worker, Call call, std::function<void()> submitted,
             std::function<void(const std::string&)> given_up)
    : retry_(retry), worker_(worker), call_(call), submitted_(std::move(submitted)), given_up_(std::move(given_up)) {}

awaitable<store::PageAnswer> Turns::finish(store::Page page) {
  if (!closed_.empty()) throw base::Error(base::ErrorClass::lease_lost, closed_);
  HandedIn self(co_await asio::this_coro::executor, std::move(page));
  waiting_.push_back(&self);
  submitted_();
  while (!self.answer && !self.refusal) {
    boost::system::error_code woken;
    co_await self.wake.async_wait(asio::redirect_error(asio::use_awaitable, woken));
  }
  if (self.refusal) std::rethrow_exception(self.refusal);
  co_return *self.answer;
}

std::vector<Turns::HandedIn*> Turns::take() {
  const auto end = waiting_.begin() + static_cast<std::ptrdiff_t>(std::min(waiting_.size(), kMost));
  std::vector<HandedIn*> taken(waiting_.begin(), end);
  waiting_.erase(waiting_.begin(), end);
  return taken;
}

awaitable<store::TurnAnswer> Turns::make(store::ClaimRequest claim) {
  struct Counted {
    std::uint64_t& ended;
    ~Counted() { ++ended; }
  } const counted{ended_};
  ++begun_;
  co_return co_await make_until_told(std::move(claim));
}

awaitable<store::TurnAnswer> Turns::make_until_told(store::ClaimRequest claim) {
  auto backoff = RetryPolicy::backoff();
  for (;;) {
    const auto taken = take();
    store::TurnRequest request;
    for (HandedIn* page : taken)
      request.pages.push_back(std::move(page->page));
    request.claim = claim;
    store::TurnAnswer answer;
    std::optional<base::Error> error;
    std::exception_ptr failure; // the same, whole
    try {
      const auto call = [&](pg::Connection& connection) { return call_(connection, worker_, request); };
      answer = co_await retry_.once(call);
    } catch (const base::Error& thrown) {
      error = thrown;
      failure = std::current_exception();
    } catch (const std::exception& thrown) {
      error = base::Error(base::ErrorClass::bug, thrown.what());
      failure = std::current_exception();
    }
    if (!error) {
      for (std::size_t i = 0; i < taken.size(); ++i)
        taken[i]->end(answer.pages.at(i));
      co_return answer;
    }
    if (taken.empty()) std::rethrow_exception(failure);

    for (std::size_t i = 0; i < taken.size(); ++i)
      taken[i]->page = std::move(request.pages[i]);
    spdlog::debug("a turn with {} pages failed: {}", taken.size(), error->what());
    if (error->error_class() != base::ErrorClass::temporary) {
      if (error->error_class() == base::ErrorClass::lease_lost) given_up_(error->what());
      for (HandedIn* page : taken)
        co_await finish_alone(*page);
      co_return store::TurnAnswer{}; // if the claim was at fault, the next turn says so
    }
    waiting_.insert(waiting_.begin(), taken.begin(), taken.end());
    try {
      retry_.require_trust(*error);
    } catch (const base::Error&) {
      refuse_waiting(std::current_exception());
      throw;
    }
    claim.room = 0; // the claim may have been granted: the heartbeats will tell
    co_await RetryPolicy::pause(backoff);
  }
}

awaitable<void> Turns::finish_alone(HandedIn& page) {
  store::TurnRequest request;
  request.pages.push_back(std::move(page.page));
  const auto call = [&](pg::Connection& connection) { return call_(connection, worker_, request); };
  try {
    page.end((co_await retry_.repeat(call)).pages.at(0));
  } catch (const std::exception&) {
    page.end(std::current_exception());
  }
}

void Turns::refuse_waiting(std::exception_ptr why) {
  for (HandedIn* page : std::exchange(waiting_, {}))
    page->end(why);
}

void Turns::close(const std::string& reason) {
  if (closed_.empty()) closed_ = reason;
  refuse_waiting(std::make_exception_ptr(base::Error(base::ErrorClass::lease_lost, closed_)));
}

store::TurnAnswer call_turn(pg::Connection& connection, const std::string& worker, const store::TurnRequest& request) {
  const auto& pages = request.pages;
  const bool seals = std::any_of(pages.begin(), pages.end(), [](const auto& page) { return page.ending == "sealed"; });
  base::test_point("before_turn");
  if (seals) base::test_point("before_seal");
  auto answer = store::worker_turn(connection, worker, request);
  if (!answer.claims.empty()) base::test_point("after_claim");
  if (seals) base::test_point("after_seal");
  base::test_point("after_turn");
  return answer;
}

} // namespace holdfast::worker
