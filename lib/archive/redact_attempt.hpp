#pragma once
// Takes secrets out of an attempt before it is published: its files, and the texts of its hooks on its page. Blocking
// file work; any thread, one at a time in one tree.

#include "lib/archive/attempt.hpp"
#include "lib/warc/redact.hpp"

#include <atomic>
#include <filesystem>
#include <string>
#include <vector>

namespace holdfast::archive {

inline constexpr const char* kLeftOut = "left out, because it may show a secret of the persona";

// Redacts all files, with what their WARC files show to be secrets, too; a file that changes is replaced. Then names
// and links. Returns what is left out, because it may show a secret that cannot be replaced there: bodies of records
// (their URLs), packed files, and pictures, films and PDFs of a page whose visible text has one. Throws Error.
std::vector<std::string> redact_attempt(const std::filesystem::path& attempt, SnapshotView& view,
                                        warc::Redactor& redactor, const std::atomic<bool>* cancelled = nullptr);

} // namespace holdfast::archive
