// Turns: which pages go together, and what each hears. The first call is held until the others have been submitted.

#include "lib/base/error.hpp"
#include "services/worker/turn/turns.hpp"
#include "tests/support/test_database.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <doctest/doctest.h>

#include <future>
#include <map>
#include <mutex>

using namespace holdfast;
using namespace std::chrono_literals;

namespace {

// What the calls on the pool's threads see; one case at a time. A page's fence says how it is answered.
struct Calls {
  std::mutex mutex;
  std::vector<std::vector<std::int64_t>> pages;
  std::vector<int> rooms;
  std::promise<void> begun, let_go;
};
std::unique_ptr<Calls> calls;

// A call with page 1 is held. Page 13 is refused, page 7 in the company of others meets trouble that passes, and page 9
// is of a worker that has lapsed.
store::TurnAnswer call(pg::Connection&, const std::string&, const store::TurnRequest& request) {
  std::vector<std::int64_t> fences;
  for (const auto& page : request.pages)
    fences.push_back(page.lease.fence);
  std::size_t number = 0;
  {
    const std::lock_guard lock(calls->mutex);
    calls->pages.push_back(fences);
    calls->rooms.push_back(request.claim.room);
    number = calls->pages.size();
  }
  store::TurnAnswer answer;
  for (const auto fence : fences) {
    if (fence == 1) {
      calls->begun.set_value();
      calls->let_go.get_future().wait_for(60s);
    }
    if (fence == 13) throw base::Error(base::ErrorClass::refused, "thirteen");
    if (fence == 9) throw base::Error(base::ErrorClass::lease_lost, "nine");
    if (fence == 7 && number < 4) throw base::Error(base::ErrorClass::temporary, "seven");
    answer.pages.push_back({store::PageAnswer::What::sealed, fence * 10, false});
  }
  for (int i = 0; i < request.claim.room; ++i)
    answer.claims.emplace_back();
  return answer;
}

struct Told {
  std::map<std::int64_t, std::string> answers; // by page
  std::size_t claims{0};
  std::string given_up, error; // error: of the loop
};

// Pages that are submitted while the call with the first is under way. The loop makes turns until all have answers.
Told run(const std::vector<std::int64_t>& pages, std::chrono::milliseconds trusted_for = 1h) {
  calls = std::make_unique<Calls>();
  const test::TestDatabase database(false);
  asio::io_context context;
  pg::Pool pool(database.dsn(), {}, 2);
  base::TrustWindow trust(trusted_for, 0ms);
  trust.extend(base::TrustWindow::Clock::now());
  worker::RetryPolicy retry(pool, trust);
  const std::string worker = "worker";
  Told told;
  worker::Turns turns(
      retry, worker, &call, [] {}, [&](const std::string& why) { told.given_up = why; });
  const auto one = [&](std::int64_t fence) -> awaitable<void> {
    store::Page page;
    page.lease.fence = fence;
    try {
      const auto answer = co_await turns.finish(std::move(page));
      told.answers[fence] = std::string(to_string(answer.what)) + " " + std::to_string(answer.children);
    } catch (const base::Error& error) {
      told.answers[fence] = error.what();
    }
  };
  const auto loop = [&]() -> awaitable<void> {
    while (turns.waiting() > 0) {
      store::ClaimRequest claim;
      claim.room = 2;
      told.claims += (co_await turns.make(claim)).claims.size();
    }
  };
  const auto ignore = [](std::exception_ptr) {};
  asio::co_spawn(context, one(pages[0]), ignore);
  asio::co_spawn(context, loop(), [&](std::exception_ptr failure) {
    try {
      if (failure) std::rethrow_exception(failure);
    } catch (const std::exception& error) {
      told.error = error.what();
    }
    turns.close("closed");
  });
  context.poll(); // as far as its call
  if (pages[0] == 1) calls->begun.get_future().wait();
  for (std::size_t i = 1; i < pages.size(); ++i)
    asio::co_spawn(context, one(pages[i]), ignore);
  context.poll(); // as far as they wait
  calls->let_go.set_value();
  context.run();
  return told;
}

using Answers = std::map<std::int64_t, std::string>;
using Pages = std::vector<std::vector<std::int64_t>>;

} // namespace

TEST_CASE("a page goes at once; those submitted meanwhile go together, each with its own answer") {
  const auto told = run({1, 2, 3, 4});
  CHECK(told.answers == Answers{{1, "sealed 10"}, {2, "sealed 20"}, {3, "sealed 30"}, {4, "sealed 40"}});
  CHECK(calls->pages == Pages{{1}, {2, 3, 4}});
  CHECK(told.claims == 4);
}

TEST_CASE("a page that is refused fails alone") {
  const auto told = run({1, 2, 13, 4});
  CHECK(told.answers == Answers{{1, "sealed 10"}, {2, "sealed 20"}, {4, "sealed 40"}, {13, "thirteen"}});
  CHECK(calls->pages == Pages{{1}, {2, 13, 4}, {2}, {13}, {4}});
  CHECK(calls->rooms == std::vector<int>{2, 2, 0, 0, 0});
  CHECK(told.error == "");
}

TEST_CASE("trouble that passes is waited out, and a claim in doubt is not repeated") {
  const auto told = run({1, 2, 7});
  CHECK(told.answers == Answers{{1, "sealed 10"}, {2, "sealed 20"}, {7, "sealed 70"}});
  CHECK(calls->pages == Pages{{1}, {2, 7}, {2, 7}, {2, 7}});
  CHECK(calls->rooms == std::vector<int>{2, 2, 0, 0});
}

TEST_CASE("trouble that outlasts trust ends the wait") {
  const auto told = run({7}, 20ms);
  CHECK(told.answers.at(7) == "gave up on the database: seven");
  CHECK(told.error == "gave up on the database: seven");
}

TEST_CASE("a worker that has lapsed hears it first, and each page still hears what became of it") {
  const auto told = run({1, 9, 4});
  CHECK(told.given_up == "nine");
  CHECK(told.answers == Answers{{1, "sealed 10"}, {4, "sealed 40"}, {9, "nine"}});
}

TEST_CASE("more than go into one call go in several") {
  std::vector<std::int64_t> pages;
  for (int i = 1; i <= 260; ++i)
    if (i != 7 && i != 9 && i != 13) pages.push_back(i);
  const auto told = run(pages);
  CHECK(told.answers.size() == pages.size());
  for (const auto& [page, answer] : told.answers)
    CHECK(answer == "sealed " + std::to_string(page * 10));
  REQUIRE(calls->pages.size() == 4);
  for (const auto& made : calls->pages)
    CHECK(made.size() <= 100);
}

TEST_CASE("after the end nothing waits") {
  const test::TestDatabase database(false);
  asio::io_context context;
  pg::Pool pool(database.dsn(), {}, 1);
  base::TrustWindow trust(1h, 0ms);
  worker::RetryPolicy retry(pool, trust);
  const std::string worker = "worker";
  worker::Turns turns(
      retry, worker, &call, [] {}, [](const std::string&) {});
  std::vector<std::string> told;
  const auto one = [&]() -> awaitable<void> {
    store::Page page;
    try {
      co_await turns.finish(std::move(page));
    } catch (const base::Error& error) {
      told.emplace_back(error.what());
    }
  };
  asio::co_spawn(context, one(), [](std::exception_ptr) {});
  context.poll();
  turns.close("the worker leaves");
  asio::co_spawn(context, one(), [](std::exception_ptr) {});
  context.run();
  CHECK(told == std::vector<std::string>{"the worker leaves", "the worker leaves"});
}
