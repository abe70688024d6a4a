#include "lib/archive/verify.hpp"
#include "lib/base/coroutine.hpp"
#include "lib/base/error.hpp"
#include "lib/base/test_point.hpp"
#include "lib/base/text/url.hpp"
#include "services/worker/attempt/steps.hpp"
#include "services/worker/hook/hook_sandbox.hpp"
#include "services/worker/turn/claim_conditions.hpp"

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
  auto& archive = work.services.claim_conditions.archive();
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

} // namespace holdfast::worker
