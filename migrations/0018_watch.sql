-- Notices: what watches have found.

create table holdfast.notice (
  id bigint generated always as identity primary key,
  schedule_id uuid not null references holdfast.schedule (id) on delete cascade,
  crawl_id uuid not null, snapshot_id uuid not null,
  at timestamptz not null default clock_timestamp(),
  said text[] not null,
  constraint notice_says_something check (cardinality(said) > 0)
);
comment on table holdfast.notice is
  'Times at which the condition of a watch held, written by the transaction that sealed its crawl.';
comment on column holdfast.notice.id is 'Order of recording.';
comment on column holdfast.notice.schedule_id is 'The watch.';
comment on column holdfast.notice.crawl_id is 'Crawl of the snapshot. No foreign key: it may be removed.';
comment on column holdfast.notice.snapshot_id is 'The capture that was compared. No foreign key: it may be removed.';
comment on column holdfast.notice.at is 'Time of the seal.';
comment on column holdfast.notice.said is 'Sentences for people: what has changed.';
create index notice_by_schedule on holdfast.notice (schedule_id, id);
comment on index holdfast.notice_by_schedule is 'Notices of a watch, in order.';
create index notice_by_time on holdfast.notice (at);
comment on index holdfast.notice_by_time is 'For trimming.';
create index notice_by_snapshot on holdfast.notice (snapshot_id);
comment on index holdfast.notice_by_snapshot is 'Captures that a notice refers to are kept.';

insert into holdfast.maintenance_task (name, every, function, batch, keep, about)
  values ('trim_notices', '10 minutes', 'maintenance_trim', 5000, '1 year', 'removes old notices of watches');
