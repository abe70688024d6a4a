#pragma once
// Takes secrets out of an attempt before it is published: its files, and the texts of its hooks on its page. Blocking
// file work; any thread, one at a time in one tree.

#include "lib/archive/attempt.hpp"
#include "lib/warc/redact.hpp"

#include <atomic>
#include <filesystem>

namespace holdfast::archive {

// Redacts WARC files first, whose cookies `redactor` then includes; then all other files, as they are. Other packed
// formats (images, PDF, ZIP) are not opened. A file that changes is replaced. Then names and links. Throws Error.
void redact_attempt(const std::filesystem::path& attempt, SnapshotView& view, warc::Redactor& redactor,
                    const std::atomic<bool>* cancelled = nullptr);

} // namespace holdfast::archive
