#include "lib/archive/verify.hpp"
#include "lib/base/test_point.hpp"
#include "lib/base/text/url.hpp"
#include "services/worker/attempt/steps.hpp"
#include "services/worker/hook/hook_sandbox.hpp"

namespace holdfast::worker {

namespace {

// Returns <yyyy>/<mm>/<host>/<id>.
std::filesystem::path directory_of(const store::Claim& claim) {
  return archive::snapshot_directory(claim.created_at, base::host_directory(base::parse_url(claim.url)),
                                     claim.lease.snapshot_id);
}

} // namespace

void tidy(PageWork& work) {
  work.services.archive_root.check();
  work.files.check();
  work.files.check_weight();
  take_from_hooks(work.sandbox, work.files.directory());
  const auto lost = archive::tidy(work.services.archive_root, work.files.directory(), directory_of(work.claim),
                                  work.claim.lease.fence, &work.files.abandoned());
  if (!lost.empty()) work.add_reason(AttemptFiles::describe_lost(lost));
}

void publish(PageWork& work) {
  const auto& root = work.services.archive_root;
  const auto directory = directory_of(work.claim);
  work.files.check_room(root);
  archive::remove_partials(root, directory, work.claim.lease.fence);
  archive::remove_lost_attempts(root, directory, work.claim.lease.fence);
  work.published = archive::publish(root, work.files.directory(), directory, work.view, &work.files.abandoned());
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

} // namespace holdfast::worker
