// Writes that go together: who waits for whom, and who hears what. The first call is held until the others wait.
#include "services/worker/write_group.hpp"
#include "tests/support/test_database.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <doctest/doctest.h>

#include <future>
#include <mutex>

using namespace holdfast;
using namespace std::chrono_literals;

namespace {

using Group = worker::WriteGroup<int, int>;

// What the calls on the pool's threads see; one case at a time.
struct Calls {
  std::mutex mutex;
  std::vector<std::vector<int>> made;
  std::promise<void> begun, let_go;
};
std::unique_ptr<Calls> calls;

// A call with 1 is held; one that has 13 in it fails for good, and with 7 in it and others for now.
std::vector<int> write(pg::Connection&, const std::string&, const std::vector<int>& requests) {
  {
    const std::lock_guard lock(calls->mutex);
    calls->made.push_back(requests);
  }
  std::vector<int> answers;
  for (const int request : requests) {
    if (request == 1) {
      calls->begun.set_value();
      calls->let_go.get_future().wait_for(60s);
    }
    if (request == 13) throw base::Error(base::ErrorClass::refused, "thirteen");
    if (request == 7 && requests.size() > 1) throw base::Error(base::ErrorClass::temporary, "seven");
    answers.push_back(request * 10);
  }
  return answers;
}

// Answers by request, -1 for a failure. The first request is under way when the others arrive.
std::map<int, int> run(const std::vector<std::pair<std::string, int>>& requests) {
  calls = std::make_unique<Calls>();
  const test::TestDatabase database(false);
  asio::io_context context;
  pg::Pool pool(database.dsn(), {}, 3);
  base::TrustWindow trust(1h, 0ms);
  trust.extend(base::TrustWindow::Clock::now());
  worker::Database calls_of_node(pool, trust);
  const std::string node = "node";
  Group group(calls_of_node, node, &write);
  std::map<int, int> answers;
  const auto one = [&](std::string crawl, int request) -> awaitable<void> {
    answers[request] = -1;
    answers[request] = co_await group.write(crawl, request);
  };
  const auto ignore = [](std::exception_ptr) {};
  asio::co_spawn(context, one(requests[0].first, requests[0].second), ignore);
  context.poll(); // as far as its call
  calls->begun.get_future().wait();
  for (std::size_t i = 1; i < requests.size(); ++i)
    asio::co_spawn(context, one(requests[i].first, requests[i].second), ignore);
  context.poll(); // as far as they wait
  calls->let_go.set_value();
  context.run();
  return answers;
}

} // namespace

TEST_CASE("a write goes at once; those of its crawl that arrive meanwhile go together, each with its own answer") {
  CHECK(run({{"a", 1}, {"a", 2}, {"a", 3}, {"a", 4}}) == std::map<int, int>{{1, 10}, {2, 20}, {3, 30}, {4, 40}});
  CHECK(calls->made == std::vector<std::vector<int>>{{1}, {2, 3, 4}});
}

TEST_CASE("writes of another crawl wait for nobody") {
  CHECK(run({{"a", 1}, {"b", 2}}) == std::map<int, int>{{1, 10}, {2, 20}});
  CHECK(calls->made.size() == 2);
}

TEST_CASE("one that fails does not fail those it went with, and neither does trouble that passes") {
  CHECK(run({{"a", 1}, {"a", 2}, {"a", 13}, {"a", 4}}) == std::map<int, int>{{1, 10}, {2, 20}, {13, -1}, {4, 40}});
  CHECK(run({{"a", 1}, {"a", 7}, {"a", 4}}) == std::map<int, int>{{1, 10}, {7, 70}, {4, 40}});
  CHECK(run({{"a", 1}, {"a", 13}}) == std::map<int, int>{{1, 10}, {13, -1}});
}

TEST_CASE("more than go into one call go in several") {
  std::vector<std::pair<std::string, int>> requests;
  for (int i = 1; i <= 260; ++i)
    if (i != 7 && i != 13) requests.emplace_back("a", i);
  const auto answers = run(requests);
  CHECK(answers.size() == requests.size());
  for (const auto& [request, answer] : answers)
    CHECK(answer == request * 10);
  for (const auto& made : calls->made)
    CHECK(made.size() <= 100);
  CHECK(calls->made.size() == 4);
}
