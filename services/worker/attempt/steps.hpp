#pragma once
// The steps that a page takes between the end of its last hook and its seal, and after it. A step is a row of a table
// in steps.cpp: a function that reads and changes the page's PageWork. It throws what ends the attempt. Between two
// steps the job checks whether it still has the lease.

#include "lib/archive/captures.hpp"
#include "lib/base/async.hpp"
#include "lib/change/reuse.hpp"
#include "services/egress/proxy.hpp"
#include "services/worker/attempt/page_work.hpp"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace holdfast::worker {

struct PageStep {
  const char* name;
  awaitable<void> (*run)(PageWork&);
};
std::span<const PageStep> steps_before_seal();
// Returns the steps of a page without hooks, which shows the files of an earlier capture.
std::span<const PageStep> steps_of_recapture();
// Returns the steps that may fail, because the page is sealed. ArchiveMaintenance repeats those that did.
std::span<const PageStep> steps_after_seal();

// On the main thread: the outcome, and what the egress proxy counted (also of a page that failed).
void conclude(PageWork& work);
void count_traffic(PageWork& work);
// On the files thread: make files fit for publication, take the persona's secrets out of them, list the records of WARC
// files, read the text for the search.
void tidy(PageWork& work);
void redact(PageWork& work);
void index_captures(PageWork& work);
void read_search_text(PageWork& work);
// Opens the page from its records, with capture.check: replay; one that differs from the capture is partial.
void check_replay(PageWork& work);
// Compares the records with what the egress proxy received; before payloads are removed.
void witness(PageWork& work);
// With the database: compares the page with the last capture of its URL. The facts and the fingerprint go with the
// seal, which checks that no other capture was sealed meanwhile (changes_settle).
awaitable<void> find_change(PageWork& work);
// States that nothing has changed since the earlier capture.
void repeat_change(PageWork& work);
// Moves everything into the archive, and reports to the archive watch whether that succeeded.
awaitable<void> publish(PageWork& work);
// With the database: remove payloads from WARC files that sealed pages hold; store the text for the search, and how the
// page replays.
awaitable<void> deduplicate(PageWork& work);
awaitable<void> keep_search_text(PageWork& work);
awaitable<void> keep_replay(PageWork& work);

// Blocking; reads the HTML documents and scripts among the records, before payloads are removed.
change::Reuse judge_reuse(const PageWork& work);

// Returns the bytes received from each host that are in no record. Leaves out what a comparison cannot decide: the
// handshakes of TLS, small differences, films whose pieces a player has dropped, bodies that revisit records do not
// repeat, and messages of WebSockets.
std::map<std::string, std::uint64_t> unrecorded(const egress::Traffic& traffic,
                                                const std::vector<warc::Capture>& records);

} // namespace holdfast::worker
