#include "services/cli/command/verbs.hpp"

#include "services/cli/control/operate.hpp"

#include <CLI/CLI.hpp>

#include <sstream>

namespace holdfast::cli {

namespace {

constexpr Verb kVerbs[] = {
    {"add", "Add URLs as one crawl; with the embedded database, also archive them now",
     "holdfast add https://example.org/\n"
     "holdfast add --depth 1 --max-urls 200 --tag reading https://example.org/blog/\n"
     "holdfast add --bg bookmarks.html\n"
     "holdfast list snapshots --tag later | holdfast add -",
     &add_verb},
    {"worker", "Run a worker, which claims and archives pages until it is stopped",
     "holdfast worker\n"
     "holdfast worker --set worker.snapshots=8 --set http.listen=9118",
     &worker_verb},
    {"run", "Archive all queued pages, then exit",
     "holdfast run\n"
     "holdfast run --daemon\n"
     "holdfast run --crawl 7f3a",
     &run_verb},
    {"runner", "Run schedules and maintenance; the newest runner takes over",
     "holdfast runner --standby\n"
     "holdfast runner --status",
     &runner_verb},
    {"pause", "Pause a crawl, a snapshot, a host, a worker, or everything",
     "holdfast pause 7f3a --why 'too fast'\n"
     "holdfast pause --host example.org\n"
     "holdfast pause --all",
     &steer_verb},
    {"resume", "Resume what was paused",
     "holdfast resume 7f3a\n"
     "holdfast resume 7f3a --at 2h\n"
     "holdfast resume --host example.org\n"
     "holdfast resume --all",
     &steer_verb},
    {"cancel", "Cancel a crawl or snapshot for good; make a worker release its work and exit",
     "holdfast cancel 7f3a --yes\n"
     "holdfast cancel --worker 02c4",
     &steer_verb},
    {"drain", "Let workers or runners finish their pages and exit, before an upgrade",
     "holdfast drain 02c4 --wait\n"
     "holdfast drain --machine archive-3 --wait",
     &drain_verb},
    {"retry", "Retry pages as a new crawl",
     "holdfast retry 7f3a\n"
     "holdfast retry 7f3a --failed --plugin wget\n"
     "holdfast list failures --limit 200 | holdfast retry -",
     &retry_verb},
    {"exclude", "Leave a host out of a running crawl",
     "holdfast exclude ads.example.net 7f3a\n"
     "holdfast exclude --undo ads.example.net 7f3a",
     &exclude_verb},
    {"scope", "Show or change which URLs belong to a crawl; changes apply to the next claim",
     "holdfast scope 7f3a\n"
     "holdfast scope 7f3a --allow example.org --deny '*.example.org'",
     &scope_verb},
    {"host", "Show or change the limits of hosts",
     "holdfast host set example.org --delay 5s --parallel 1\n"
     "holdfast host list",
     &host_verb},
    {"edit", "Show or change tags and notes, the title of a snapshot, the label of a crawl",
     "holdfast edit 7f3a --tag reading --untag later\n"
     "holdfast edit 7f3a\n"
     "holdfast edit 7f3a --title 'Solar wind' --notes 'See page 2'\n"
     "holdfast edit 7f3a --label 'The blog, in May'",
     &edit_verb},
    {"priority", "Change the priority of a crawl",
     "holdfast priority 10 7f3a\n"
     "holdfast list crawls --tag later | holdfast priority -5 -",
     [](CLI::App& command) { return operation_verb(command, "changeCrawl", "priority"); }},
    {"keep", "Set how long a crawl is kept",
     "holdfast keep 90d 7f3a\n"
     "holdfast keep forever 7f3a",
     [](CLI::App& command) { return operation_verb(command, "changeCrawl", "keep"); }},
    {"remove", "Delete crawls or snapshots with their files",
     "holdfast remove 7f3a\n"
     "holdfast remove --expired --yes\n"
     "holdfast remove --unchanged --set 'archive.keep_unchanged=1 per 7d after 30d'   # shows them, and removes "
     "nothing",
     &remove_verb},
    {"schedule", "Manage crawls that the runner adds repeatedly",
     "holdfast schedule add --every daily https://example.org/news\n"
     "holdfast schedule list\n"
     "holdfast schedule next --every '0 6 * * mon-fri'",
     &schedule_verb},
    {"watch", "Watch pages and feeds: capture them repeatedly, and notify when a condition holds",
     "holdfast watch add https://example.org/news --every 1h --when 'text changes by 1%' --notify me@example.org\n"
     "holdfast watch list\n"
     "holdfast watch show news",
     &watch_verb},
    {"shelf", "Manage shelves: named sets of pages of any crawls",
     "holdfast shelf put reading 7f3a 81bc\n"
     "holdfast shelf add news --tag news --description 'What was in the papers'\n"
     "holdfast shelf show reading",
     &shelf_verb},
    {"share", "Manage links by which anyone may read a page or a shelf",
     "holdfast share add 7f3a --expires 7d\n"
     "holdfast share add --shelf reading\n"
     "holdfast share revoke 1f0c22d9",
     &share_verb},
    {"status", "Show totals, and what runs",
     "holdfast status\n"
     "holdfast status --follow\n"
     "holdfast status --json | jq .snapshots_open",
     &status_verb},
    {"list", "",
     "holdfast list crawls\n"
     "holdfast list queue --crawl 7f3a\n"
     "holdfast list failures --limit 200 --csv >failures.csv\n"
     "holdfast list snapshots --status paused | holdfast resume -",
     &list_verb}, // its help names the lists
    {"search", "Find words in the text, titles and URLs of archived pages",
     "holdfast search solar wind\n"
     "holdfast search '\"solar wind\" -moon' --host example.org\n"
     "holdfast search archiv* --json | jq -r .url\n"
     "holdfast search --rebuild",
     &search_verb},
    {"diff", "Show what differs between two captures of a page",
     "holdfast diff 7f3a\n"
     "holdfast diff https://example.org/\n"
     "holdfast diff 7f3a 81bc --html > changes.html\n"
     "holdfast diff 7f3a --json | jq .words_added",
     &diff_verb},
    {"show", "Show everything about a crawl, snapshot or process",
     "holdfast show 7f3a\n"
     "holdfast show 7f3a --json | jq -r 'select(.type == \"Snapshot\").url'",
     &show_verb},
    {"migrate", "Bring the database's schema up to date", "holdfast migrate", &migrate_verb},
    {"config", "Show settings or options of plugins, with their values and origins",
     "holdfast config\n"
     "holdfast config archive.root",
     &config_verb},
    {"version", "Print the version of the program and of its schema", "holdfast version --json", &version_verb},
    {"check", "Check all invariants of the collection; reads every row", "holdfast check && echo all is well",
     &check_verb},
    {"verify", "Compare archived files with their manifests",
     "holdfast verify 7f3a\n"
     "holdfast verify --all --collect",
     &verify_verb},
    {"adopt", "Restore the rows of archived pages from their files, after the database was lost",
     "holdfast adopt\n"
     "holdfast adopt /srv/archive/2026/05",
     &adopt_verb},
    {"backup", "Copy the database and the archive to a directory, while they are in use; verify the copy",
     "holdfast backup /mnt/disk/holdfast", &backup_verb},
    {"restore", "Restore a backup into an empty place", "holdfast --data-dir ./again restore /mnt/disk/holdfast",
     &restore_verb},
    {"export", "Write archived pages as one WACZ file, or as WARC files with an index",
     "holdfast export 7f3a -o crawl.wacz\n"
     "holdfast export --tag news --since 7d --format warc -o warcs\n"
     "holdfast export --all -o - | ssh backup 'cat >all.wacz'",
     &export_verb},
    {"import", "Import archives of other programs", "holdfast import archivebox --dry-run ~/archivebox", &import_verb},
    {"why", "Explain why a crawl, snapshot, process or host is in its state",
     "holdfast why 7f3a\n"
     "holdfast why example.org\n"
     "holdfast list snapshots --status queued | holdfast why -",
     &why_verb},
    {"events", "Show the recorded changes of state",
     "holdfast events --follow\n"
     "holdfast events -n 1000 --json | jq 'select(.to_state == \"sealed\")'",
     &events_verb},
    {"log-level", "Change the log level of running workers and runners",
     "holdfast log-level debug\n"
     "holdfast log-level trace --worker 7f3a\n"
     "holdfast log-level default",
     &log_level_verb},
    {"serve", "Serve the page, archived files and the HTTP API",
     "holdfast serve\n"
     "holdfast serve --set serve.listen=0.0.0.0:8118",
     &serve_verb},
    {"completion", "Print a completion script for a shell",
     "source <(holdfast completion bash)\n"
     "holdfast completion fish >~/.config/fish/completions/holdfast.fish",
     &completion_verb},
    {"manual", "Print the manual page: holdfast manual | man -l -",
     "holdfast manual | man -l -\n"
     "holdfast manual >/usr/local/share/man/man1/holdfast.1",
     &manual_verb},
    {"psql", "Open psql on the collection's database, with a read-only role",
     "holdfast psql\n"
     "holdfast psql -c 'select * from v_status'\n"
     "holdfast psql --role operator -c \"select crawl_priority(id, 10, 'me') from v_crawl where label = 'blog'\"",
     &psql_verb},
    {"token", "Manage tokens for the page and the HTTP API of holdfast serve",
     "holdfast token add anna --role operator --expires 90d\n"
     "holdfast token list",
     &token_verb},
    {"account", "Manage accounts: names and passwords for the page of holdfast serve",
     "holdfast account add anna --role operator\n"
     "holdfast account list",
     &account_verb},
    {"webhook", "Manage webhooks: signed, retried, delivered at least once",
     "holdfast webhook add ops https://hooks.example.net/holdfast --on snapshot.failed,worker.lapsed\n"
     "holdfast webhook test ops\n"
     "holdfast list webhooks\n"
     "holdfast list deliveries --status given_up\n"
     "holdfast why ops",
     &webhook_verb},
    {"doctor", "Show missing binaries on this machine, and how to install them",
     "holdfast doctor\n"
     "holdfast doctor wget screenshot\n"
     "holdfast doctor --json | jq -r 'select(.state == \"missing\").binary'",
     &doctor_verb},
    {"plugins", "List, install and switch plugins on this machine",
     "holdfast plugins install abx --dry-run\n"
     "holdfast plugins install abx -p readability,ytdlp\n"
     "holdfast plugins list --json | jq -r 'select(.lacks != \"\").name'\n"
     "holdfast plugins disable pdf",
     &plugins_verb},
    {"binary", "Show the binaries that plugins need, as found on each machine",
     "holdfast binary list --status queued\n"
     "holdfast binary recheck wget",
     &binary_verb},
    {"persona", "Manage personas: cookies, storage and options that sign a browser in",
     "holdfast persona import work cookies.txt --host intranet.example.org\n"
     "holdfast add --persona work https://intranet.example.org/",
     &persona_verb},
    {"logs", "Show the output of hooks that run here or have failed",
     "holdfast logs 7f3a\n"
     "holdfast logs --follow 7f3a\n"
     "holdfast logs 7f3a --plugin wget",
     &logs_verb},
    {"inspect", "Show lifecycles and references; safe on a live system",
     "holdfast inspect lifecycle snapshot\n"
     "holdfast inspect reference settings",
     &inspect_verb},
};

} // namespace

std::span<const Verb> all_verbs() { return kVerbs; }

void attach_verb(CLI::App& parent, const Choice& choice, const std::string& name, const std::string& help,
                 const std::string& examples, const AddVerb& add) {
  auto& command = *parent.add_subcommand(name, help);
  // A group's inner verb is parsed before the group, and has been chosen for its action.
  command.callback([choice, action = add(command)] { *choice = action; });
  std::string footer = command.get_footer();
  footer += footer.empty() ? "Examples:" : "\n\nExamples:";
  std::istringstream lines(examples);
  for (std::string line; std::getline(lines, line);)
    footer += "\n  " + line;
  command.footer(footer);
}

Group::Group(CLI::App& command) : command_(command), choice_(std::make_shared<Action>()) {
  command_.require_subcommand(1);
}

Action Group::action() const {
  return [choice = choice_](Context& context) { return (*choice)(context); };
}

} // namespace holdfast::cli
