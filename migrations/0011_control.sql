-- Commands: who paused, resumed, cancelled or changed what.

create table holdfast.control (
  id bigint generated always as identity primary key,
  at timestamptz not null default clock_timestamp(),
  action text not null, kind text not null, target text not null,
  crawl_id uuid, by_whom text not null default '',
  detail text,
  held bigint not null default 0,
  constraint control_kind check (kind in ('crawl', 'snapshot', 'host', 'worker', 'all'))
);
comment on table holdfast.control is 'Append-only: every command, written by the transaction in which it took effect.';
comment on column holdfast.control.id is 'Order of recording.';
comment on column holdfast.control.at is
  'Time at which the command took effect: from then on no worker starts work that it forbids.';
comment on column holdfast.control.action is
  'pause, resume, cancel, scope, set, back off, retry, remove, edit.';
comment on column holdfast.control.kind is 'Kind of the target: crawl, snapshot, host, worker or all.';
comment on column holdfast.control.target is 'Id or name of the target.';
comment on column holdfast.control.crawl_id is 'Crawl of the target, if any. No foreign key: commands outlive crawls.';
comment on column holdfast.control.by_whom is 'User who gave the command.';
comment on column holdfast.control.detail is 'Details, and the reason given.';
comment on column holdfast.control.held is 'Claimed snapshots that the command took from their workers.';
create index control_by_crawl on holdfast.control (crawl_id, id);
comment on index holdfast.control_by_crawl is 'Commands to a crawl.';
