#include "lib/archive/page_text.hpp"
#include "lib/store/text.hpp"
#include "services/worker/attempt/steps.hpp"

namespace holdfast::worker {

void read_search_text(PageWork& work) {
  work.text = archive::page_text(work.files.directory(), work.services.options.text_bytes);
}

awaitable<void> keep_search_text(PageWork& work) {
  if (work.services.options.text_bytes == 0) co_return;
  const auto call = [&work](pg::Connection& connection) {
    return store::text_keep(connection, work.claim.lease, work.text);
  };
  co_await work.services.retry.once(call);
}

} // namespace holdfast::worker
