#pragma once
// Writes of one kind that go together (a group commit): those of a crawl's snapshots that arrive while one is under way
// wait for its end and then make one call, in one commit, so that the crawl's row is locked once for all of them. One
// that finds none under way goes at once, by itself. Each waiter has its own answer; what fails together is done again
// by each alone, so that nobody fails, or waits, for the sake of another. Main thread only; owned by Node, outlives its
// jobs.

#include "services/worker/database.hpp"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <exception>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::worker {

template <class Request, class Answer>
class WriteGroup {
public:
  // May be called again with the same requests; blocking, on a thread of the pool. Answers in the order of the
  // requests.
  using Write = std::vector<Answer> (*)(pg::Connection&, const std::string& node, const std::vector<Request>&);

  WriteGroup(Database& database, const std::string& node, Write function)
      : database_(database), node_(node), write_(function) {}
  WriteGroup(const WriteGroup&) = delete;
  WriteGroup& operator=(const WriteGroup&) = delete;

  // What `request` refers to must live until this has ended.
  awaitable<Answer> write(const std::string& crawl, Request request) {
    Waiter self(co_await asio::this_coro::executor, request);
    Line& line = lines_[crawl]; // there for as long as somebody waits in it
    line.waiting.push_back(&self);
    while (self.state != Waiter::State::over) {
      if (self.state == Waiter::State::waiting && !line.busy) {
        co_await lead(crawl, line);
        continue;
      }
      boost::system::error_code woken;
      co_await self.wake.async_wait(asio::redirect_error(asio::use_awaitable, woken));
    }
    if (self.refusal) std::rethrow_exception(self.refusal);
    if (!self.answer) self.answer = co_await alone(request);
    co_return std::move(*self.answer);
  }

private:
  static constexpr std::size_t kMost = 100; // in one call: what it takes must end well within the statement's time

  struct Waiter {
    enum class State { waiting, under_way, over };
    Waiter(const asio::any_io_executor& executor, const Request& what)
        : request(what), wake(executor, asio::steady_timer::time_point::max()) {}
    const Request& request;
    asio::steady_timer wake; // never rings; cancelled to wake
    State state{State::waiting};
    std::optional<Answer> answer;
    std::exception_ptr refusal; // neither of the two when over: to be done alone
  };
  struct Line {
    std::vector<Waiter*> waiting;
    bool busy{false};
  };

  // Makes the call for all that wait in this line, the caller among them, and lets the next one lead.
  awaitable<void> lead(const std::string& crawl, Line& line) {
    const auto count = static_cast<std::ptrdiff_t>(std::min(line.waiting.size(), kMost));
    const std::vector<Waiter*> group(line.waiting.begin(), line.waiting.begin() + count);
    line.waiting.erase(line.waiting.begin(), line.waiting.begin() + count);
    line.busy = true;
    std::vector<Request> requests;
    for (Waiter* waiter : group) {
      waiter->state = Waiter::State::under_way;
      requests.push_back(waiter->request);
    }
    std::vector<Answer> answers;
    std::exception_ptr refusal; // of the only one, for good
    try {
      const auto call = [&](pg::Connection& connection) { return write_(connection, node_, requests); };
      answers = co_await database_.once(call);
    } catch (const base::Error& error) {
      if (group.size() == 1 && error.error_class() != base::ErrorClass::temporary) refusal = std::current_exception();
      spdlog::debug("{} writes for crawl {} failed: {}", group.size(), crawl, error.what());
    }
    const bool answered = answers.size() == group.size();
    for (std::size_t i = 0; i < group.size(); ++i) {
      group[i]->state = Waiter::State::over;
      if (answered) group[i]->answer = std::move(answers[i]);
      group[i]->refusal = refusal;
      group[i]->wake.cancel();
    }
    line.busy = false;
    if (line.waiting.empty())
      lines_.erase(crawl);
    else
      line.waiting.front()->wake.cancel();
  }

  awaitable<Answer> alone(const Request& request) {
    const std::vector<Request> one{request};
    const auto call = [&](pg::Connection& connection) { return write_(connection, node_, one); };
    auto answers = co_await database_.repeat(call);
    co_return std::move(answers.at(0));
  }

  Database& database_;
  const std::string& node_;
  const Write write_;
  std::map<std::string, Line> lines_; // by crawl; those in which somebody waits, or whose call is under way
};

} // namespace holdfast::worker
