-- Log levels asked for at run time, counts of what is too rare to be counted by its rows, and the queue in the order of time.

alter table holdfast.collection add column log_level text
  constraint collection_log_level check (log_level in ('trace', 'debug', 'info', 'warn', 'error', 'off'));
comment on column holdfast.collection.log_level is 'Log level asked of every node and runner, also of those that come later; NULL: what each has configured.';
alter table holdfast.process add column log_level text
  constraint process_log_level check (log_level in ('trace', 'debug', 'info', 'warn', 'error', 'off'));
comment on column holdfast.process.log_level is 'Log level asked of this one; NULL: that of the collection, or what it has configured.';

create table holdfast.tally (
  name text primary key,
  value bigint not null default 0
);
comment on table holdfast.tally is 'Counts kept since the collection was made, of what happens rarely.';
comment on column holdfast.tally.name is 'nodes_lost, takeovers.';
comment on column holdfast.tally.value is 'How often it has happened.';
insert into holdfast.tally (name) values ('nodes_lost'), ('takeovers');

-- The condition is always true. It keeps the index from claims, whose queries do not have it: a plan made while the queue was
-- empty must not walk everybody's rows in the order of time.
create index snapshot_queue_by_time on holdfast.snapshot_queue (retry_at) where status <> '';
comment on index holdfast.snapshot_queue_by_time is 'What waits, in the order of due times, for people; claims do not use it. Costs a claim 3 microseconds a row.';
