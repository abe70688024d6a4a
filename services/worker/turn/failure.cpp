#include "services/worker/turn/failure.hpp"

namespace holdfast::worker {

namespace {

constexpr std::chrono::milliseconds kNoSession{2000};    // for a worker with room for the crawl to take it
constexpr std::chrono::milliseconds kWorkerError{60000}; // a full disk, an unreachable archive

void seal(store::Page& page, const char* outcome) {
  page.ending = "sealed";
  page.outcome = outcome;
}

void release(store::Page& page, const char* ending, std::chrono::milliseconds delay, bool spend = false) {
  page.ending = ending;
  page.delay = delay;
  page.spend = spend;
}

void settle_error(store::Page& page, base::ErrorClass error_class) {
  switch (error_class) {
  case base::ErrorClass::usage:
  case base::ErrorClass::configuration:
  case base::ErrorClass::refused: // another try would end the same way
    return seal(page, "failed");
  case base::ErrorClass::cannot_create:
  case base::ErrorClass::unavailable:
  case base::ErrorClass::system: // an error of this worker, not of the page
    return release(page, "worker_error", kWorkerError);
  default:
    page.ending = "released";
    page.spend = true;
  }
}

} // namespace

store::Page page_after(const store::Lease& lease, const Failure& failure) {
  store::Page page;
  page.lease = lease;
  page.reason = failure.reason;
  switch (failure.kind) {
  case Failure::Kind::lost:
    throw base::Error(base::ErrorClass::bug, "a lost page is not submitted");
  case Failure::Kind::interrupted:
    release(page, "interrupted", std::chrono::milliseconds(0));
    break;
  case Failure::Kind::refused:
    seal(page, "refused");
    break;
  case Failure::Kind::later:
    release(page, "released", failure.delay, failure.spend);
    break;
  case Failure::Kind::no_session:
    release(page, "declined", kNoSession);
    break;
  case Failure::Kind::no_plugin:
    release(page, "declined", kWorkerError);
    break;
  case Failure::Kind::error:
    settle_error(page, failure.error_class);
  }
  return page;
}

} // namespace holdfast::worker
