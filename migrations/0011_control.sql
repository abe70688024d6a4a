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
comment on table holdfast.control is
  'Append-only: every command, written by the transaction in which it took effect.';
comment on column holdfast.control.id is 'Order of recording.';
comment on column holdfast.control.at is 'When it took effect: after this no worker begins what it forbids.';
comment on column holdfast.control.action is
  'pause, resume, cancel, scope, set, back off, retry, remove, edit.';
comment on column holdfast.control.kind is 'What it applies to: crawl, snapshot, host, worker or all.';
comment on column holdfast.control.target is 'Which one.';
comment on column holdfast.control.crawl_id is 'Its crawl, if any. No foreign key: commands outlive crawls.';
comment on column holdfast.control.by_whom is 'Who gave it.';
comment on column holdfast.control.detail is 'Details, and the reason given.';
comment on column holdfast.control.held is 'Claimed snapshots that it took from their workers.';
create index control_by_crawl on holdfast.control (crawl_id, id);
comment on index holdfast.control_by_crawl is 'Commands to a crawl.';
