-- Crawls: seeds, limits and options; their rows in the queue; schedules that add them.

create table holdfast.crawl (
  id uuid primary key,
  label text not null default '', notes text not null default '',
  tags text[] not null default '{}',
  persona text not null default '',
  plugins text[] not null default '{}', options jsonb not null default '{}',
  max_depth integer not null default 0, max_urls bigint not null default 0,
  max_bytes bigint not null default 0, max_snapshot_bytes bigint not null default 0,
  max_time interval not null default '0', max_parallel integer, priority integer not null default 0,
  scope jsonb not null default '{}',
  host_delay interval not null default '0', host_parallel integer,
  robots boolean not null default false,
  "full" boolean not null default false,
  only_new boolean not null default false, max_age interval,
  only_complete boolean not null default false, revisit boolean not null default false,
  wanted text[] not null default '{}',
  overwrite boolean not null default false,
  retry_of uuid, keep_until timestamptz,
  created_by text not null default '', first_url text not null default '',
  created_at timestamptz not null default clock_timestamp(),
  status text not null default 'queued', event text,
  retry_at timestamptz default clock_timestamp(),
  reason text, owner_id uuid,
  fence bigint not null default 0,
  judged_to uuid,
  seeds_total bigint not null default 0, seeds_left bigint not null default 0,
  urls_refused bigint not null default 0,
  snapshots_total bigint not null default 0, snapshots_open bigint not null default 0,
  snapshots_excluded bigint not null default 0,
  snapshots_succeeded bigint not null default 0, snapshots_partial bigint not null default 0,
  snapshots_failed bigint not null default 0, snapshots_cancelled bigint not null default 0,
  bytes bigint not null default 0,
  started_at timestamptz, deadline_at timestamptz,
  paused_at timestamptz, resume_at timestamptz, stopping_at timestamptz, sealed_at timestamptz,
  stop_reason text, outcome text, changed_by text,
  constraint crawl_status check (status in ('queued', 'started', 'paused', 'sealed')),
  constraint crawl_options_object check (jsonb_typeof(options) = 'object'),
  constraint crawl_depth check (max_depth between 0 and 16),
  constraint crawl_max_urls check (max_urls >= 0),
  constraint crawl_max_bytes check (max_bytes >= 0),
  constraint crawl_max_snapshot_bytes check (max_snapshot_bytes >= 0),
  constraint crawl_max_time check (max_time >= '0'),
  constraint crawl_max_parallel check (max_parallel > 0),
  constraint crawl_scope_object check (jsonb_typeof(scope) = 'object'),
  constraint crawl_host_delay check (host_delay >= '0'),
  constraint crawl_host_parallel check (host_parallel > 0),
  constraint crawl_wanted_to_complete check (wanted = '{}' or only_complete),
  constraint crawl_overwrites_or_skips check (not (overwrite and only_new)),
  constraint crawl_sealed_is_final check ((status = 'sealed') = (sealed_at is not null)),
  constraint crawl_sealed_has_outcome check ((status = 'sealed') = (outcome is not null)),
  constraint crawl_sealed_is_idle check (status <> 'sealed'
    or (owner_id is null and retry_at is null and snapshots_open = 0 and seeds_left = 0)),
  constraint crawl_paused_is_parked check (status <> 'paused'
    or (retry_at = '9999-01-01T00:00:00Z' and owner_id is null)),
  constraint crawl_counts check (least(seeds_left, snapshots_open, snapshots_excluded, snapshots_succeeded,
    snapshots_partial, snapshots_failed, snapshots_cancelled, bytes, urls_refused, fence) >= 0),
  constraint crawl_open_adds_up check (snapshots_total
    = snapshots_open + snapshots_succeeded + snapshots_partial + snapshots_failed + snapshots_cancelled),
  constraint crawl_bytes_within_limit check (max_bytes <= 0 or bytes <= max_bytes),
  constraint crawl_urls_within_limit check (max_urls = 0 or snapshots_total <= max_urls)
) with (fillfactor = 50);
comment on table holdfast.crawl is 'Seeds, limits and options. Its counters are exact in every transaction.';
comment on column holdfast.crawl.id is
  'UUID version 7, chosen by the client, so that adding can be repeated.';
comment on column holdfast.crawl.label is 'Name for users.';
comment on column holdfast.crawl.notes is 'Free text.';
comment on column holdfast.crawl.tags is 'Tags that each snapshot of the crawl gets.';
comment on column holdfast.crawl.persona is
  'Persona of the pages. Empty: the one of the hosts of the seeds, if any; none: without.';
comment on column holdfast.crawl.plugins is 'Plugins to run; empty: all that are enabled.';
comment on column holdfast.crawl.options is 'Options of hooks ("WGET_TIMEOUT": "30"), fixed when the crawl is added.';
comment on column holdfast.crawl.max_depth is 'Greatest number of links between a seed and a page.';
comment on column holdfast.crawl.max_urls is 'Most snapshots; 0: no limit.';
comment on column holdfast.crawl.max_bytes is
  'Limit for the bytes of all snapshots; 0: no limit. Pages above the limit are not kept.';
comment on column holdfast.crawl.max_snapshot_bytes is 'Most bytes of a snapshot; 0: no limit.';
comment on column holdfast.crawl.max_time is 'Time limit from the start, without pauses; 0: no limit.';
comment on column holdfast.crawl.max_parallel is
  'Most snapshots at once in the whole cluster; NULL: no limit.';
comment on column holdfast.crawl.priority is 'Higher goes first.';
comment on column holdfast.crawl.scope is
  'URLs that belong to the crawl: {hosts, domains, prefixes: any of these; allow, deny: patterns; schemes}. See '
  'scope_refusal().';
comment on column holdfast.crawl.host_delay is 'min_delay of hosts that have none of their own.';
comment on column holdfast.crawl.host_parallel is
  'max_parallel of hosts that have none of their own; NULL: no limit.';
comment on column holdfast.crawl.robots is
  'Pages that robots.txt forbids are refused, and Crawl-delay is kept.';
comment on column holdfast.crawl."full" is
  'Hooks run also on pages whose files have not changed since their last capture.';
comment on column holdfast.crawl.only_new is 'URLs that the collection has already are left out.';
comment on column holdfast.crawl.max_age is
  'With only_new: older snapshots do not count; NULL: all count.';
comment on column holdfast.crawl.only_complete is
  'With only_new: incomplete snapshots do not count (add --update).';
comment on column holdfast.crawl.revisit is
  'With only_new: the seeds are captured in any case; only links must be new (crawls of watches).';
comment on column holdfast.crawl.wanted is
  'Plugins whose results make a page complete (only_complete). Empty: the outcome of the snapshot decides.';
comment on column holdfast.crawl.overwrite is 'A sealed page replaces older snapshots of its URL (add --overwrite).';
comment on column holdfast.crawl.retry_of is 'Crawl that this one retries. No foreign key: it may be removed.';
comment on column holdfast.crawl.keep_until is 'Time after which the crawl and its files are removed; NULL: kept.';
comment on column holdfast.crawl.created_by is 'Name of the user, token, database login or schedule that added the crawl.';
comment on column holdfast.crawl.first_url is 'First seed, to recognise the crawl.';
comment on column holdfast.crawl.created_at is 'Time at which the crawl was added.';
comment on column holdfast.crawl.status is 'queued, started, paused or sealed (final).';
comment on column holdfast.crawl.event is
  'Transition that the last function made. If it does not lead to the new status, the change is recorded as direct.';
comment on column holdfast.crawl.retry_at is 'Time at which the seeds are expanded; NULL: done; 9999-01-01: parked.';
comment on column holdfast.crawl.reason is 'Reason for a delay, where it is not obvious.';
comment on column holdfast.crawl.owner_id is
  'Worker that expands the seeds. No foreign key: the check would lock process after crawl, against the lock order.';
comment on column holdfast.crawl.fence is
  'Grows with each claim; a write with an older fence changes nothing.';
comment on column holdfast.crawl.judged_to is
  'After a change of scope: checked up to this snapshot id; NULL: done.';
comment on column holdfast.crawl.seeds_total is 'Seeds given.';
comment on column holdfast.crawl.seeds_left is 'Seeds that are not snapshots yet.';
comment on column holdfast.crawl.urls_refused is 'URLs that the scope or only_new left out.';
comment on column holdfast.crawl.snapshots_total is 'Number of snapshots.';
comment on column holdfast.crawl.snapshots_open is 'Snapshots that are not sealed.';
comment on column holdfast.crawl.snapshots_excluded is 'Open snapshots outside the scope; cancelled at the end.';
comment on column holdfast.crawl.snapshots_succeeded is 'Sealed as succeeded.';
comment on column holdfast.crawl.snapshots_partial is 'Sealed as partial: some hooks failed.';
comment on column holdfast.crawl.snapshots_failed is 'Sealed as failed, refused or quarantined.';
comment on column holdfast.crawl.snapshots_cancelled is 'Sealed as cancelled.';
comment on column holdfast.crawl.bytes is 'Bytes of the sealed snapshots.';
comment on column holdfast.crawl.started_at is 'Time at which the first seeds were expanded.';
comment on column holdfast.crawl.deadline_at is 'Time at which max_time is over.';
comment on column holdfast.crawl.paused_at is 'Start of the pause.';
comment on column holdfast.crawl.resume_at is
  'Time that `resume --at` set, or NULL. The maintenance task `clock` does not change it.';
comment on column holdfast.crawl.stopping_at is
  'Start of the cancellation of its open snapshots, which goes batch by batch.';
comment on column holdfast.crawl.sealed_at is 'Time at which the last snapshot was sealed.';
comment on column holdfast.crawl.stop_reason is
  'Limit or command that ended the crawl early: max_urls, cancelled, ...';
comment on column holdfast.crawl.outcome is 'succeeded, partial, failed, empty or cancelled.';
comment on column holdfast.crawl.changed_by is 'User who paused, resumed or cancelled the crawl last.';
create index crawl_due on holdfast.crawl (retry_at) where owner_id is null and retry_at is not null;
comment on index holdfast.crawl_due is 'Crawls whose seeds are to be expanded.';
create index crawl_owned on holdfast.crawl (owner_id) where owner_id is not null;
comment on index holdfast.crawl_owned is 'Crawls that a worker expands.';
create index crawl_open on holdfast.crawl (created_at) where status <> 'sealed';
comment on index holdfast.crawl_open is 'Crawls that are not sealed.';
create index crawl_by_time on holdfast.crawl (created_at);
comment on index holdfast.crawl_by_time is 'The newest crawls.';
create index crawl_by_label on holdfast.crawl using hash (label) where label <> '';
comment on index holdfast.crawl_by_label is 'Crawls of a name, which may be long.';
create index crawl_expiring on holdfast.crawl (keep_until) where keep_until is not null;
comment on index holdfast.crawl_expiring is 'Crawls that retention removes.';

create table holdfast.crawl_seed (
  crawl_id uuid not null, position bigint not null,
  url text not null,
  depth integer not null default 0, title text not null default '',
  tags text[] not null default '{}', bookmarked_at timestamptz, notes text not null default '',
  constraint crawl_seed_pkey primary key (crawl_id, position),
  constraint crawl_seed_url_canonical check (holdfast.host_of(url) is not null),
  constraint crawl_seed_depth check (depth between 0 and 16)
);
comment on table holdfast.crawl_seed is
  'Seeds that are not snapshots yet. A row is deleted when it is expanded. No foreign key, see snapshot.crawl_id.';
comment on column holdfast.crawl_seed.crawl_id is 'Crawl of the seed.';
comment on column holdfast.crawl_seed.position is 'Position in the order in which the seeds were given.';
comment on column holdfast.crawl_seed.url is 'Canonical URL.';
comment on column holdfast.crawl_seed.depth is 'Depth of the snapshot; above 0 only in a crawl that retries another.';
comment on column holdfast.crawl_seed.title is 'Title given with the URL (bookmarks, feeds).';
comment on column holdfast.crawl_seed.tags is 'Tags given with the URL.';
comment on column holdfast.crawl_seed.bookmarked_at is 'See snapshot.bookmarked_at.';
comment on column holdfast.crawl_seed.notes is 'Notes of a bookmark.';

create table holdfast.crawl_queue (
  crawl_id uuid primary key references holdfast.crawl (id) on delete cascade,
  shuffle double precision not null default random(),
  priority integer not null default 0, max_parallel integer,
  plugins text[] not null default '{}', persona text not null default '',
  needs bigint not null generated always as (
    hash_array_extended(array_append(plugins, persona), 0)) stored,
  stop_at timestamptz, ready_at timestamptz,
  wakes bigint not null default 0
) with (fillfactor = 50);
comment on table holdfast.crawl_queue is
  'Started crawls as claims see them. A claim walks them from a random place, so that small crawls do '
  'not wait.';
comment on column holdfast.crawl_queue.crawl_id is 'The crawl.';
comment on column holdfast.crawl_queue.shuffle is 'Position in the walk.';
comment on column holdfast.crawl_queue.priority is 'Copy of crawl.priority. Above 0: first in seven claims of eight.';
comment on column holdfast.crawl_queue.max_parallel is
  'Copy of crawl.max_parallel; the lock on this row makes the count exact.';
comment on column holdfast.crawl_queue.plugins is
  'Plugins that the crawl names. Only workers that have announced all of them claim its pages.';
comment on column holdfast.crawl_queue.persona is
  'Copy of crawl.persona. Only workers that can use this persona (persona_lacks) claim its pages.';
comment on column holdfast.crawl_queue.needs is
  'Hash of plugins and persona: a worker can take either all crawls with one value, or none of them.';
comment on column holdfast.crawl_queue.stop_at is 'Copy of crawl.deadline_at: claims skip the crawl after this time.';
comment on column holdfast.crawl_queue.ready_at is
  'Claims skip this crawl until this time. NULL: the crawl has had no work yet. Claims move it later; new work moves '
  'it earlier.';
comment on column holdfast.crawl_queue.wakes is
  'Counts new work: a claim parks a crawl only if this has not changed.';
create index crawl_queue_walk on holdfast.crawl_queue (needs, shuffle) where ready_at is not null;
comment on index holdfast.crawl_queue_walk is 'The walk of a claim.';
create index crawl_queue_first on holdfast.crawl_queue (needs, priority)
  where ready_at is not null and priority > 0;
comment on index holdfast.crawl_queue_first is 'Crawls that go first.';
create index crawl_queue_next on holdfast.crawl_queue (needs, ready_at) where ready_at is not null;
comment on index holdfast.crawl_queue_next is 'Next time at which an idle worker should claim.';

create table holdfast.crawl_lane (
  crawl_id uuid not null references holdfast.crawl (id) on delete cascade,
  host text not null,
  next_at timestamptz not null default clock_timestamp(),
  low_at timestamptz not null default '-infinity',
  wants_room boolean not null default false,
  constraint crawl_lane_pkey primary key (crawl_id, host)
) with (fillfactor = 70);
comment on table holdfast.crawl_lane is
  'A crawl''s pages of one host: when a claim looks there next.';
comment on column holdfast.crawl_lane.crawl_id is 'The crawl.';
comment on column holdfast.crawl_lane.host is 'The host.';
comment on column holdfast.crawl_lane.next_at is
  'Earliest time of the next claim; infinity: no page waits, or the host is paused.';
comment on column holdfast.crawl_lane.low_at is 'No unclaimed page of the lane is due before this.';
comment on column holdfast.crawl_lane.wants_room is
  'The host was full: the next page that ends wakes this lane.';
create index crawl_lane_next on holdfast.crawl_lane (crawl_id, next_at);
comment on index holdfast.crawl_lane_next is 'Lanes of a crawl that are due.';
create index crawl_lane_by_host on holdfast.crawl_lane (host);
comment on index holdfast.crawl_lane_by_host is 'Crawls that have pages of a host.';

create table holdfast.crawl_page_stale (
  crawl_id uuid primary key,
  since timestamptz not null default clock_timestamp()
);
comment on table holdfast.crawl_page_stale is
  'Crawls whose crawls/<id>/index.html in the archive must be written again, or deleted if the crawl was removed.';
comment on column holdfast.crawl_page_stale.crawl_id is 'Crawl of the page. No foreign key: it may be removed first.';
comment on column holdfast.crawl_page_stale.since is 'Time at which the page last became stale.';

create table holdfast.schedule (
  id uuid primary key,
  label text not null default '',
  every text not null, time_zone text not null default 'UTC',
  urls text[] not null,
  crawl jsonb not null default '{}',
  enabled boolean not null default true,
  next_run_at timestamptz, last_run_at timestamptz,
  last_crawl_id uuid references holdfast.crawl (id) on delete set null,
  runs bigint not null default 0, skipped bigint not null default 0,
  note text,
  watch jsonb, pace interval, state jsonb not null default '{}',
  created_at timestamptz not null default clock_timestamp(),
  constraint schedule_has_urls check (cardinality(urls) > 0),
  constraint schedule_pace_is_of_watch check (pace is null or watch is not null)
);
comment on table holdfast.schedule is 'Crawls that are added again and again.';
comment on column holdfast.schedule.id is 'UUID version 7.';
comment on column holdfast.schedule.label is 'Name for users.';
comment on column holdfast.schedule.every is 'Cron expression or alias (hourly, daily, weekly, ...).';
comment on column holdfast.schedule.time_zone is 'Time zone of the expression.';
comment on column holdfast.schedule.urls is 'Seeds.';
comment on column holdfast.schedule.crawl is 'Arguments of the crawls, as for crawl_add().';
comment on column holdfast.schedule.enabled is 'False: paused.';
comment on column holdfast.schedule.next_run_at is 'Next due time.';
comment on column holdfast.schedule.last_run_at is 'Last due time.';
comment on column holdfast.schedule.last_crawl_id is 'Crawl that the schedule added last.';
comment on column holdfast.schedule.runs is 'Number of crawls added.';
comment on column holdfast.schedule.skipped is 'Number of due times at which the last crawl was still open.';
comment on column holdfast.schedule.note is 'Result of the last run, or the reason for its failure, for users.';
comment on column holdfast.schedule.watch is
  'Condition of a watch: {when, terms, select, ignore, notify}, see watch_set(). NULL: the schedule has none.';
comment on column holdfast.schedule.pace is
  'Present interval of a watch that adapts it between two bounds. NULL: the interval does not adapt.';
comment on column holdfast.schedule.state is
  'Title, text and numbers of the last capture of a watch, see watch_judge().';
comment on column holdfast.schedule.created_at is 'Time at which the schedule was created.';
create index schedule_due on holdfast.schedule (next_run_at) where enabled;
comment on index holdfast.schedule_due is 'Schedules that are due.';
create index schedule_by_crawl on holdfast.schedule (last_crawl_id);
comment on index holdfast.schedule_by_crawl is 'The schedule of a crawl that is sealed or removed.';
