#include "services/worker/attempt/steps.hpp"

#include "lib/archive/page_text.hpp"
#include "lib/archive/redact_attempt.hpp"
#include "lib/archive/verify.hpp"
#include "lib/base/coroutine.hpp"
#include "lib/base/error.hpp"
#include "lib/base/metrics.hpp"
#include "lib/base/test_point.hpp"
#include "lib/base/text/time.hpp"
#include "lib/base/text/url.hpp"
#include "lib/store/capture.hpp"
#include "lib/store/text.hpp"
#include "services/worker/hook/hook_sandbox.hpp"
#include "services/worker/machine/scratch.hpp"
#include "services/worker/turn/claim_conditions.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <filesystem>

namespace holdfast::worker {

namespace {

// Returns <yyyy>/<mm>/<host>/<id>.
std::filesystem::path directory_of(const store::Claim& claim) {
  return archive::snapshot_directory(claim.created_at, base::host_directory(base::parse_url(claim.url)),
                                     claim.lease.snapshot_id);
}

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
  probe_work_dir(options.work_dir);
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

void count_traffic(PageWork& work) {
  if (!work.route) return;
  const auto& traffic = work.traffic.emplace(work.route->traffic());
  work.route.reset(); // no hook runs any more, and the next page needs the way out
  auto& facts = work.view.facts;
  facts["requests"] = std::to_string(traffic.requests);
  facts["requests_refused"] = std::to_string(traffic.refused);
  facts["received_bytes"] = std::to_string(traffic.bytes);
  if (traffic.over_limit)
    work.add_reason("its hooks were cut off after " + base::format_size(work.claim.max_snapshot_bytes) +
                    " from the network (max_snapshot_bytes)");
  base::count("holdfast_worker_egress_requests_total", {}, static_cast<double>(traffic.requests));
  base::count("holdfast_worker_egress_refused_total", {}, static_cast<double>(traffic.refused));
  base::count("holdfast_worker_egress_received_bytes_total", {}, static_cast<double>(traffic.bytes));
  const auto about = log_about(work.claim.lease);
  spdlog::debug("{}: {} requests to {} hosts, {}", work.claim.url, traffic.requests, traffic.hosts.size(),
                base::format_size(traffic.bytes));
  if (traffic.refused > 0)
    spdlog::warn("{}: {} requests of its hooks were refused: {}", work.claim.url, traffic.refused,
                 traffic.first_refusal);
}

void tidy(PageWork& work) {
  work.services.archive_root.check();
  work.files.check();
  work.files.check_weight();
  take_from_hooks(work.sandbox, work.files.directory());
  const auto lost = archive::tidy(work.services.archive_root, work.files.directory(), directory_of(work.claim),
                                  work.claim.lease.fence, &work.files.abandoned());
  if (!lost.empty()) work.add_reason(AttemptFiles::describe_lost(lost));
}

void redact(PageWork& work) {
  constexpr std::size_t kNamed = 3;
  if (!work.redactor) return;
  const auto left_out =
      archive::redact_attempt(work.files.directory(), work.view, *work.redactor, &work.files.abandoned());
  if (left_out.empty()) return;
  std::string why = archive::kLeftOut + (": " + left_out.front());
  for (std::size_t i = 1; i < std::min(left_out.size(), kNamed); ++i)
    why += ", " + left_out[i];
  if (left_out.size() > kNamed) why += " and " + std::to_string(left_out.size() - kNamed) + " more";
  work.add_reason(why);
}

void index_captures(PageWork& work) {
  work.captures = archive::read_captures(work.files.directory(), &work.files.abandoned());
  for (const auto& problem : work.captures.problems)
    spdlog::warn("{}: not indexed: {}", work.claim.url, problem);
}

// The seal requires that the referenced pages are still there.
awaitable<void> deduplicate(PageWork& work) {
  const auto& scope = work.services.options.deduplicate;
  const auto& own_crawl = work.claim.lease.crawl_id;
  if (scope == "off") co_return;
  const auto payloads = archive::payloads_of(work.captures);
  if (payloads.empty()) co_return;
  const auto crawl = scope == "crawl" ? std::optional(own_crawl) : std::nullopt;
  const auto stored =
      co_await work.services.retry.repeat(&store::captures_stored, payloads, crawl, archive::kLeastRepeated);
  if (stored.empty()) co_return;
  std::map<archive::Payload, warc::Capture> originals;
  for (const auto& capture : stored)
    originals.emplace(archive::Payload(capture.key, capture.digest), capture);
  const auto done = co_await base::on_thread(work.services.files, [&] {
    auto result = archive::deduplicate(work.services.archive_root, work.files.directory(), work.captures, originals,
                                       &work.files.abandoned());
    if (!result.left_out.empty())
      work.captures = archive::read_captures(work.files.directory(), &work.files.abandoned());
    return result;
  });
  for (const auto& capture : stored)
    if (capture.crawl_id != own_crawl && done.left_out.contains({capture.key, capture.digest}))
      work.page.originals.emplace(capture.crawl_id, capture.snapshot_id);
  if (done.bytes_saved > 0) work.view.facts["bytes_saved"] = std::to_string(done.bytes_saved);
}

void read_search_text(PageWork& work) {
  work.text = archive::page_text(work.files.directory(), work.services.options.text_bytes);
}

namespace {

void move_into_archive(PageWork& work) {
  const auto& root = work.services.archive_root;
  const auto directory = directory_of(work.claim);
  archive::remove_partials(root, directory, work.claim.lease.fence);
  archive::remove_lost_attempts(root, directory, work.claim.lease.fence);
  work.published = archive::publish(root, work.files.directory(), directory, work.view, &work.files.abandoned(),
                                    work.earlier ? archive::Bodies::shared : archive::Bodies::own);
  base::test_point("after_publish");
  auto& page = work.page;
  if (!work.captures.records.empty()) page.captures = archive::captures_json(work.captures);
  page.directory = work.published.directory.string();
  page.manifest = work.published.manifest_sha256;
  page.bytes = work.published.bytes;
  page.files = work.published.files;
  page.title = work.view.title;
  page.tags = work.view.tags;
}

} // namespace

awaitable<void> publish(PageWork& work) {
  co_await base::on_thread(work.services.files, [&work] { work.files.check_room(work.services.archive_root); });
  auto& archive = work.services.archive_watch;
  try {
    co_await base::on_thread(work.services.files, [&work] { move_into_archive(work); });
    archive.published();
  } catch (const base::Error& error) {
    if (!work.files.abandoned())
      archive.publication_failed(directory_of(work.claim).parent_path(), work.view.bytes, error.what());
    // An archive or a disk that fails is not the page's: the attempt does not count.
    if (error.error_class() == base::ErrorClass::input_output)
      throw base::Error(base::ErrorClass::system, error.what());
    throw;
  }
}

awaitable<void> keep_search_text(PageWork& work) {
  if (work.services.options.text_bytes == 0) co_return;
  co_await work.services.retry.once(&store::text_keep, work.claim.lease, work.text);
}

namespace {

template <void (*Run)(PageWork&)>
awaitable<void> on_main_thread(PageWork& work) {
  Run(work);
  co_return;
}

template <void (*Run)(PageWork&)>
awaitable<void> on_files_thread(PageWork& work) {
  co_await base::on_thread(work.services.files, [&work] { Run(work); });
}

constexpr PageStep kBeforeSeal[] = {
    {"conclude", on_main_thread<conclude>},
    {"traffic", on_main_thread<count_traffic>},
    {"tidy", on_files_thread<tidy>},
    {"redact", on_files_thread<redact>},
    {"index captures", on_files_thread<index_captures>},
    {"witness", on_main_thread<witness>},
    {"replay", on_files_thread<check_replay>},
    {"change", find_change}, // before records become references
    {"deduplicate", deduplicate},
    {"search text", on_files_thread<read_search_text>},
    {"publish", publish},
};

constexpr PageStep kOfRecapture[] = {
    {"conclude", on_main_thread<conclude>},
    {"traffic", on_main_thread<count_traffic>},
    {"index captures", on_files_thread<index_captures>},
    {"change", on_main_thread<repeat_change>},
    {"search text", on_files_thread<read_search_text>},
    {"publish", publish},
};

constexpr PageStep kAfterSeal[] = {
    {"search text", keep_search_text},
    {"replay", keep_replay},
};

} // namespace

std::span<const PageStep> steps_before_seal() { return kBeforeSeal; }
std::span<const PageStep> steps_of_recapture() { return kOfRecapture; }
std::span<const PageStep> steps_after_seal() { return kAfterSeal; }

} // namespace holdfast::worker
