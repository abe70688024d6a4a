#include "services/worker/page/submission.hpp"

#include "lib/base/backoff.hpp"
#include "lib/base/text/time.hpp"
#include "lib/pg/sqlstate.hpp"
#include "services/worker/turn/claim_conditions.hpp"
#include "services/worker/turn/turns.hpp"

#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>

#include <utility>

namespace holdfast::worker {

namespace {

using What = store::PageAnswer::What;

std::string summary_of(const store::Page& page) {
  return fmt::format("{}{}, {} files, {}", page.outcome, page.outcome == "failed" ? " (" + page.reason + ")" : "",
                     page.files, base::format_size(page.bytes));
}

void log_answer(const store::Claim& claim, What what, const std::optional<Failure>& failure,
                const std::string& summary) {
  const auto about = log_about(claim.lease);
  if (what == What::lost || what == What::cancelled) return;
  if (!failure)
    spdlog::info("sealed {} ({})", claim.url, summary);
  else if (what == What::released && failure->kind == Failure::Kind::later)
    spdlog::info("{} waits: {}", claim.url, failure->reason);
  else if (failure->kind == Failure::Kind::error)
    spdlog::warn("{} is {}: {}", claim.url, what == What::released ? "released" : "sealed as failed", failure->reason);
}

} // namespace

awaitable<Submission::Ending> Submission::submit(PageWork& work, std::vector<store::HookResult> rows,
                                                 const std::optional<Failure>& failure, std::string& lost) {
  if (work.redactor) // of files that were not published
    for (auto& row : rows)
      for (auto& file : row.files)
        work.redactor->apply(file.path);
  if (failure && failure->kind == Failure::Kind::error) // also one of its session
    work.services.claim_conditions.suspect_work_dir();
  auto page = failure ? page_after(work.claim.lease, *failure) : std::move(work.page);
  page.facts = work.view.facts;
  page.results = std::move(rows);
  auto error = co_await try_to_submit(work, std::move(page), failure, lost);
  if (error && error->error_class() != base::ErrorClass::lease_lost) {
    spdlog::error("the database rejects {}: {}", work.claim.url, error->what());
    // The database refuses a seal if a capture that this one refers to is gone or replaced. The next attempt begins
    // with what is there then.
    const bool stale = error->error_class() == base::ErrorClass::refused;
    const Failure rejected{Failure::Kind::error, error->what(),
                           stale ? base::ErrorClass::temporary : error->error_class()};
    auto without_results = page_after(work.claim.lease, rejected);
    error = co_await try_to_submit(work, std::move(without_results), rejected, lost);
  }
  if (error && lost.empty()) lost = error->what();
  co_return ending_;
}

// Returns why there is no answer; nullopt: there is, and it is taken.
awaitable<std::optional<base::Error>> Submission::try_to_submit(PageWork& work, store::Page page,
                                                                std::optional<Failure> why, std::string& lost) {
  if (why && why->kind == Failure::Kind::error && page.delay) page.delay = base::jittered(*page.delay);
  const auto summary = summary_of(page);
  submitted_ = true;
  in_doubt_ = !page.directory.empty();
  try {
    const auto answer = co_await work.services.turns.finish(std::move(page));
    in_doubt_ = false;
    if (answer.what == What::sealed && !why) work.published = {}; // it is the archive's now
    log_answer(work.claim, answer.what, why, summary);
    ending_ = take_answer(answer, lost);
  } catch (const pg::DatabaseError& refusal) {
    in_doubt_ = false; // that is an answer too: nothing was written
    co_return refusal;
  } catch (const base::Error& unanswered) {
    co_return unanswered;
  }
  co_return std::nullopt;
}

Submission::Ending Submission::take_answer(const store::PageAnswer& answer, std::string& lost) {
  sealed_crawl_ = answer.crawl_sealed;
  switch (answer.what) {
  case What::sealed:
  case What::failed:
    return Ending::sealed;
  case What::released:
    return Ending::released;
  case What::cancelled:
    if (lost.empty()) lost = "its crawl has been stopped, and keeps nothing more";
    return Ending::cancelled;
  case What::lost:
    break;
  }
  if (lost.empty()) lost = "it is no longer held with this fence";
  return Ending::lost;
}

} // namespace holdfast::worker
