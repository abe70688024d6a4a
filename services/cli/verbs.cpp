#include "services/cli/verbs.hpp"

namespace holdfast::cli {

namespace {

// In the order of the help.
constexpr Verb kVerbs[] = {
    {"add", "Add URLs as one crawl; on an own database also archive them now", &add_verb},
    {"worker", "Run a worker: claim and archive until told to stop", &worker_verb},
    {"run", "Archive everything that is queued, then end: duties and workers in one", &run_verb},
    {"runner", "Run maintenance: schedules, lapsed workers, old records. The newest runner takes over", &runner_verb},
    {"pause", "Stop working on a crawl, a snapshot, a host, a worker, or everything, until resumed", &pause_verb},
    {"resume", "Go on with what was paused", &resume_verb},
    {"cancel", "End a crawl or snapshot for ever; make a worker release its work and end", &cancel_verb},
    {"drain", "Let workers or runners finish what they have, and end: before an upgrade", &drain_verb},
    {"retry", "Try again what failed, as a new crawl", &retry_verb},
    {"exclude", "Leave a host out of a running crawl", &exclude_verb},
    {"scope", "What belongs to a crawl; changes take effect with the next claim of any worker", &scope_verb},
    {"host", "How hosts are treated", &host_verb},
    {"tag", "Show or change tags of crawls and snapshots, and label and notes of crawls", &tag_verb},
    {"priority", "Work on a crawl before others, or after them, from now on", &priority_verb},
    {"keep", "Say how long a crawl is kept, from now on", &keep_verb},
    {"remove", "Delete crawls or snapshots with their files", &remove_verb},
    {"schedule", "Crawls that are added again and again, by the runner", &schedule_verb},
    {"status", "What there is and what runs", &status_verb},
    {"list",
     "List crawls, snapshots, results, queue, running, sessions, workers, events, failures, hosts, webhooks, "
     "deliveries, "
     "binaries",
     &list_verb},
    {"search", "Find words in the text, titles and URLs of archived pages", &search_verb},
    {"show", "Everything about a crawl, snapshot or process", &show_verb},
    {"migrate", "Bring the database's schema up to date", &migrate_verb},
    {"config", "Settings, or options of plugins: key, value, where it comes from", &config_verb},
    {"version", "Version of the program and of its schema", &version_verb},
    {"check", "Check the collection's invariants: reads everything, so it takes longer the larger the collection is",
     &check_verb},
    {"verify", "Compare archived files with their manifests", &verify_verb},
    {"adopt", "Make the rows of archived pages again from their files, after the database was lost", &adopt_verb},
    {"export", "Write archived pages as one WACZ file, or as WARC files with an index", &export_verb},
    {"import", "Bring in what other programs have archived", &import_verb},
    {"why", "Why a crawl, snapshot, process or host is where it is: one sentence, and the facts", &why_verb},
    {"events", "What happened: every change of state, as it is recorded", &events_verb},
    {"log-level", "Change how much workers and runners log, while they run", &log_level_verb},
    {"top", "What runs just now, live; q ends it", &top_verb},
    {"serve", "The page for browsers, archived files, and the HTTP API", &serve_verb},
    {"completion", "Print a completion script for a shell", &completion_verb},
    {"manual", "Print the manual page: holdfast manual | man -l -", &manual_verb},
    {"psql", "Open psql on the collection's database, as a role that only reads", &psql_verb},
    {"token", "Tokens with which users and programs reach the page and the HTTP API of holdfast serve", &token_verb},
    {"webhook", "Addresses that are told what happens: signed, at least once, retried", &webhook_verb},
    {"doctor", "What each plugin lacks on this machine, and the command that installs it", &doctor_verb},
    {"binary", "Binaries that plugins need, as found on each machine", &binary_verb},
    {"persona", "Named sets of options, cookies and a browser profile, for add --persona", &persona_verb},
    {"logs", "What hooks of a snapshot or crawl have printed: those that run here, and those that failed", &logs_verb},
    {"inspect", "Look inside; always safe on a live system", &inspect_verb},
};

} // namespace

std::span<const Verb> all_verbs() { return kVerbs; }

} // namespace holdfast::cli
