#include "lib/config/settings.hpp"

#include <unistd.h>

namespace holdfast::config {

namespace {

constexpr std::int64_t kSecond = 1000;
constexpr std::int64_t kMinute = 60 * kSecond;
constexpr std::int64_t kHour = 60 * kMinute;
constexpr std::int64_t kDay = 24 * kHour;
constexpr std::int64_t kKibi = 1024;
constexpr std::int64_t kTebi = kKibi * kKibi * kKibi * kKibi;
constexpr std::int64_t kMany = 1'000'000'000;

// Root runs Holdfast as a service of the machine, anyone else as a program of their own.
std::string_view default_data_dir() { return geteuid() == 0 ? "/var/lib/holdfast" : "~/.local/share/holdfast"; }

} // namespace

const std::vector<Key>& key_table() {
  // clang-format off
  static const std::vector<Key> table{
      {"data_dir", Type::path, default_data_dir(), false,
       "Directory of this worker's own files and of the embedded database."},
      {"work_dir", Type::path, "", false,
       "Scratch directory of running hooks; empty: work in data_dir. Best on the file system of archive.root."},
      {"archive.root", Type::path, "", false,
       "Directory of the finished archive, the same for all workers, or s3://BUCKET/PREFIX; empty: archive in data_dir."},

      {"archive.deduplicate", Type::text, "collection", false,
       "Which sealed pages WARC files may refer to in place of repeating a response of the same URL: all, those of the crawl, none.", 0, 0,
       "collection|crawl|off"},
      {"archive.keep_unchanged", Type::text, "all", false,
       "Which captures that found no change the runner keeps: all, or for example 1 per 7d after 30d; none after 90d."},
      {"archive.max_bytes", Type::size, "0", false,
       "Above this size of the archive, the runner removes captures that found no change, the oldest first; 0: no limit.", 0, kMany * kKibi * kKibi},
      {"capture.check", Type::text, "off", false,
       "Open each page from its WARC files before it is sealed; one that looks different there is partial.", 0, 0, "replay|off"},
      {"changes.learn", Type::duration, "15m", false,
       "What differs between the first two captures of a URL that follow each other within this time is learnt as noise; 0: nothing.", 0, kDay},
      {"changes.reuse", Type::boolean, "true", false,
       "Ask a site whether the files of a page have changed before hooks run; if none has, the capture shows them again."},
      {"archive.redact", Type::text, "on", false,
       "Replace cookies, passwords and tokens of a crawl's persona by markers in the archive.", 0, 0, "on|off"},

      {"database.url", Type::text, "", true,
       "PostgreSQL to use, postgresql://user@host/name or key=value; empty: an embedded server in data_dir."},
      {"database.password_file", Type::path, "", false,
       "File that holds the password for database.url, so that the URL need not; empty: none."},
      {"database.connections", Type::integer, "3", false,
       "Connections a worker keeps for its work, besides the one for its heartbeat.", 2, 16},

      {"server", Type::text, "", false,
       "URL of a `holdfast serve` that commands work with, in place of a database: https://archive.example; empty: none."},
      {"token", Type::text, "", true,
       "Token for server (`holdfast token add` there); better in token_file, or in HOLDFAST_TOKEN."},
      {"token_file", Type::path, "", false,
       "File with the token for server, which other users cannot read; empty: none."},

      {"plugins.path", Type::path_list, "", false,
       "Directories of further plugins; the last one that has a plugin is used, before the built-in ones."},
      {"plugins.built_in", Type::boolean, "true", false,
       "Also use the plugins that come with Holdfast, and those of holdfast plugins install."},
      {"plugins.environment", Type::text, "", false,
       "Further environment variables that hooks may see, separated by commas."},

      {"binaries.path", Type::path_list, "", false,
       "Directories to look for the binaries of plugins in, before PATH."},

      {"persona.key_file", Type::path, "", false,
       "Key file for personas, one key per line. Embedded database: data_dir/persona.key, created when needed."},
      {"persona.plugins", Type::text, "browser", false,
       "Plugins whose hooks get the cookies and credentials of a crawl's persona, separated by commas."},

      {"urls.allow_private", Type::boolean, "false", false,
       "Archive pages of private, loopback and link-local addresses too."},

      {"worker.snapshots", Type::integer, "4", false,
       "Snapshots a worker works on at the same time.", 1, 500},
      {"worker.snapshot_timeout", Type::duration, "1h", false,
       "Time limit for all hooks of a snapshot together. Running hooks are then ended and the others skipped. 0: no limit.", 0, 7 * kDay},
      {"worker.poll", Type::duration, "5s", false,
       "How often an idle worker looks for work if no notification arrives.", 50, kHour},
      {"worker.kind", Type::text, "all", false,
       "Work of a worker: turn seeds into snapshots (crawl), archive snapshots (snapshot), or both (all).", 0, 0, "all|crawl|snapshot"},
      {"worker.labels", Type::text, "", false,
       "Words, separated by commas, that tie personas to a worker; the name of its machine is always one."},
      {"worker.address", Type::text, ":0", false,
       "ADDRESS:PORT of its machine at which servers reach a worker for sign-ins; without ADDRESS the one that the database sees, port 0: one that is free."},
      {"claim.order", Type::text, "oldest", false,
       "Which pages of a crawl a worker takes first: those found first (oldest) or last (newest).", 0, 0, "oldest|newest"},
      {"claim.from_top_n", Type::integer, "0", false,
       "Take pages at random among the first so many of that order; 0: strictly in order.", 0, 10000},

      {"lease", Type::duration, "60s", false,
       "How long a worker owns its work after a heartbeat; others take it over after that.", kSecond, kHour},
      {"heartbeat", Type::duration, "15s", false,
       "How often a worker renews its lease; twice this must fit into lease - margin.", 50, kHour},
      {"margin", Type::duration, "20s", false,
       "How long before its lease ends a cut-off worker stops its hooks; more than kill_grace + 5s (lease / 12, if less).", 50, kHour},
      {"kill_grace", Type::duration, "5s", false,
       "How long a hook may take to end after SIGTERM before it gets SIGKILL.", 0, kHour},
      {"drain_timeout", Type::duration, "120s", false,
       "How long a worker that is asked to leave finishes running snapshots before it releases them.", 0, 7 * kDay},
      {"stop_timeout", Type::duration, "20s", false,
       "How long a worker may take to release its work before it is ended.", 0, kDay},

      {"hook.timeout", Type::duration, "60s", false,
       "Time limit of a hook that states none.", 50, 7 * kDay},
      {"hook.stall_timeout", Type::duration, "10m", false,
       "How long a hook may stall: no output, no file written, no CPU time; 0: until its timeout.", 0, 7 * kDay},
      {"hook.stdout_limit", Type::size, "64m", false,
       "Most that a hook may print on standard output.", kKibi, kTebi},
      {"hook.stderr_limit", Type::size, "16m", false,
       "Most that a hook may print on standard error.", kKibi, kTebi},
      {"hook.output_limit", Type::size, "4g", false,
       "Most that a hook may write into files.", kKibi, 1024 * kTebi},
      {"hook.open_files", Type::integer, "4096", false,
       "Files that a process of a hook may hold open.", 64, 1'048'576},
      {"hook.memory_limit", Type::size, "4g", false,
       "Memory that a hook and all it starts may use; 0: no limit. The default is less if a slot's share of the memory is.", 0, 1024 * kTebi},
      {"hook.processes", Type::integer, "500", false,
       "Processes that a hook may have at once, and a quarter of what its user may have with threads; 0: no limit.", 0,
       kMany},

      {"hook.sandbox", Type::text, "auto", false,
       "Hide all but their own files from hooks: auto (where the system allows it), required (else a worker does not start) or off.",
       0, 0, "auto|required|off"},
      {"hook.users", Type::text, "50000-59999", false,
       "User ids of sandboxed hooks, if the worker is root: ids without accounts, one for each open crawl."},
      {"hook.network", Type::text, "auto", false,
       "How hooks reach the web: auto (through a proxy of the worker that refuses private addresses; in a full sandbox, by no other way) or open.",
       0, 0, "auto|open"},
      {"hook.ports", Type::text, "80, 443, 8080, 8443", false,
       "Ports that the proxy of hook.network connects to, besides that of the page's own URL on its host; ranges such as 8000-8999; empty: all."},
      {"hook.cgroups", Type::boolean, "true", false,
       "Give each hook a cgroup of its own, where this worker may make some: version 2 if delegated, or version 1."},

      {"crawl.max_urls", Type::integer, "10000", false,
       "Most pages that one crawl may take; 0: no cap.", 0, kMany},
      {"crawl.max_depth", Type::integer, "4", false,
       "Most links that a crawl may follow away from its seeds.", 0, 16},

      {"politeness.parallel", Type::integer, "4", false,
       "Most pages of one host at once, in the whole cluster, unless `holdfast host set` says otherwise; 0: no cap.", 0, kMany},
      {"politeness.delay", Type::duration, "0", false,
       "Least time between two pages of one host, unless `holdfast host set` says otherwise.", 0, kDay},
      {"politeness.robots", Type::boolean, "false", false,
       "Obey robots.txt: refuse pages that it forbids, obey its Crawl-delay. For one crawl: --robots, --no-robots."},
      {"politeness.robots_delay_max", Type::duration, "30s", false,
       "Limit for the Crawl-delay of robots.txt.", 0, kDay},
      {"politeness.retries", Type::integer, "4", false,
       "How often a page is retried after its site limited requests (429, 503).", 0, 100},

      {"sessions.max", Type::integer, "4", false,
       "Crawls that a worker keeps open (a browser each) at the same time.", 1, 500},
      {"sessions.linger", Type::duration, "30s", false,
       "How long a worker keeps a crawl open after its last snapshot there.", 0, kDay},

      {"disk.minimum_free", Type::size, "512m", false,
       "A worker takes no new work while work_dir or archive.root has less space than this.", 0, 1024 * kTebi},
      {"memory.minimum_free", Type::size, "128m", false,
       "A worker takes no new work while its machine, or the container it is in, has less memory left than this; 0: no check.", 0, 1024 * kTebi},
      {"load.maximum", Type::integer, "0", false,
       "A worker takes no new work while the load average of the last minute is above this for each processor; 0: no check.", 0, 10'000},

      {"log.level", Type::text, "info", false,
       "trace, debug, info, warn, error or off.", 0, 0, "trace|debug|info|warn|error|off"},
      {"log.format", Type::text, "automatic", false,
       "text, json, or automatic: text on a terminal and JSON elsewhere.", 0, 0, "automatic|text|json"},

      {"http.listen", Type::text, "", false,
       "Listen address of a worker for /healthz, /readyz and /metrics: ADDRESS:PORT, or PORT of this machine alone; empty: nowhere."},
      {"serve.listen", Type::text, "127.0.0.1:8118", false,
       "Listen address of `holdfast serve`; see also serve.guest."},
      {"serve.files", Type::text, "", false,
       "Listen address for archived files, another origin than the pages; empty: the next port."},
      {"serve.files_url", Type::text, "", false,
       "Origin of the archived files behind a reverse proxy: https://files.example; empty: serve.files, on the host name of the page."},
      {"serve.replay", Type::text, "", false,
       "URL of this collection in pywb, for the links \"Open as it was\": http://127.0.0.1:8080/archive/; empty: no links."},
      {"serve.url", Type::text, "", false,
       "URL at which users reach `holdfast serve`, for links in notices, feeds and mementos: https://archive.example; empty: no links in notices."},
      {"serve.guest", Type::text, "automatic", false,
       "Role of requests without a token (`holdfast token`): none, reader or operator. automatic: reader on this machine, none on other addresses.", 0, 0, "automatic|none|reader|operator"},
      {"serve.hosts", Type::text, "", false,
       "Names, besides localhost and this machine's, under which browsers ask for `holdfast serve`, if guests may read: archive.example; an address always does."},
      {"serve.changes_per_minute", Type::integer, "6000", false,
       "How many requests that change something a token, or the address of a guest, may send in a minute; 0: any number.", 0, 1'000'000},
      {"serve.client_timeout", Type::duration, "30s", false,
       "How long a client may take to send a request, and to take each piece of an answer.", 100, kHour},
      {"serve.trusted_proxies", Type::text, "", false,
       "Reverse proxies whose X-Forwarded-For names the client for limits on requests: addresses and networks, such as 127.0.0.1, 10.0.0.0/8; empty: none."},
      {"serve.user_header", Type::text, "", false,
       "Header in which the trusted proxies name the user who is signed in there, such as X-Forwarded-Email or Remote-User; empty: none."},
      {"serve.groups_header", Type::text, "", false,
       "Header in which they name the groups of the user, separated by commas, such as X-Forwarded-Groups; empty: none."},
      {"serve.operator_groups", Type::text, "", false,
       "Groups whose users are operators; * for all users; empty: none is."},
      {"serve.reader_groups", Type::text, "*", false,
       "Groups whose users are readers; * for all users."},

      {"search.text_limit", Type::size, "256k", false,
       "Most text of a page that `holdfast search` finds; 0: a worker stores none.", 0, kKibi * kKibi},

      {"webhooks.secret_file", Type::path, "", false,
       "File with the secret that signs what webhooks send, a line `SECRET` or `NAME SECRET`; empty: this process sends nothing."},
      {"webhooks.timeout", Type::duration, "10s", false,
       "How long a webhook's receiver may take to answer.", 100, kHour / 60},

      {"mail.server", Type::text, "", false,
       "Server for e-mail: smtp://mail.example.org:587 (STARTTLS) or smtps://mail.example.org:465; empty: this process sends none."},
      {"mail.from", Type::text, "", false,
       "Sender of e-mail: holdfast@example.org."},
      {"mail.user", Type::text, "", false,
       "User at mail.server; empty: no login."},
      {"mail.password_file", Type::path, "", false,
       "File with the password of mail.user in its first line."},
      {"mail.tls", Type::boolean, "true", false,
       "Send e-mail only over TLS. false: also to a server of smtp:// that offers none, on this machine for example."},
      {"mail.ca_file", Type::path, "", false,
       "Certificates (PEM) that sign mail.server's, of a certificate authority of one's own; empty: those that the system trusts."},

      {"apprise.config", Type::path, "", false,
       "Configuration file of Apprise (https://github.com/caronc/apprise), whose tags are receivers of notices: `--notify apprise:TAG`; empty: this process does not use it."},

      {"runner.lease", Type::duration, "15s", false,
       "How long the runner leads after its last heartbeat.", kSecond, kHour},
      {"runner.heartbeat", Type::duration, "3s", false,
       "How often the runner renews its lease; twice this must fit into runner.lease.", 50, kHour},
      {"runner.graceful_timeout", Type::duration, "5s", false,
       "How long a leading runner may take to step down for a newer one; after that its lease ends.", 0, kHour},
      {"runner.poll_interval", Type::duration, "1s", false,
       "How often the runner checks for due maintenance tasks.", 50, kHour},
      {"runner.idle_timeout", Type::integer, "3", false,
       "Rounds without work after which `holdfast run` is done.", 1, kMany},
      {"runner.max_workers_per_type", Type::integer, "4", false,
       "`run` starts workers until the machine has so many of one type, also counting those that others started.", 1, 500},
      {"runner.max_total_workers", Type::integer, "12", false,
       "`run` starts workers until the machine has so many in all, also counting those that others started.", 1, 500},
      {"runner.split_workers", Type::boolean, "false", false,
       "Start workers for crawls and for snapshots instead of workers that do both."},
      {"runner.max_crawl_workers", Type::integer, "1", false,
       "With runner.split_workers: workers that turn seeds into snapshots.", 1, 500},
  };
  // clang-format on
  return table;
}

} // namespace holdfast::config
