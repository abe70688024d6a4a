#pragma once
// Takes secrets out of an attempt before it is published: its files, and what its page says of its hooks. Blocking file
// work; any thread, one at a time in one tree.

#include "lib/archive/attempt.hpp"
#include "lib/warc/redact.hpp"

#include <atomic>
#include <filesystem>

namespace holdfast::archive {

// WARC files first, whose cookies `redactor` then knows too; then all other files, as they are. What is packed in
// another way (pictures, PDF, ZIP) is not looked into. A file that changes is replaced. Then names and links. Throws
// Error.
void redact_attempt(const std::filesystem::path& attempt, SnapshotView& view, warc::Redactor& redactor,
                    const std::atomic<bool>* cancelled = nullptr);

} // namespace holdfast::archive
