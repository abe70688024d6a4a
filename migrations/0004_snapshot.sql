-- Snapshots, split by how often a row is written. `snapshot` has the request and is written once. The slim
-- `snapshot_queue` has open snapshots and is all that a claim writes. `snapshot_sealed` has the end and is
-- written once. Primary keys end in crawl_id, so that the tables can be distributed by crawl.
--
-- The tables that only grow are partitioned by crawl_id, that is by the month of the crawl. Ids without a
-- month are in <table>_other, whose foreign keys all partitions get: functions/76_partition.sql.

create table holdfast.snapshot (
  id uuid not null, crawl_id uuid not null,
  url text not null, url_hash bytea not null,
  host text not null generated always as (holdfast.host_of(url)) stored,
  depth integer not null default 0,
  parent_id uuid, found_on text,
  title text not null default '',
  tags text[] not null default '{}',
  created_at timestamptz not null default clock_timestamp(),
  bookmarked_at timestamptz, source text,
  given_title text, notes text not null default '',
  resume_at timestamptz,
  constraint snapshot_pkey primary key (id, crawl_id),
  constraint snapshot_url_once_per_crawl unique (url_hash, crawl_id),
  constraint snapshot_url_hash check (url_hash = sha256(convert_to(url, 'UTF8'))),
  constraint snapshot_depth check (depth between 0 and 16),
  constraint snapshot_given_title check (given_title <> ''),
  constraint snapshot_found_on_or_parent check (found_on is null or parent_id is null)
) partition by range (crawl_id);
create table holdfast.snapshot_other partition of holdfast.snapshot default;
comment on table holdfast.snapshot is
  'A URL to be archived once for one crawl. Written once, but for titles, tags, notes and resume_at. See '
  'v_snapshot.';
comment on column holdfast.snapshot.id is 'UUID version 7.';
comment on column holdfast.snapshot.crawl_id is
  'Crawl of the snapshot. No foreign key: with keys on seeds, snapshots and queue, adding a URL takes 44 us instead '
  'of 26.';
comment on column holdfast.snapshot.url is 'Canonical URL.';
comment on column holdfast.snapshot.url_hash is
  'SHA-256 of the URL: a URL can be longer than an index entry.';
comment on column holdfast.snapshot.host is 'Host of the URL.';
comment on column holdfast.snapshot.depth is 'Number of links between the seed and this page.';
comment on column holdfast.snapshot.parent_id is
  'Snapshot in which the URL was found. No foreign key: snapshot_remove() clears this column.';
comment on column holdfast.snapshot.found_on is
  'URL of the page on which this URL was found, once that snapshot is removed.';
comment on column holdfast.snapshot.title is 'Title known before the page was archived (bookmark, link text).';
comment on column holdfast.snapshot.tags is 'Tags of the crawl, given with the URL, found by hooks, and added since.';
comment on column holdfast.snapshot.created_at is 'Time at which the URL was added or found.';
comment on column holdfast.snapshot.bookmarked_at is
  'Time of the bookmark, from the import, feed or hook; NULL: unknown.';
comment on column holdfast.snapshot.source is
  'Origin of an imported snapshot: archivebox:1700000000.5; NULL: archived here.';
comment on column holdfast.snapshot.given_title is
  'Title that a user set (holdfast edit); NULL: the title of the page is shown.';
comment on column holdfast.snapshot.notes is 'Notes of users.';
comment on column holdfast.snapshot.resume_at is
  'Time that `resume --at` set, or NULL. The maintenance task `clock` does not change it.';
create index snapshot_of_crawl on holdfast.snapshot (crawl_id, id);
comment on index holdfast.snapshot_of_crawl is 'Snapshots of a crawl in their order, page by page.';
comment on index holdfast.snapshot_url_once_per_crawl is 'Also finds the snapshots of a URL in other crawls.';
create index snapshot_by_parent on holdfast.snapshot (parent_id) where parent_id is not null;
comment on index holdfast.snapshot_by_parent is 'Snapshots found on a page that is removed.';
create index snapshot_by_tag on holdfast.snapshot using gin (tags) where tags <> '{}';
comment on index holdfast.snapshot_by_tag is 'Snapshots with a tag. Costs nothing where there is none.';

create table holdfast.snapshot_queue (
  snapshot_id uuid not null, crawl_id uuid not null,
  host text not null,
  status text not null default 'queued', event text,
  excluded boolean not null default false,
  retry_at timestamptz not null default clock_timestamp(),
  reason text, owner_id uuid,
  fence bigint not null default 0,
  claimed_at timestamptz, due_at timestamptz,
  attempts integer not null default 0, lapses integer not null default 0,
  constraint snapshot_queue_pkey primary key (snapshot_id, crawl_id),
  constraint snapshot_queue_status check (status in ('queued', 'started', 'paused')),
  constraint snapshot_queue_started_has_owner check ((status = 'started') = (owner_id is not null)),
  constraint snapshot_queue_owner_has_claim check ((owner_id is null) = (claimed_at is null)),
  constraint snapshot_queue_owner_has_place check ((owner_id is null) = (due_at is null)),
  constraint snapshot_queue_paused_is_parked check (status <> 'paused' or retry_at = '9999-01-01T00:00:00Z'),
  constraint snapshot_queue_excluded_is_paused check (not excluded or status = 'paused'),
  constraint snapshot_queue_numbers check (least(fence, attempts, lapses) >= 0)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 5000,
  autovacuum_vacuum_cost_delay = 0);
comment on table holdfast.snapshot_queue is
  'Open snapshots. A row is deleted when its snapshot is sealed. No foreign key to snapshot, see snapshot.crawl_id.';
comment on column holdfast.snapshot_queue.snapshot_id is 'The snapshot.';
comment on column holdfast.snapshot_queue.crawl_id is 'Crawl of the snapshot.';
comment on column holdfast.snapshot_queue.host is 'Host of the URL.';
comment on column holdfast.snapshot_queue.status is 'queued, started (claimed) or paused.';
comment on column holdfast.snapshot_queue.event is 'See crawl.event.';
comment on column holdfast.snapshot_queue.excluded is 'Parked outside the scope of its crawl.';
comment on column holdfast.snapshot_queue.retry_at is
  'Due time. While the row has an owner: end of the owner''s lease as of the claim or the last heartbeat. '
  '9999-01-01: parked.';
comment on column holdfast.snapshot_queue.reason is 'Reason for waiting: an error, a lapsed worker, a stopped worker.';
comment on column holdfast.snapshot_queue.owner_id is
  'The worker. No foreign key: a claim holds the process row.';
comment on column holdfast.snapshot_queue.fence is 'Grows with each claim; older fences cannot write.';
comment on column holdfast.snapshot_queue.claimed_at is 'Time of the claim.';
comment on column holdfast.snapshot_queue.due_at is
  'retry_at before the claim. A release restores it, so that the row keeps its position.';
comment on column holdfast.snapshot_queue.attempts is 'Attempts spent, those of stopped workers not counted.';
comment on column holdfast.snapshot_queue.lapses is 'Number of workers that lapsed while they owned the row.';
create index snapshot_queue_due on holdfast.snapshot_queue (crawl_id, host, retry_at) where owner_id is null;
comment on index holdfast.snapshot_queue_due is 'Pages that a claim takes from a lane of a crawl.';
create index snapshot_queue_owned on holdfast.snapshot_queue (owner_id) where owner_id is not null;
comment on index holdfast.snapshot_queue_owned is 'Pages that a worker owns.';
-- Not by owner_id: the planner would use such an index for the pages of one worker, and read those of all.
create index snapshot_queue_host_held on holdfast.snapshot_queue (host) where claimed_at is not null;
comment on index holdfast.snapshot_queue_host_held is 'Pages of a host that are being worked on.';
-- The condition is always true. It keeps the planner from using the index for a claim, whose queries do not
-- have it.
create index snapshot_queue_by_time on holdfast.snapshot_queue (retry_at) where status <> '';
comment on index holdfast.snapshot_queue_by_time is 'Pages by due time, for users. Costs a claim 3 us a row.';

create table holdfast.snapshot_sealed (
  snapshot_id uuid not null, crawl_id uuid not null,
  outcome text not null, reason text,
  fence bigint not null, owner_id uuid,
  directory text, manifest_sha256 text,
  bytes bigint not null default 0, files bigint not null default 0,
  title text not null default '',
  facts jsonb not null default '{}',
  attempts integer not null default 0, lapses integer not null default 0,
  started_at timestamptz,
  sealed_at timestamptz not null default clock_timestamp(),
  constraint snapshot_sealed_pkey primary key (snapshot_id, crawl_id),
  constraint snapshot_sealed_outcome check (
    outcome in ('succeeded', 'partial', 'failed', 'refused', 'quarantined', 'cancelled')),
  constraint snapshot_sealed_has_files check (
    outcome not in ('succeeded', 'partial') or (directory is not null and manifest_sha256 is not null)),
  constraint snapshot_sealed_has_reason check (
    outcome not in ('refused', 'quarantined', 'cancelled') or reason is not null),
  constraint snapshot_sealed_facts check (holdfast.is_facts(facts)),
  constraint snapshot_sealed_error_is_failed check (
    outcome not in ('succeeded', 'partial') or holdfast.fact_integer(facts, 'http_status') < 400),
  constraint snapshot_sealed_directory check (
    directory is null or holdfast.is_attempt_directory(directory, snapshot_id, fence)),
  constraint snapshot_sealed_numbers check (least(fence, bytes, files, attempts, lapses) >= 0)
) partition by range (crawl_id);
create table holdfast.snapshot_sealed_other partition of holdfast.snapshot_sealed (
  constraint snapshot_sealed_snapshot foreign key (snapshot_id, crawl_id)
    references holdfast.snapshot_other (id, crawl_id) on delete cascade
) default;
comment on table holdfast.snapshot_sealed is
  'The end of each snapshot. A row never changes: inserting it is the commit of the page.';
comment on column holdfast.snapshot_sealed.snapshot_id is 'The snapshot.';
comment on column holdfast.snapshot_sealed.crawl_id is 'Crawl of the snapshot.';
comment on column holdfast.snapshot_sealed.outcome is
  'succeeded; partial (some hooks failed); failed; refused (URL not allowed); quarantined (workers '
  'lapsed); cancelled.';
comment on column holdfast.snapshot_sealed.reason is 'A sentence, where the outcome needs one.';
comment on column holdfast.snapshot_sealed.fence is 'The attempt that counts.';
comment on column holdfast.snapshot_sealed.owner_id is 'The worker. No foreign key: processes are trimmed.';
comment on column holdfast.snapshot_sealed.directory is
  '<yyyy>/<mm>/<host>/<id>/a<fence> in the archive root.';
comment on column holdfast.snapshot_sealed.manifest_sha256 is 'SHA-256 of manifest-sha256.txt there.';
comment on column holdfast.snapshot_sealed.bytes is 'Bytes of all files.';
comment on column holdfast.snapshot_sealed.files is 'Number of files.';
comment on column holdfast.snapshot_sealed.title is 'Title found on the page.';
comment on column holdfast.snapshot_sealed.facts is
  'All else that is known of the page: {name: value}, from hooks and from its worker. v_snapshot has a column '
  'for each fact that Holdfast uses.';
comment on column holdfast.snapshot_sealed.attempts is 'Attempts spent.';
comment on column holdfast.snapshot_sealed.lapses is 'Number of workers that lapsed while they owned the page.';
comment on column holdfast.snapshot_sealed.started_at is
  'Time at which the sealed attempt was claimed; NULL: never claimed.';
comment on column holdfast.snapshot_sealed.sealed_at is 'Time of the seal.';
create index snapshot_sealed_by_crawl on holdfast.snapshot_sealed (crawl_id, sealed_at);
comment on index holdfast.snapshot_sealed_by_crawl is 'Latest seals of a crawl.';
create index snapshot_sealed_by_time on holdfast.snapshot_sealed (sealed_at);
comment on index holdfast.snapshot_sealed_by_time is 'Latest seals: pages, v_status, throughput.';
create index snapshot_sealed_incomplete on holdfast.snapshot_sealed (sealed_at)
  where holdfast.fact_integer(facts, 'resources_missing') > 0;
comment on index holdfast.snapshot_sealed_incomplete is 'Pages whose record lacks something.';
create index snapshot_sealed_unusual on holdfast.snapshot_sealed (outcome, snapshot_id) where outcome <> 'succeeded';
comment on index holdfast.snapshot_sealed_unusual is 'The newest snapshots with an outcome.';

create table holdfast.attempt (
  snapshot_id uuid not null, crawl_id uuid not null, fence bigint not null,
  process_id uuid not null, claimed_at timestamptz not null,
  ended_at timestamptz not null default clock_timestamp(),
  ending text not null, reason text,
  hooks text[] not null default '{}',
  constraint attempt_pkey primary key (snapshot_id, crawl_id, fence),
  constraint attempt_ending check (
    ending in ('released', 'worker_error', 'interrupted', 'lapsed', 'declined', 'cancelled'))
) partition by range (crawl_id);
create table holdfast.attempt_other partition of holdfast.attempt (
  constraint attempt_snapshot foreign key (snapshot_id, crawl_id)
    references holdfast.snapshot_other (id, crawl_id) on delete cascade
) default;
comment on table holdfast.attempt is 'Append-only: attempts that ended without a seal. v_attempt has all.';
comment on column holdfast.attempt.snapshot_id is 'The snapshot.';
comment on column holdfast.attempt.crawl_id is 'Crawl of the snapshot.';
comment on column holdfast.attempt.fence is 'Fence of the attempt.';
comment on column holdfast.attempt.process_id is 'The worker. No foreign key: processes are trimmed.';
comment on column holdfast.attempt.claimed_at is 'Time of the claim.';
comment on column holdfast.attempt.ended_at is 'Time of the end.';
comment on column holdfast.attempt.ending is
  'released (to retry); worker_error (for example: a full disk, an unreachable archive); interrupted (worker '
  'stopped); lapsed (lease expired); declined (not begun); cancelled.';
comment on column holdfast.attempt.reason is 'A sentence.';
comment on column holdfast.attempt.hooks is 'Hooks that ran when the worker lapsed, as plugin/hook.';
create index attempt_by_end on holdfast.attempt using brin (ended_at);
comment on index holdfast.attempt_by_end is
  'For trimming. Rows are in the order of time: BRIN costs nothing.';

create table holdfast.superseded (
  snapshot_id uuid not null, crawl_id uuid not null, by_id uuid not null,
  at timestamptz not null default clock_timestamp(),
  constraint superseded_pkey primary key (snapshot_id, crawl_id)
);
comment on table holdfast.superseded is
  'Replaced snapshots, which the task "retention" removes. No foreign keys: a removal must not fail a seal.';
comment on column holdfast.superseded.snapshot_id is 'The older one.';
comment on column holdfast.superseded.crawl_id is 'Crawl of the snapshot.';
comment on column holdfast.superseded.by_id is 'The newer one.';
comment on column holdfast.superseded.at is 'Time at which the newer snapshot was sealed.';

create table holdfast.purge (
  directory text primary key,
  requested_at timestamptz not null default clock_timestamp()
);
comment on table holdfast.purge is
  'Directories of removed snapshots. The process that deletes a directory deletes its row.';
comment on column holdfast.purge.directory is 'Relative to the archive root.';
comment on column holdfast.purge.requested_at is 'Time at which the snapshot was removed.';

create table holdfast.removed_page (
  like holdfast.snapshot_sealed including comments,
  removed_at timestamptz not null default now()
);
comment on table holdfast.removed_page is
  'Pages of removed months whose directories are not in purge yet. The table itself is empty: partition_remove() '
  'makes partitions of snapshot_sealed its children, and purge_fill() empties and drops them. No foreign keys: '
  'snapshot and crawl do not exist any more.';
comment on column holdfast.removed_page.removed_at is 'Time at which the month was removed.';

create type holdfast.finished_page as (
  snapshot uuid, crawl uuid, fence bigint,
  ending text, outcome text, reason text, delay_ms bigint, spend boolean,
  directory text, manifest text, bytes bigint, files bigint, title text, tags text[],
  links jsonb, results jsonb, captures jsonb, originals jsonb, facts jsonb, fingerprint jsonb
);
comment on type holdfast.finished_page is
  'A page that a worker has finished: one element of the argument of finish().';
