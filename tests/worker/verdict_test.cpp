// The outcome of a page by how its hooks ended, as a table.

#include "services/worker/attempt/verdict.hpp"

#include <doctest/doctest.h>

using namespace holdfast;
using hooks::Status;
using worker::HookEnd;

namespace {

HookEnd page(Status status, int http = 0) {
  HookEnd end{status, true, {}};
  if (http > 0) end.response = hooks::ResponseRecord{http, "text/html"};
  return end;
}

HookEnd about(Status status, int http = 0) {
  auto end = page(status, http);
  end.captures_page = false;
  return end;
}

std::string judged(const std::vector<HookEnd>& hooks, const std::string& unreachable = "") {
  const auto verdict = worker::judge_hooks(hooks, unreachable);
  return verdict.outcome + (verdict.response ? " " + std::to_string(verdict.response->status) : "") +
         (verdict.reason.empty() ? "" : ": " + verdict.reason);
}

constexpr auto kGood = Status::succeeded;
constexpr auto kBad = Status::failed;
constexpr auto kSkipped = Status::skipped;
constexpr auto kNothing = Status::noresults;

} // namespace

TEST_CASE("the outcome of a page by how its hooks ended") {
  CHECK(judged({}) == "failed: no hook succeeded");
  CHECK(judged({page(kGood)}) == "succeeded");
  CHECK(judged({page(kGood, 200), about(kGood, 200)}) == "succeeded 200");
  CHECK(judged({page(kGood), page(kNothing), page(kSkipped)}) == "succeeded");
  CHECK(judged({page(kGood), page(kBad)}) == "partial");
  CHECK(judged({page(kGood), about(kBad)}) == "partial");
  CHECK(judged({page(kBad)}) == "failed: no hook succeeded");
  CHECK(judged({page(kNothing), page(kSkipped)}) == "failed: no hook succeeded");

  SUBCASE("what works on the output of others does not archive a page") {
    CHECK(judged({page(kBad), about(kGood)}) == "failed: no plugin captured the page");
    CHECK(judged({page(kSkipped), about(kGood)}) == "failed: no plugin captured the page");
    auto at_login = page(kBad);
    at_login.error = "the site asks to sign in";
    CHECK(judged({at_login, about(kGood)}) == "failed: no plugin captured the page: the site asks to sign in");
    CHECK(judged({page(kNothing), about(kGood)}) == "failed: no plugin captured the page");
    // Unless nothing else was asked for.
    CHECK(judged({about(kGood, 200), about(kNothing)}) == "succeeded 200");
    CHECK(judged({about(kGood), about(kBad)}) == "partial");
    CHECK(judged({about(kBad)}) == "failed: no hook succeeded");
  }
  SUBCASE("a page that cannot be had") {
    CHECK(judged({about(kBad), page(kSkipped)}, "connection refused") == "failed: connection refused");
    CHECK(judged({about(kBad), about(kGood)}, "connection refused") == "failed: connection refused");
    CHECK(judged({page(kGood), page(kBad)}, "connection reset") == "partial"); // another hook had it
  }
  SUBCASE("a page whose time is over") {
    const auto overdue = [](const std::vector<HookEnd>& hooks) {
      const auto verdict = worker::judge_hooks(hooks, "", true);
      return verdict.outcome + ": " + verdict.reason;
    };
    CHECK(overdue({page(kGood)}) == "partial: its time was over (worker.snapshot_timeout)");
    CHECK(overdue({page(kGood), page(kBad)}) == "partial: its time was over (worker.snapshot_timeout)");
    CHECK(overdue({page(kBad)}) == "failed: no hook succeeded");
  }
  SUBCASE("an answer that is an error") {
    CHECK(judged({about(kGood, 404), page(kBad, 404)}) == "failed 404: HTTP 404");
    CHECK(judged({page(kGood, 404)}) == "failed 404: HTTP 404");
    CHECK(judged({page(kGood), about(kGood, 500)}) == "failed 500: HTTP 500"); // nothing contradicts it
    CHECK(judged({page(kGood, 399)}) == "succeeded 399");
    // Refused to one client, served to another: what was captured counts.
    CHECK(judged({about(kGood, 403), page(kBad, 403), page(kGood, 200)}) == "partial 200");
    CHECK(judged({page(kGood, 200), page(kBad, 503)}) == "partial 200");
    CHECK(judged({about(kGood, 200), page(kBad, 404)}) == "failed 404: HTTP 404"); // HEAD and GET differ
  }
}

TEST_CASE("why no further hook of a page is started") {
  CHECK(worker::reason_to_skip({}, "", false).empty());
  CHECK(worker::reason_to_skip({page(kBad)}, "", false).empty());
  CHECK(worker::reason_to_skip({page(kBad)}, "connection refused", false) ==
        "the page cannot be fetched: connection refused");
  CHECK(worker::reason_to_skip({page(kGood)}, "connection refused", false).empty()); // another hook had it
  CHECK(worker::reason_to_skip({about(kGood)}, "connection refused", false) ==
        "the page cannot be fetched: connection refused");
  CHECK(worker::reason_to_skip({page(kGood)}, "", true) == "the time of the page was over");
}
