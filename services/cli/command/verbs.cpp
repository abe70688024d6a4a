#include "services/cli/command/verbs.hpp"

namespace holdfast::cli {

namespace {

// In the order of the help.
constexpr Verb kVerbs[] = {
    {"add", "Add URLs as one crawl; with the embedded database, also archive them now", &add_verb},
    {"worker", "Run a worker, which claims and archives pages until it is stopped", &worker_verb},
    {"run", "Archive everything that is queued, then exit: a runner with workers of its own", &run_verb},
    {"runner", "Run maintenance: schedules, lapsed workers, cleanup; the newest runner takes over", &runner_verb},
    {"pause", "Pause a crawl, a snapshot, a host, a worker, or everything", &pause_verb},
    {"resume", "Resume what was paused", &resume_verb},
    {"cancel", "Cancel a crawl or snapshot for good; make a worker release its work and exit", &cancel_verb},
    {"drain", "Let workers or runners finish their pages and exit, for example before an upgrade", &drain_verb},
    {"retry", "Retry pages as a new crawl", &retry_verb},
    {"exclude", "Leave a host out of a running crawl", &exclude_verb},
    {"scope", "Show or change which URLs belong to a crawl; changes apply to the next claim", &scope_verb},
    {"host", "Show or change the limits of hosts", &host_verb},
    {"edit", "Show or change tags and notes, the title of a snapshot, the label of a crawl", &edit_verb},
    {"priority", "Change the priority of a crawl", &priority_verb},
    {"keep", "Set how long a crawl is kept", &keep_verb},
    {"remove", "Delete crawls or snapshots with their files", &remove_verb},
    {"schedule", "Manage crawls that the runner adds repeatedly", &schedule_verb},
    {"status", "Show totals, and what runs", &status_verb},
    {"list", "", &list_verb}, // it says itself what can be listed
    {"search", "Find words in the text, titles and URLs of archived pages", &search_verb},
    {"show", "Show everything about a crawl, snapshot or process", &show_verb},
    {"migrate", "Bring the database's schema up to date", &migrate_verb},
    {"config", "Show settings or options of plugins, with their values and origins", &config_verb},
    {"version", "Print the version of the program and of its schema", &version_verb},
    {"check", "Check all invariants of the collection; reads every row", &check_verb},
    {"verify", "Compare archived files with their manifests", &verify_verb},
    {"adopt", "Restore the rows of archived pages from their files, after the database was lost", &adopt_verb},
    {"export", "Write archived pages as one WACZ file, or as WARC files with an index", &export_verb},
    {"import", "Import archives of other programs", &import_verb},
    {"why", "Explain why a crawl, snapshot, process or host is in its state", &why_verb},
    {"events", "Show the recorded changes of state", &events_verb},
    {"log-level", "Change the log level of running workers and runners", &log_level_verb},
    {"serve", "Serve the page, archived files and the HTTP API", &serve_verb},
    {"completion", "Print a completion script for a shell", &completion_verb},
    {"manual", "Print the manual page: holdfast manual | man -l -", &manual_verb},
    {"psql", "Open psql on the collection's database, with a read-only role", &psql_verb},
    {"token", "Manage tokens for the page and the HTTP API of holdfast serve", &token_verb},
    {"webhook", "Manage webhooks: signed, retried, delivered at least once", &webhook_verb},
    {"doctor", "Show missing binaries on this machine, and install them", &doctor_verb},
    {"plugins", "List, install and switch plugins on this machine", &plugins_verb},
    {"binary", "Show the binaries that plugins need, as found on each machine", &binary_verb},
    {"persona", "Manage personas: cookies, storage and options that sign a browser in", &persona_verb},
    {"logs", "Show the output of hooks that run here or have failed", &logs_verb},
    {"inspect", "Show lifecycles and references; safe on a live system", &inspect_verb},
};

} // namespace

std::span<const Verb> all_verbs() { return kVerbs; }

} // namespace holdfast::cli
