#include "lib/archive/redact.hpp"
#include "services/worker/attempt/steps.hpp"

namespace holdfast::worker {

void redact(PageWork& work) {
  if (work.redactor)
    archive::redact_attempt(work.files.directory(), work.view, *work.redactor, &work.files.abandoned());
}

} // namespace holdfast::worker
