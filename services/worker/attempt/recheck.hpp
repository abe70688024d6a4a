#pragma once
// Asks a site whether the files of an earlier capture have changed: conditional requests where the answers had an ETag
// or a date, else whole ones. Blocking; any thread.

#include "lib/archive/root.hpp"
#include "lib/store/capture.hpp"
#include "lib/warc/headers.hpp"

#include <atomic>
#include <filesystem>
#include <string>
#include <vector>

namespace holdfast::worker {

struct Recheck {
  const archive::Root& root;
  std::string url;                      // of the page: requested first, alone
  std::vector<store::Capture> captures; // of the earlier capture, in their order
  std::string proxy;                    // of the page; empty: that of the environment
  bool allow_private{false}, check_certificates{true};
  std::string user_agent; // of requests whose record has none
  warc::OmittedHeaders omitted{};
  const std::atomic<bool>& abandoned;
};

struct Rechecked {
  std::string differs; // the first URL that differs, and how; empty: none does
  std::size_t equal{0};
};

// Returns at the first answer that differs. If none does, `warc` has a record of each answer, which refers to the
// payload of the earlier one. Throws Error if `warc` cannot be written.
Rechecked recheck(const Recheck& work, const std::filesystem::path& warc);

} // namespace holdfast::worker
