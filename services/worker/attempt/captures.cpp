#include "lib/archive/captures.hpp"

#include "lib/archive/deduplicate.hpp"
#include "lib/base/coroutine.hpp"
#include "lib/store/capture.hpp"
#include "services/worker/attempt/steps.hpp"

#include <spdlog/spdlog.h>

#include <map>

namespace holdfast::worker {

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
  const auto call = [&](pg::Connection& connection) {
    return store::captures_stored(connection, payloads, crawl, archive::kLeastRepeated);
  };
  const auto stored = co_await work.services.retry.repeat(call);
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

} // namespace holdfast::worker
