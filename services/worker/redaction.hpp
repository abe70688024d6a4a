#pragma once
// Takes what is secret of a persona out of what the hooks of a page have said. Their files: lib/archive/redact.hpp.

#include "lib/archive/attempt.hpp"
#include "lib/hooks/hook_run.hpp"
#include "lib/warc/redact.hpp"

namespace holdfast::worker {

void redact(const warc::Redactor& redactor, hooks::HookOutcome& outcome);
void redact(const warc::Redactor& redactor, archive::SnapshotView& view);

} // namespace holdfast::worker
