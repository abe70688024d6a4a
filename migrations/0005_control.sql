-- Steering a collection while it runs: who may be crawled how fast, what belongs to a crawl, what stops it, who said so.

alter table holdfast.collection
  add column paused_at timestamptz,
  add column paused_by text;
comment on column holdfast.collection.paused_at is 'Since when nothing at all is claimed (holdfast pause --all); NULL: work goes on.';
comment on column holdfast.collection.paused_by is 'Who paused it, and why.';

alter table holdfast.process
  add column paused_at timestamptz,
  add column paused_by text;
comment on column holdfast.process.paused_at is 'Since when this node claims nothing, because somebody paused it.';
comment on column holdfast.process.paused_by is 'Who paused it, and why.';

-- Crawls ----------------------------------------------------------------------------------------------------------------

alter table holdfast.crawl
  add column max_bytes bigint not null default 0 constraint crawl_max_bytes check (max_bytes >= 0),
  add column max_time interval not null default '0' constraint crawl_max_time check (max_time >= '0'),
  add column max_parallel integer constraint crawl_max_parallel check (max_parallel > 0),
  add column deadline_at timestamptz,
  add column scope jsonb not null default '{}' constraint crawl_scope_object check (jsonb_typeof(scope) = 'object'),
  add column judged_to bytea,
  add column host_delay interval not null default '0' constraint crawl_host_delay check (host_delay >= '0'),
  add column host_parallel integer constraint crawl_host_parallel check (host_parallel > 0),
  add column only_new boolean not null default false,
  add column only_new_age interval,
  add column retry_of uuid,
  add column keep_until timestamptz,
  add column urls_refused bigint not null default 0,
  add column snapshots_excluded bigint not null default 0,
  add column paused_at timestamptz,
  add column stopping_at timestamptz,
  add column changed_by text,
  add constraint crawl_bytes_within_limit check (max_bytes <= 0 or bytes <= max_bytes),
  add constraint crawl_urls_within_limit check (max_urls = 0 or snapshots_total <= max_urls);
comment on column holdfast.crawl.max_bytes is 'Its snapshots may hold this much together; 0: no cap. A page that would go beyond is not kept.';
comment on column holdfast.crawl.max_time is 'How long it may take from its start, pauses not counted; 0: no limit.';
comment on column holdfast.crawl.max_parallel is 'Most of its snapshots at once, in the whole cluster; NULL: no cap.';
comment on column holdfast.crawl.deadline_at is 'When max_time is over.';
comment on column holdfast.crawl.scope is 'What belongs to it: {hosts, domains, prefixes: any of these; allow, deny: patterns; schemes}. See scope_refusal().';
comment on column holdfast.crawl.judged_to is 'Its scope was changed and its open snapshots are being judged again, in the order of url_hash, up to here; NULL: all are.';
comment on column holdfast.crawl.host_delay is 'min_delay for web sites that it meets and that have no row in holdfast.host yet.';
comment on column holdfast.crawl.host_parallel is 'max_parallel for these; NULL: no cap.';
comment on column holdfast.crawl.only_new is 'URLs that the collection holds already are left out.';
comment on column holdfast.crawl.only_new_age is 'With only_new: a snapshot older than this does not count; NULL: any does.';
comment on column holdfast.crawl.retry_of is 'The crawl whose failures it tries again. No foreign key: that one may be removed.';
comment on column holdfast.crawl.keep_until is 'Removed, with its files, after this; NULL: kept.';
comment on column holdfast.crawl.urls_refused is 'URLs given or found that its scope or only_new left out.';
comment on column holdfast.crawl.snapshots_excluded is 'Open snapshots that wait outside its scope; sealed as cancelled once nothing else is open.';
comment on column holdfast.crawl.paused_at is 'Since when it is paused.';
comment on column holdfast.crawl.stopping_at is 'Since when it is being stopped: what is open is sealed as cancelled, batch by batch.';
comment on column holdfast.crawl.changed_by is 'Who paused, resumed or stopped it last.';
create index crawl_expiring on holdfast.crawl (keep_until) where keep_until is not null;

alter table holdfast.crawl_seed add column depth integer not null default 0 constraint crawl_seed_depth check (depth between 0 and 16);
comment on column holdfast.crawl_seed.depth is 'Depth of the snapshot it becomes: more than 0 only when the failures of an earlier crawl are tried again.';

alter table holdfast.crawl_queue
  add column priority integer not null default 0,
  add column max_parallel integer,
  add column stop_at timestamptz;
comment on column holdfast.crawl_queue.priority is 'As in crawl: above 0 it goes first in seven claims of eight, below 0 last.';
comment on column holdfast.crawl_queue.max_parallel is 'As in crawl; the lock on this row makes the count exact.';
comment on column holdfast.crawl_queue.stop_at is 'As crawl.deadline_at: nothing is claimed after it.';
create index crawl_queue_first on holdfast.crawl_queue (priority) where ready_at is not null and priority > 0;
create index crawl_queue_next on holdfast.crawl_queue (ready_at) where ready_at is not null;
comment on index holdfast.crawl_queue_next is 'When an idle node should look again.';

create function holdfast.crawl_enqueue() returns trigger language plpgsql as $$
-- Claims see a crawl by its row in crawl_queue: it has one while it is started and neither being stopped nor judged again,
-- whoever changes it and how.
begin
  if new.status = 'started' and new.stopping_at is null and new.judged_to is null then
    insert into holdfast.crawl_queue as q (crawl_id, ready_at, priority, max_parallel, stop_at)
      values (new.id, case when new.snapshots_open > 0 then clock_timestamp() end, new.priority, new.max_parallel, new.deadline_at)
      on conflict (crawl_id) do update set priority = excluded.priority, max_parallel = excluded.max_parallel, stop_at = excluded.stop_at;
    if old.status <> 'started' or old.stopping_at is not null or old.judged_to is not null then perform holdfast.ring(); end if;
  else
    delete from holdfast.crawl_queue where crawl_id = new.id;
  end if;
  return null;
end $$;
comment on function holdfast.crawl_enqueue is 'Keeps crawl_queue in step with the crawl.';
create trigger crawl_enqueue after update of status, stopping_at, judged_to, priority, max_parallel, deadline_at on holdfast.crawl
  for each row when ((old.status, old.stopping_at, old.judged_to, old.priority, old.max_parallel, old.deadline_at)
    is distinct from (new.status, new.stopping_at, new.judged_to, new.priority, new.max_parallel, new.deadline_at))
  execute function holdfast.crawl_enqueue();

-- Politeness ------------------------------------------------------------------------------------------------------------
-- Rows of hosts with limits are claimed by lane (crawl, host), never in the order of their due times: a host that has to wait
-- costs one lane, not a scan over its rows.

alter table holdfast.snapshot_queue
  add column lane boolean not null default false,
  add column excluded boolean not null default false,
  add constraint snapshot_queue_excluded_is_paused check (not excluded or status = 'paused');
comment on column holdfast.snapshot_queue.lane is 'Its host has limits (a row in holdfast.host), so it is claimed through holdfast.crawl_lane.';
comment on column holdfast.snapshot_queue.excluded is 'Parked because it is outside its crawl''s scope; it comes back if the scope is widened.';
drop index holdfast.snapshot_queue_due;
create index snapshot_queue_due on holdfast.snapshot_queue (crawl_id, retry_at) where owner_id is null and not lane;
create index snapshot_queue_lane_due on holdfast.snapshot_queue (crawl_id, host, retry_at) where owner_id is null and lane;
create index snapshot_queue_lane_held on holdfast.snapshot_queue (host) where owner_id is not null and lane;

create table holdfast.crawl_lane (
  crawl_id uuid not null,
  host text not null,
  next_at timestamptz not null default clock_timestamp(),
  wants_room boolean not null default false,
  constraint crawl_lane_pkey primary key (crawl_id, host)
);
alter table holdfast.crawl_lane set (fillfactor = 70);
comment on table holdfast.crawl_lane is 'One row for each crawl and each host with limits in it: when a claim should look there next.';
comment on column holdfast.crawl_lane.crawl_id is 'The crawl. No foreign key: its check would make a claim wait for whoever has locked the crawl.';
comment on column holdfast.crawl_lane.host is 'The host.';
comment on column holdfast.crawl_lane.next_at is 'Not before this; infinity: nothing waits there, or the host is paused.';
comment on column holdfast.crawl_lane.wants_room is 'The host has as many at once as it may: whoever ends one looks here.';
create function holdfast.crawl_lanes_go() returns trigger language plpgsql as $$
begin
  delete from holdfast.crawl_lane where crawl_id = old.id;
  return null;
end $$;
comment on function holdfast.crawl_lanes_go is 'In place of a foreign key.';
create trigger crawl_lanes_go after delete on holdfast.crawl for each row execute function holdfast.crawl_lanes_go();
create index crawl_lane_next on holdfast.crawl_lane (crawl_id, next_at);
create index crawl_lane_by_host on holdfast.crawl_lane (host);

-- Who said so -----------------------------------------------------------------------------------------------------------

create table holdfast.control (
  id bigint generated always as identity primary key,
  at timestamptz not null default clock_timestamp(),
  action text not null,
  kind text not null,
  target text not null,
  crawl_id uuid,
  by_whom text not null default '',
  detail text,
  held bigint not null default 0,
  constraint control_kind check (kind in ('crawl', 'snapshot', 'host', 'node', 'all'))
);
comment on table holdfast.control is 'Append-only: every order given to the collection, written by the transaction in which it took effect.';
comment on column holdfast.control.id is 'Order of recording.';
comment on column holdfast.control.at is 'When it took effect: from here on no node may begin what it forbids.';
comment on column holdfast.control.action is 'pause, resume, cancel, scope, set, back off, retry, remove, tag.';
comment on column holdfast.control.kind is 'What it was given to: crawl, snapshot, host, node or all.';
comment on column holdfast.control.target is 'Which one.';
comment on column holdfast.control.crawl_id is 'The crawl it belongs to, if any. No foreign key: orders outlive crawls.';
comment on column holdfast.control.by_whom is 'Who gave it.';
comment on column holdfast.control.detail is 'What exactly, and why.';
comment on column holdfast.control.held is 'Snapshots in work that it took from their nodes.';
create index control_by_crawl on holdfast.control (crawl_id, id);

create table holdfast.purge (
  directory text primary key,
  requested_at timestamptz not null default clock_timestamp()
);
comment on table holdfast.purge is 'Directories below the archive root whose snapshots were removed; whoever deletes one takes its row away.';
comment on column holdfast.purge.directory is 'Relative to the archive root.';
comment on column holdfast.purge.requested_at is 'When its snapshot was removed.';

create index snapshot_by_url on holdfast.snapshot using hash (url_hash);
comment on index holdfast.snapshot_by_url is 'Other snapshots of the same URL, for only_new.';
