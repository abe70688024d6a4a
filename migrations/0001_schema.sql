-- Structure of a Holdfast collection. Numbered files never change once released; see README.md.
-- Every table and column carries a comment: `\d+ holdfast.snapshot_queue` in psql is the documentation.
--
-- The shape, and why: a snapshot's life is split by temperature. `snapshot` is written once and stays cold; the slim
-- `snapshot_queue` holds what is open and is all that a claim touches; sealing deletes the slim row and writes
-- `snapshot_sealed` once. Leases hang on the owner (`process.lease_until`), not on the rows, so that renewing them costs
-- one small update per node however much it holds. Views (v_snapshot, v_queue, ...) join the parts back together.
-- Primary keys end in crawl_id, so that the tables can be distributed by crawl without changing a key.

create schema if not exists holdfast;
comment on schema holdfast is 'Holdfast, a distributed web archive. Read the v_* views, call the functions; tables may change between releases.';

-- One collection --------------------------------------------------------------------------------------------------------

create table holdfast.collection (
  singleton boolean primary key default true,
  id uuid not null default gen_random_uuid(),
  created_at timestamptz not null default clock_timestamp(),
  constraint collection_is_one_row check (singleton)
);
comment on table holdfast.collection is 'The one row that names this collection; the archive root carries the same id in .holdfast-archive.';
comment on column holdfast.collection.singleton is 'Always true: there is one row.';
comment on column holdfast.collection.id is 'Identity of the collection; nodes refuse an archive root of another one.';
comment on column holdfast.collection.created_at is 'When the schema was created.';
insert into holdfast.collection default values;

-- Lifecycles as rows ----------------------------------------------------------------------------------------------------

create table holdfast.lifecycle_edge (
  lifecycle text not null,
  from_state text not null,
  event text not null,
  to_state text not null,
  why text not null,
  constraint lifecycle_edge_pkey primary key (lifecycle, from_state, event)
);
comment on table holdfast.lifecycle_edge is 'Every legal change of state. A trigger refuses any other with SQLSTATE HF001, whoever asks. lib/store/lifecycle.hpp holds the same rows; a test keeps them equal.';
comment on column holdfast.lifecycle_edge.lifecycle is 'crawl, snapshot, archive_result, binary, crawl_session or process.';
comment on column holdfast.lifecycle_edge.from_state is 'State before.';
comment on column holdfast.lifecycle_edge.event is 'What happens.';
comment on column holdfast.lifecycle_edge.to_state is 'State after.';
comment on column holdfast.lifecycle_edge.why is 'The sentence a log prints when the edge is taken.';
create index lifecycle_edge_by_states on holdfast.lifecycle_edge (lifecycle, from_state, to_state);

create table holdfast.event (
  id bigint generated always as identity primary key,
  at timestamptz not null default clock_timestamp(),
  lifecycle text not null,
  object_id uuid not null,
  crawl_id uuid,
  from_state text,
  event text not null,
  to_state text not null,
  process_id uuid,
  detail text
);
comment on table holdfast.event is 'Append-only record of every change of state, written in the transaction that makes it.';
comment on column holdfast.event.id is 'Order of recording.';
comment on column holdfast.event.at is 'When.';
comment on column holdfast.event.lifecycle is 'Which lifecycle.';
comment on column holdfast.event.object_id is 'The crawl, snapshot, binary or process.';
comment on column holdfast.event.crawl_id is 'The crawl it belongs to, if any.';
comment on column holdfast.event.from_state is 'State before; NULL when it came to be.';
comment on column holdfast.event.event is 'What happened: the event of the edge, or "direct" when a person changed the row by hand.';
comment on column holdfast.event.to_state is 'State after.';
comment on column holdfast.event.process_id is 'The process that did it, if one did.';
comment on column holdfast.event.detail is 'A sentence for people.';
create index event_by_object on holdfast.event (object_id, id);
create index event_by_time on holdfast.event (at);

-- Machines and processes ------------------------------------------------------------------------------------------------

create table holdfast.machine (
  id text primary key,
  hostname text not null,
  os text not null default '',
  architecture text not null default '',
  cpu_count integer not null default 0,
  memory_bytes bigint not null default 0,
  first_seen_at timestamptz not null default clock_timestamp(),
  last_seen_at timestamptz not null default clock_timestamp()
);
comment on table holdfast.machine is 'A host (or container) on which Holdfast has run.';
comment on column holdfast.machine.id is 'From /etc/machine-id, or a random id kept in the work directory.';
comment on column holdfast.machine.hostname is 'Name it gives itself.';
comment on column holdfast.machine.os is 'Operating system and kernel.';
comment on column holdfast.machine.architecture is 'Processor architecture.';
comment on column holdfast.machine.cpu_count is 'Processors available.';
comment on column holdfast.machine.memory_bytes is 'Memory.';
comment on column holdfast.machine.first_seen_at is 'First time a process joined from it.';
comment on column holdfast.machine.last_seen_at is 'Last time a process joined from it.';

create table holdfast.process (
  id uuid primary key,
  machine_id text not null references holdfast.machine (id),
  boot_id text not null,
  pid integer not null,
  start_ticks bigint not null,
  parent_id uuid references holdfast.process (id) on delete set null,
  process_type text not null,
  worker_type text not null default '',
  label text not null default '',
  version text not null default '',
  status text not null default 'running',
  started_at timestamptz not null default clock_timestamp(),
  beat_at timestamptz,
  lease_until timestamptz,
  draining boolean not null default false,
  request text,
  epoch bigint,
  slots integer not null default 0,
  stats jsonb not null default '{}',
  ended_at timestamptz,
  exit_code integer,
  exit_reason text,
  constraint process_status check (status in ('running', 'exited')),
  constraint process_type_known check (process_type in ('orchestrator', 'worker', 'server', 'add', 'cli')),
  constraint process_exited_has_end check ((status = 'exited') = (ended_at is not null)),
  constraint process_request_known check (request in ('drain', 'stop', 'leave')),
  constraint process_lease_has_beat check (lease_until is null or beat_at is not null)
);
alter table holdfast.process set (fillfactor = 50);
comment on table holdfast.process is 'Long-lived processes of Holdfast, past and present. What a running worker holds is covered by its lease_until; fences protect everything it writes.';
comment on column holdfast.process.id is 'One incarnation: a process that lost its lease starts a new one.';
comment on column holdfast.process.machine_id is 'Where it runs.';
comment on column holdfast.process.boot_id is 'Boot of that machine; with pid and start_ticks it excludes pid reuse.';
comment on column holdfast.process.pid is 'Operating system process id, in its own pid namespace.';
comment on column holdfast.process.start_ticks is 'Start time in clock ticks since boot (/proc/PID/stat field 22).';
comment on column holdfast.process.parent_id is 'The process that started it, if that is one of ours.';
comment on column holdfast.process.process_type is 'orchestrator (runner), worker (node), server, add, cli.';
comment on column holdfast.process.worker_type is 'For a worker: snapshot. For the runner: worker_runner (holds the gate) or runner_waiting.';
comment on column holdfast.process.label is 'For people: "worker on host pid 123".';
comment on column holdfast.process.version is 'Version of its program.';
comment on column holdfast.process.status is 'running or exited.';
comment on column holdfast.process.started_at is 'When it joined.';
comment on column holdfast.process.beat_at is 'Last beat.';
comment on column holdfast.process.lease_until is 'Until when its claims are covered. Past it, anybody may give its work to others.';
comment on column holdfast.process.draining is 'It finishes what it has and claims nothing more.';
comment on column holdfast.process.request is 'What it has been asked to do (drain, stop, leave); it sees this on its next beat or doorbell.';
comment on column holdfast.process.epoch is 'For the gate''s holder: grows with every new holder.';
comment on column holdfast.process.slots is 'How many snapshots it works on at once.';
comment on column holdfast.process.stats is 'What it said of itself on its last beat (held, free disk, why it does not claim).';
comment on column holdfast.process.ended_at is 'When it left or was given up.';
comment on column holdfast.process.exit_code is 'Exit code it announced.';
comment on column holdfast.process.exit_reason is 'Why it ended: "left", "lease lapsed", ...';
create unique index process_single_runner on holdfast.process (worker_type) where worker_type = 'worker_runner' and status = 'running';
comment on index holdfast.process_single_runner is 'The single-runner gate: one running worker_runner in the whole collection.';
create index process_running_by_lease on holdfast.process (status, lease_until) where status = 'running';
create index process_by_machine on holdfast.process (machine_id, status);

-- Crawls ----------------------------------------------------------------------------------------------------------------

create table holdfast.crawl (
  id uuid primary key,
  label text not null default '',
  notes text not null default '',
  tags text[] not null default '{}',
  persona text not null default 'Default',
  plugins text[] not null default '{}',
  options jsonb not null default '{}',
  max_depth integer not null default 0,
  max_urls bigint not null default 0,
  priority integer not null default 0,
  created_by text not null default '',
  first_url text not null default '',
  created_at timestamptz not null default clock_timestamp(),
  status text not null default 'queued',
  retry_at timestamptz default clock_timestamp(),
  reason text,
  owner_id uuid,
  fence bigint not null default 0,
  seeds_total bigint not null default 0,
  seeds_left bigint not null default 0,
  snapshots_total bigint not null default 0,
  snapshots_open bigint not null default 0,
  snapshots_succeeded bigint not null default 0,
  snapshots_partial bigint not null default 0,
  snapshots_failed bigint not null default 0,
  bytes bigint not null default 0,
  stop_reason text,
  outcome text,
  started_at timestamptz,
  sealed_at timestamptz,
  constraint crawl_status check (status in ('queued', 'started', 'paused', 'sealed')),
  constraint crawl_depth check (max_depth between 0 and 16),
  constraint crawl_max_urls check (max_urls >= 0),
  constraint crawl_options_object check (jsonb_typeof(options) = 'object'),
  constraint crawl_sealed_is_final check ((status = 'sealed') = (sealed_at is not null)),
  constraint crawl_sealed_has_outcome check ((status = 'sealed') = (outcome is not null)),
  constraint crawl_sealed_is_idle check (status <> 'sealed' or (owner_id is null and retry_at is null and snapshots_open = 0 and seeds_left = 0)),
  constraint crawl_paused_is_parked check (status <> 'paused' or (retry_at = '9999-01-01T00:00:00Z' and owner_id is null)),
  constraint crawl_open_adds_up check (snapshots_open >= 0 and seeds_left >= 0
    and snapshots_total = snapshots_open + snapshots_succeeded + snapshots_partial + snapshots_failed)
);
alter table holdfast.crawl set (fillfactor = 50);
comment on table holdfast.crawl is 'Seed URLs, limits and options. Its counters are kept by the transactions that change them; they never drift.';
comment on column holdfast.crawl.id is 'UUID version 7, chosen by whoever adds it, so that adding may be repeated.';
comment on column holdfast.crawl.label is 'Name for people.';
comment on column holdfast.crawl.notes is 'Free text.';
comment on column holdfast.crawl.tags is 'Given to each of its snapshots.';
comment on column holdfast.crawl.persona is 'Named set of cookies, profile and options.';
comment on column holdfast.crawl.plugins is 'Plugins to run; empty: all that are enabled.';
comment on column holdfast.crawl.options is 'Hook options ("WGET_TIMEOUT": "30"), frozen at creation.';
comment on column holdfast.crawl.max_depth is 'How many links away from a seed it goes.';
comment on column holdfast.crawl.max_urls is 'At most this many snapshots; 0: no cap.';
comment on column holdfast.crawl.priority is 'Higher goes first.';
comment on column holdfast.crawl.created_by is 'Operating system user who added it.';
comment on column holdfast.crawl.first_url is 'Its first seed, to tell crawls apart.';
comment on column holdfast.crawl.created_at is 'When it was added.';
comment on column holdfast.crawl.status is 'queued, started, paused or sealed (final).';
comment on column holdfast.crawl.retry_at is 'The scheduler''s signal: NULL idle; past: due, some node will expand its seeds; future: scheduled; 9999-01-01: parked (paused).';
comment on column holdfast.crawl.reason is 'Why it is not due now, when that is not obvious.';
comment on column holdfast.crawl.owner_id is 'The node that expands its seeds just now. No foreign key: its check would lock the process after the crawl, the wrong way round.';
comment on column holdfast.crawl.fence is 'Grows with each claim; a write with an old fence changes nothing.';
comment on column holdfast.crawl.seeds_total is 'Seeds it was given.';
comment on column holdfast.crawl.seeds_left is 'Seeds not yet turned into snapshots.';
comment on column holdfast.crawl.snapshots_total is 'Snapshots it has.';
comment on column holdfast.crawl.snapshots_open is 'Of these, not yet sealed.';
comment on column holdfast.crawl.snapshots_succeeded is 'Sealed with outcome succeeded.';
comment on column holdfast.crawl.snapshots_partial is 'Sealed with outcome partial: some hook failed, some succeeded.';
comment on column holdfast.crawl.snapshots_failed is 'Sealed with any other outcome.';
comment on column holdfast.crawl.bytes is 'Size of what its sealed snapshots hold.';
comment on column holdfast.crawl.stop_reason is 'Which limit cut it short, if one did: max_urls, cancelled.';
comment on column holdfast.crawl.outcome is 'succeeded, partial, failed, empty or cancelled.';
comment on column holdfast.crawl.started_at is 'When its first seeds were expanded.';
comment on column holdfast.crawl.sealed_at is 'When its last snapshot was sealed.';
create index crawl_due on holdfast.crawl (retry_at) where owner_id is null and retry_at is not null;
create index crawl_owned on holdfast.crawl (owner_id) where owner_id is not null;
create index crawl_open on holdfast.crawl (created_at) where status <> 'sealed';

create table holdfast.crawl_seed (
  crawl_id uuid not null references holdfast.crawl (id) on delete cascade,
  position bigint not null,
  url text not null,
  host text not null,
  title text not null default '',
  tags text[] not null default '{}',
  constraint crawl_seed_pkey primary key (crawl_id, position)
);
comment on table holdfast.crawl_seed is 'Seeds waiting to become snapshots; a row goes away when it is expanded.';
comment on column holdfast.crawl_seed.crawl_id is 'The crawl.';
comment on column holdfast.crawl_seed.position is 'Order in which they were given.';
comment on column holdfast.crawl_seed.url is 'Canonical URL.';
comment on column holdfast.crawl_seed.host is 'Its host.';
comment on column holdfast.crawl_seed.title is 'Title that came with it (bookmarks, feeds).';
comment on column holdfast.crawl_seed.tags is 'Tags that came with it.';

create table holdfast.crawl_queue (
  crawl_id uuid primary key references holdfast.crawl (id) on delete cascade,
  shuffle double precision not null default random(),
  ready_at timestamptz,
  wakes bigint not null default 0
);
alter table holdfast.crawl_queue set (fillfactor = 50);
comment on table holdfast.crawl_queue is 'Started crawls as claims see them: each claim walks them from a random place, so that a crawl of one URL does not wait behind one of a million.';
comment on column holdfast.crawl_queue.crawl_id is 'The crawl.';
comment on column holdfast.crawl_queue.shuffle is 'Its place in the walk.';
comment on column holdfast.crawl_queue.ready_at is 'No claim looks at it before this; NULL: nothing has been put into it yet. Claims that find nothing move it, by a minute at most; whoever adds work moves it back.';
comment on column holdfast.crawl_queue.wakes is 'Counts the moves back: a claim parks a crawl only if nobody woke it meanwhile.';
create index crawl_queue_walk on holdfast.crawl_queue (shuffle) where ready_at is not null;

-- Snapshots -------------------------------------------------------------------------------------------------------------

create table holdfast.snapshot (
  id uuid not null,
  crawl_id uuid not null references holdfast.crawl (id) on delete cascade,
  url text not null,
  url_hash bytea not null,
  host text not null,
  depth integer not null default 0,
  parent_id uuid,
  title text not null default '',
  tags text[] not null default '{}',
  created_at timestamptz not null default clock_timestamp(),
  constraint snapshot_pkey primary key (id, crawl_id),
  constraint snapshot_url_once_per_crawl unique (crawl_id, url_hash),
  constraint snapshot_url_hash check (url_hash = sha256(convert_to(url, 'UTF8'))),
  constraint snapshot_depth check (depth between 0 and 16)
);
comment on table holdfast.snapshot is 'One URL to be observed once for one crawl: what was asked for. Written once. See v_snapshot for the whole picture.';
comment on column holdfast.snapshot.id is 'UUID version 7.';
comment on column holdfast.snapshot.crawl_id is 'The crawl it belongs to.';
comment on column holdfast.snapshot.url is 'Canonical URL.';
comment on column holdfast.snapshot.url_hash is 'SHA-256 of the URL: URLs can be longer than an index entry.';
comment on column holdfast.snapshot.host is 'Host of the URL.';
comment on column holdfast.snapshot.depth is 'Links away from a seed.';
comment on column holdfast.snapshot.parent_id is 'Snapshot on whose page the URL was found.';
comment on column holdfast.snapshot.title is 'Title known before it was archived (bookmark, link text).';
comment on column holdfast.snapshot.tags is 'Tags of its crawl, and those given with the URL.';
comment on column holdfast.snapshot.created_at is 'When the URL was added or found.';

create table holdfast.snapshot_queue (
  snapshot_id uuid not null,
  crawl_id uuid not null,
  host text not null,
  status text not null default 'queued',
  retry_at timestamptz not null default clock_timestamp(),
  reason text,
  owner_id uuid references holdfast.process (id),
  fence bigint not null default 0,
  claimed_at timestamptz,
  started_at timestamptz,
  attempts integer not null default 0,
  owners_lost integer not null default 0,
  constraint snapshot_queue_pkey primary key (snapshot_id, crawl_id),
  constraint snapshot_queue_snapshot foreign key (snapshot_id, crawl_id) references holdfast.snapshot (id, crawl_id) on delete cascade,
  constraint snapshot_queue_status check (status in ('queued', 'started', 'paused')),
  constraint snapshot_queue_owner_has_claim check ((owner_id is null) = (claimed_at is null)),
  constraint snapshot_queue_started_has_owner check (status <> 'started' or (owner_id is not null and started_at is not null)),
  constraint snapshot_queue_paused_is_parked check (status <> 'paused' or (owner_id is null and retry_at = '9999-01-01T00:00:00Z'))
);
alter table holdfast.snapshot_queue set (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 5000,
  autovacuum_vacuum_cost_delay = 0);
comment on table holdfast.snapshot_queue is 'Snapshots that are not sealed: the only table a claim touches. A row leaves when its snapshot is sealed.';
comment on column holdfast.snapshot_queue.snapshot_id is 'The snapshot.';
comment on column holdfast.snapshot_queue.crawl_id is 'Its crawl.';
comment on column holdfast.snapshot_queue.host is 'Host of its URL.';
comment on column holdfast.snapshot_queue.status is 'queued, started or paused. An owner with status queued is getting ready.';
comment on column holdfast.snapshot_queue.retry_at is 'When it is due, if nobody owns it; 9999-01-01: parked (paused). While it is owned, its owner''s lease_until takes this place.';
comment on column holdfast.snapshot_queue.reason is 'Why it waits, when it has been put back: back-off, lost owner, interrupted.';
comment on column holdfast.snapshot_queue.owner_id is 'The node that works on it; NULL: nobody.';
comment on column holdfast.snapshot_queue.fence is 'Grows with each claim; a write that names an older one changes nothing. Names the attempt directory a<fence>.';
comment on column holdfast.snapshot_queue.claimed_at is 'When it was claimed.';
comment on column holdfast.snapshot_queue.started_at is 'When its first hook was about to run.';
comment on column holdfast.snapshot_queue.attempts is 'Attempts spent; work put back because a node left is not counted.';
comment on column holdfast.snapshot_queue.owners_lost is 'How many owners died while they held it; at three it is quarantined.';
create index snapshot_queue_due on holdfast.snapshot_queue (crawl_id, retry_at) where owner_id is null;
create index snapshot_queue_owned on holdfast.snapshot_queue (owner_id) where owner_id is not null;

create table holdfast.snapshot_sealed (
  snapshot_id uuid not null,
  crawl_id uuid not null,
  outcome text not null,
  reason text,
  fence bigint not null,
  owner_id uuid,
  directory text,
  manifest_sha256 text,
  bytes bigint not null default 0,
  files bigint not null default 0,
  title text not null default '',
  tags text[] not null default '{}',
  attempts integer not null default 0,
  owners_lost integer not null default 0,
  started_at timestamptz,
  sealed_at timestamptz not null default clock_timestamp(),
  constraint snapshot_sealed_pkey primary key (snapshot_id, crawl_id),
  constraint snapshot_sealed_snapshot foreign key (snapshot_id, crawl_id) references holdfast.snapshot (id, crawl_id) on delete cascade,
  constraint snapshot_sealed_outcome check (outcome in ('succeeded', 'partial', 'failed', 'refused', 'quarantined', 'cancelled')),
  constraint snapshot_sealed_has_files check ((outcome in ('succeeded', 'partial')) <= (directory is not null and manifest_sha256 is not null)),
  constraint snapshot_sealed_has_reason check (outcome not in ('refused', 'quarantined', 'cancelled') or reason is not null)
);
comment on table holdfast.snapshot_sealed is 'How each snapshot ended. Written once, never changed: the row that names the attempt directory is the commit.';
comment on column holdfast.snapshot_sealed.snapshot_id is 'The snapshot.';
comment on column holdfast.snapshot_sealed.crawl_id is 'Its crawl.';
comment on column holdfast.snapshot_sealed.outcome is 'succeeded; partial (some hooks failed); failed; refused (URL not allowed); quarantined (its owners kept dying); cancelled.';
comment on column holdfast.snapshot_sealed.reason is 'A sentence, where the outcome needs one.';
comment on column holdfast.snapshot_sealed.fence is 'The attempt that counts.';
comment on column holdfast.snapshot_sealed.owner_id is 'The node that sealed it.';
comment on column holdfast.snapshot_sealed.directory is 'Its files, relative to the archive root: <yyyy>/<mm>/<host>/<id>/a<fence>.';
comment on column holdfast.snapshot_sealed.manifest_sha256 is 'SHA-256 of manifest-sha256.txt in that directory.';
comment on column holdfast.snapshot_sealed.bytes is 'Size of the files.';
comment on column holdfast.snapshot_sealed.files is 'Number of files.';
comment on column holdfast.snapshot_sealed.title is 'Title found on the page.';
comment on column holdfast.snapshot_sealed.tags is 'Tags given and found.';
comment on column holdfast.snapshot_sealed.attempts is 'Attempts spent.';
comment on column holdfast.snapshot_sealed.owners_lost is 'Owners that died on the way.';
comment on column holdfast.snapshot_sealed.started_at is 'When the attempt that counts began.';
comment on column holdfast.snapshot_sealed.sealed_at is 'When it was sealed.';
create index snapshot_sealed_by_crawl on holdfast.snapshot_sealed (crawl_id, sealed_at);
create index snapshot_sealed_failures on holdfast.snapshot_sealed (sealed_at) where outcome <> 'succeeded';

create table holdfast.attempt (
  snapshot_id uuid not null,
  crawl_id uuid not null,
  fence bigint not null,
  process_id uuid not null,
  claimed_at timestamptz not null,
  started_at timestamptz,
  ended_at timestamptz not null default clock_timestamp(),
  ending text not null,
  reason text,
  constraint attempt_pkey primary key (snapshot_id, crawl_id, fence),
  constraint attempt_snapshot foreign key (snapshot_id, crawl_id) references holdfast.snapshot (id, crawl_id) on delete cascade,
  constraint attempt_ending check (ending in ('sealed', 'released', 'interrupted', 'lost', 'handed_back', 'cancelled'))
);
comment on table holdfast.attempt is 'Append-only: every ownership of a snapshot that has ended, and how.';
comment on column holdfast.attempt.snapshot_id is 'The snapshot.';
comment on column holdfast.attempt.crawl_id is 'Its crawl.';
comment on column holdfast.attempt.fence is 'Which attempt.';
comment on column holdfast.attempt.process_id is 'The node that held it.';
comment on column holdfast.attempt.claimed_at is 'When it was claimed.';
comment on column holdfast.attempt.started_at is 'When its first hook was about to run; NULL if it never came to that.';
comment on column holdfast.attempt.ended_at is 'When it ended.';
comment on column holdfast.attempt.ending is 'sealed; released (put back with a back-off); interrupted (its node was leaving); lost (its node died); handed_back (the claim''s answer was lost); cancelled.';
comment on column holdfast.attempt.reason is 'A sentence.';

create table holdfast.archive_result (
  snapshot_id uuid not null,
  crawl_id uuid not null,
  fence bigint not null,
  plugin text not null,
  hook_name text not null,
  status text not null default 'started',
  process_id uuid not null,
  pid integer,
  start_ticks bigint,
  timeout_ms bigint,
  background boolean not null default false,
  started_at timestamptz not null default clock_timestamp(),
  ended_at timestamptz,
  output text not null default '',
  error text not null default '',
  output_json jsonb,
  output_files jsonb not null default '[]',
  output_bytes bigint not null default 0,
  exit_code integer,
  exit_signal integer,
  wall_ms bigint,
  user_ms bigint,
  system_ms bigint,
  peak_memory_bytes bigint,
  read_bytes bigint,
  written_bytes bigint,
  constraint archive_result_pkey primary key (snapshot_id, crawl_id, fence, plugin, hook_name),
  constraint archive_result_snapshot foreign key (snapshot_id, crawl_id) references holdfast.snapshot (id, crawl_id) on delete cascade,
  constraint archive_result_status check (status in ('queued', 'started', 'succeeded', 'failed', 'skipped', 'noresults')),
  constraint archive_result_final_has_end check ((status in ('queued', 'started')) = (ended_at is null)),
  constraint archive_result_failure_has_error check (status <> 'failed' or error <> '')
);
comment on table holdfast.archive_result is 'What one hook did in one attempt at one snapshot. Exactly one row a hook and attempt.';
comment on column holdfast.archive_result.snapshot_id is 'The snapshot.';
comment on column holdfast.archive_result.crawl_id is 'Its crawl.';
comment on column holdfast.archive_result.fence is 'The attempt.';
comment on column holdfast.archive_result.plugin is 'The plugin: the name of its directory.';
comment on column holdfast.archive_result.hook_name is 'The hook: its file name without the last extension.';
comment on column holdfast.archive_result.status is 'started (running now), or final: succeeded, failed, skipped, noresults.';
comment on column holdfast.archive_result.process_id is 'The node that runs it.';
comment on column holdfast.archive_result.pid is 'Process id of the hook on that node''s machine.';
comment on column holdfast.archive_result.start_ticks is 'Start time of that process in clock ticks since boot.';
comment on column holdfast.archive_result.timeout_ms is 'Wall time it may take, in milliseconds.';
comment on column holdfast.archive_result.background is 'It runs beside the hooks after it, until the last of them has ended.';
comment on column holdfast.archive_result.started_at is 'When it was started.';
comment on column holdfast.archive_result.ended_at is 'When it and everything it started was gone.';
comment on column holdfast.archive_result.output is 'One line for people: a title, a file name, a count.';
comment on column holdfast.archive_result.error is 'Why it failed or was skipped.';
comment on column holdfast.archive_result.output_json is 'Structured output, if the hook gave any.';
comment on column holdfast.archive_result.output_files is 'Files it left: [{path, type, size, sha256}].';
comment on column holdfast.archive_result.output_bytes is 'Their size.';
comment on column holdfast.archive_result.exit_code is 'Exit status; NULL if a signal ended it.';
comment on column holdfast.archive_result.exit_signal is 'Signal that ended it.';
comment on column holdfast.archive_result.wall_ms is 'Time it took, in milliseconds.';
comment on column holdfast.archive_result.user_ms is 'CPU time in user mode of the whole process tree, in milliseconds.';
comment on column holdfast.archive_result.system_ms is 'CPU time in the kernel of the whole process tree, in milliseconds.';
comment on column holdfast.archive_result.peak_memory_bytes is 'Largest resident set of any one process of the tree.';
comment on column holdfast.archive_result.read_bytes is 'Bytes read from storage.';
comment on column holdfast.archive_result.written_bytes is 'Bytes written to storage.';
create index archive_result_running on holdfast.archive_result (process_id) where ended_at is null;

-- Binaries, hosts, schedules --------------------------------------------------------------------------------------------

create table holdfast.binary (
  machine_id text not null references holdfast.machine (id) on delete cascade,
  name text not null,
  status text not null default 'queued',
  retry_at timestamptz default clock_timestamp(),
  owner_id uuid references holdfast.process (id) on delete set null,
  fence bigint not null default 0,
  provider text not null default '',
  path text,
  version text,
  sha256 text,
  failures integer not null default 0,
  error text,
  checked_at timestamptz,
  constraint binary_pkey primary key (machine_id, name),
  constraint binary_status check (status in ('queued', 'installed')),
  constraint binary_installed_has_path check (status <> 'installed' or path is not null)
);
comment on table holdfast.binary is 'Programs that plugins need, as found on each machine.';
comment on column holdfast.binary.machine_id is 'The machine.';
comment on column holdfast.binary.name is 'Name of the program as the plugin asks for it.';
comment on column holdfast.binary.status is 'queued (wanted, not found yet) or installed.';
comment on column holdfast.binary.retry_at is 'When to look again.';
comment on column holdfast.binary.owner_id is 'Who looks just now.';
comment on column holdfast.binary.fence is 'Grows with each claim.';
comment on column holdfast.binary.provider is 'Where it came from: env, apt, npm, ...';
comment on column holdfast.binary.path is 'Absolute path.';
comment on column holdfast.binary.version is 'What it says its version is.';
comment on column holdfast.binary.sha256 is 'Digest of the file.';
comment on column holdfast.binary.failures is 'Times it was looked for in vain.';
comment on column holdfast.binary.error is 'What the last failure said.';
comment on column holdfast.binary.checked_at is 'When it was last looked at.';

create table holdfast.host (
  name text primary key,
  min_delay interval not null default '0',
  max_parallel integer,
  next_at timestamptz,
  backoff_until timestamptz,
  backoff_level integer not null default 0,
  paused boolean not null default false,
  reason text,
  updated_by text not null default '',
  updated_at timestamptz not null default clock_timestamp(),
  constraint host_delay check (min_delay >= '0'),
  constraint host_parallel check (max_parallel > 0)
);
comment on table holdfast.host is 'How a web site is to be treated, shared by all nodes. A host without a row has no limits of its own.';
comment on column holdfast.host.name is 'Host name.';
comment on column holdfast.host.min_delay is 'Least time between the starts of two snapshots of it.';
comment on column holdfast.host.max_parallel is 'Most snapshots of it at once, in the whole cluster; NULL: no cap.';
comment on column holdfast.host.next_at is 'No snapshot of it starts before this.';
comment on column holdfast.host.backoff_until is 'It asked us to slow down until then (429, 503, Retry-After).';
comment on column holdfast.host.backoff_level is 'How often in a row it did.';
comment on column holdfast.host.paused is 'Nothing of it is started until it is resumed.';
comment on column holdfast.host.reason is 'Why it is held back.';
comment on column holdfast.host.updated_by is 'Who changed it last.';
comment on column holdfast.host.updated_at is 'When.';

create table holdfast.schedule (
  id uuid primary key,
  label text not null default '',
  every text not null,
  time_zone text not null default 'UTC',
  urls text[] not null,
  crawl jsonb not null default '{}',
  enabled boolean not null default true,
  next_run_at timestamptz,
  last_run_at timestamptz,
  last_crawl_id uuid references holdfast.crawl (id) on delete set null,
  created_at timestamptz not null default clock_timestamp(),
  constraint schedule_has_urls check (cardinality(urls) > 0)
);
comment on table holdfast.schedule is 'Crawls to be added again and again.';
comment on column holdfast.schedule.id is 'UUID version 7.';
comment on column holdfast.schedule.label is 'Name for people.';
comment on column holdfast.schedule.every is 'Cron expression or alias (hourly, daily, weekly, ...).';
comment on column holdfast.schedule.time_zone is 'Zone in which the expression is read.';
comment on column holdfast.schedule.urls is 'Seeds.';
comment on column holdfast.schedule.crawl is 'Arguments of the crawl to add.';
comment on column holdfast.schedule.enabled is 'False: paused.';
comment on column holdfast.schedule.next_run_at is 'When it is due.';
comment on column holdfast.schedule.last_run_at is 'When it last was.';
comment on column holdfast.schedule.last_crawl_id is 'The crawl it made then.';
comment on column holdfast.schedule.created_at is 'When it was made.';
