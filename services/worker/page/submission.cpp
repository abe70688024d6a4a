#include "services/worker/page/submission.hpp"

#include "lib/base/backoff.hpp"
#include "lib/base/text/time.hpp"
#include "lib/pg/sqlstate.hpp"
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
  auto why = failure;
  for (bool again = false;; again = true) {
    store::Page page = why ? page_after(work.claim.lease, *why) : std::move(work.page);
    if (why && why->kind == Failure::Kind::error && page.delay) page.delay = base::jittered(*page.delay);
    if (!again) {
      page.facts = work.view.facts;
      page.results = std::move(rows);
    }
    const auto summary = summary_of(page);
    submitted_ = true;
    in_doubt_ = !page.directory.empty();
    std::optional<store::PageAnswer> answer;
    std::optional<base::Error> error;
    try {
      answer = co_await work.services.turns.finish(std::move(page));
    } catch (const pg::DatabaseError& refusal) {
      in_doubt_ = false; // that is an answer too: nothing was written
      error = refusal;
    } catch (const base::Error& unanswered) {
      error = unanswered;
    }
    if (answer) {
      in_doubt_ = false;
      if (answer->what == What::sealed && !why) work.published = {}; // it is the archive's now
      log_answer(work.claim, answer->what, why, summary);
      co_return take_answer(*answer, lost);
    }
    if (again || error->error_class() == base::ErrorClass::lease_lost) {
      if (lost.empty()) lost = error->what();
      co_return Ending::lost;
    }
    spdlog::error("the database rejects {}: {}", work.claim.url, error->what());
    // The database refuses a seal if a capture that this one refers to is gone or replaced. The next attempt begins
    // with what is there then.
    const bool stale = error->error_class() == base::ErrorClass::refused;
    why = Failure{Failure::Kind::error, error->what(), stale ? base::ErrorClass::temporary : error->error_class()};
  }
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
