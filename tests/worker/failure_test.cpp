// What becomes of a page whose job has failed, as a table.

#include "services/worker/turn/failure.hpp"

#include <doctest/doctest.h>

using namespace holdfast;
using namespace std::chrono_literals;
using worker::Failure;

namespace {

std::string after(const Failure& failure) {
  const auto page = worker::page_after({"snapshot", "crawl", 3}, failure);
  CHECK(page.lease == store::Lease{"snapshot", "crawl", 3});
  CHECK(page.reason == failure.reason);
  CHECK(page.directory == "");
  return page.ending + (page.outcome.empty() ? "" : " " + page.outcome) +
         (page.delay ? " after " + std::to_string(page.delay->count()) + " ms" : "") + (page.spend ? ", spent" : "");
}

std::string after(base::ErrorClass error_class) { return after({Failure::Kind::error, "why", error_class}); }

} // namespace

TEST_CASE("what becomes of a page whose job has failed") {
  CHECK(after({Failure::Kind::interrupted, "why"}) == "interrupted after 0 ms");
  CHECK(after({Failure::Kind::refused, "why"}) == "sealed refused");
  CHECK(after({Failure::Kind::no_session, "why"}) == "declined after 2000 ms");
  CHECK(after({Failure::Kind::no_plugin, "why"}) == "declined after 60000 ms");
  Failure later{Failure::Kind::later, "why"};
  later.delay = 7s;
  CHECK(after(later) == "released after 7000 ms");
  later.spend = true;
  CHECK(after(later) == "released after 7000 ms, spent");

  for (const auto hopeless : {base::ErrorClass::usage, base::ErrorClass::configuration, base::ErrorClass::refused})
    CHECK(after(hopeless) == "sealed failed");
  for (const auto of_the_worker :
       {base::ErrorClass::cannot_create, base::ErrorClass::unavailable, base::ErrorClass::system})
    CHECK(after(of_the_worker) == "worker_error after 60000 ms");
  // The database decides when it is tried again, and whether.
  for (const auto of_the_page : {base::ErrorClass::bug, base::ErrorClass::temporary, base::ErrorClass::input_output})
    CHECK(after(of_the_page) == "released, spent");
}
