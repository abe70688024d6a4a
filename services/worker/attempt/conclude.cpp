#include "lib/base/error.hpp"
#include "lib/base/text/time.hpp"
#include "services/worker/attempt/steps.hpp"
#include "services/worker/turn/claim_conditions.hpp"

#include <filesystem>

namespace holdfast::worker {

namespace {

// A failure for lack of space on this worker's disk, of its network, or because the machine ended a hook, is not the
// page's: another try may succeed.
void require_no_fault_of_worker(const PageWork& work) {
  // A hook may kill its own shim, so this attempt counts.
  if (work.verdict.outcome == "failed" && !work.machine_trouble.empty())
    throw base::Error(base::ErrorClass::temporary, work.machine_trouble);
  const auto& options = work.services.options;
  std::error_code error;
  const auto space = std::filesystem::space(options.work_dir, error);
  if (!error && space.available < options.minimum_free_bytes / 8)
    throw base::Error(base::ErrorClass::cannot_create,
                      "hooks failed with " + base::format_size(space.available) + " free in work_dir");
  if (const auto trouble = work.route ? work.route->traffic().trouble : std::string(); !trouble.empty()) {
    work.services.claim_conditions.rest(trouble);
    throw base::Error(base::ErrorClass::unavailable, trouble);
  }
}

} // namespace

void conclude(PageWork& work) {
  const auto& [outcome, reason, response] = work.verdict;
  work.view.outcome = work.page.outcome = outcome;
  work.view.ended_at = base::utc_timestamp();
  if (response) {
    work.view.facts["http_status"] = std::to_string(response->status);
    if (!response->mime.empty()) work.view.facts["mime"] = base::fact_value(response->mime);
  }
  if (outcome != "succeeded") require_no_fault_of_worker(work);
  if (outcome == "failed")
    work.page.reason = reason;
  else if (!reason.empty())
    work.add_reason(reason);
}

} // namespace holdfast::worker
