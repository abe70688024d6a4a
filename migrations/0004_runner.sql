-- The runner: who leads and has led, what it has to do and has done, and what schedules need besides 0001.

alter table holdfast.process add column pid_namespace text not null default '';
comment on column holdfast.process.pid_namespace is 'Inode of the pid namespace that pid belongs to: in another one the number names somebody else.';
alter table holdfast.process add column standby boolean not null default false;
comment on column holdfast.process.standby is 'A runner that waits for the leader to be gone, instead of asking it to leave.';
create index process_runners on holdfast.process (started_at, id) where process_type = 'orchestrator' and status = 'running';

create table holdfast.runner_term (
  epoch bigint primary key,
  process_id uuid not null,
  label text not null,
  began_at timestamptz not null default clock_timestamp(),
  valid_until timestamptz not null,
  ended_at timestamptz,
  ending text,
  constraint runner_term_forwards check (valid_until >= began_at),
  constraint runner_term_ended_has_ending check ((ended_at is null) = (ending is null))
);
comment on table holdfast.runner_term is 'Every lead there has been: who held the gate, from when, and until when its epoch was valid.';
comment on column holdfast.runner_term.epoch is 'Number of the lead; what a runner writes names it, and an older one changes nothing.';
comment on column holdfast.runner_term.process_id is 'The runner.';
comment on column holdfast.runner_term.label is 'The runner, for people; its process row may have been trimmed.';
comment on column holdfast.runner_term.began_at is 'When it was let through the gate.';
comment on column holdfast.runner_term.valid_until is 'End of its lease, moved by each beat; once it has ended: when it stopped being valid.';
comment on column holdfast.runner_term.ended_at is 'When it was found to have ended.';
comment on column holdfast.runner_term.ending is 'Why: "left: ...", or that its lease had lapsed.';

create table holdfast.duty (
  name text primary key,
  every interval not null,
  function text not null,
  batch bigint not null,
  keep interval,
  enabled boolean not null default true,
  about text not null,
  next_at timestamptz not null default clock_timestamp(),
  last_run_at timestamptz,
  last_duration interval,
  last_count bigint,
  total_count bigint not null default 0,
  runs bigint not null default 0,
  error text,
  constraint duty_every check (every > '0'),
  constraint duty_batch check (batch > 0),
  constraint duty_keep check (keep > '0'),
  constraint duty_function_name check (function ~ '^duty_[a-z_]+$')
);
comment on table holdfast.duty is 'What the runner has to do, and how often. People may change every, keep and enabled.';
comment on column holdfast.duty.name is 'The duty.';
comment on column holdfast.duty.every is 'How often.';
comment on column holdfast.duty.function is 'The function in this schema that does it; takes the duty''s row, returns how many things it changed.';
comment on column holdfast.duty.batch is 'At most so many things in one transaction; when it found that many, it runs again at once.';
comment on column holdfast.duty.keep is 'For duties that trim: how long records are kept.';
comment on column holdfast.duty.enabled is 'False: the runner leaves it alone.';
comment on column holdfast.duty.about is 'A sentence for people.';
comment on column holdfast.duty.next_at is 'When it is due.';
comment on column holdfast.duty.last_run_at is 'When it last ran.';
comment on column holdfast.duty.last_duration is 'How long that took.';
comment on column holdfast.duty.last_count is 'How many things it changed then.';
comment on column holdfast.duty.total_count is 'How many in all.';
comment on column holdfast.duty.runs is 'How often it has run.';
comment on column holdfast.duty.error is 'Why the last run failed; NULL if it did not. What it had begun was undone.';

insert into holdfast.duty (name, every, function, batch, keep, about) values
  ('schedules', '2 seconds', 'duty_schedules', 10, null, 'adds the crawls of schedules that are due'),
  ('lapsed', '2 seconds', 'duty_lapsed', 1, null, 'gives the work of nodes that do not beat any more to others, and closes their rows'),
  ('mend', '30 seconds', 'duty_mend', 100, null, 'wakes or seals crawls that somebody''s hand has left stuck'),
  ('retention', '30 seconds', 'duty_retention', 1, null, 'removes crawls that are past keep_until; their files follow'),
  ('hosts', '1 minute', 'duty_hosts', 500, null, 'lets the back-off of web sites that have been left in peace decay'),
  ('trim_events', '10 minutes', 'duty_trim_events', 5000, '90 days', 'forgets old events'),
  ('trim_attempts', '10 minutes', 'duty_trim_attempts', 5000, '1 year', 'forgets how attempts at long sealed snapshots ended'),
  ('trim_processes', '10 minutes', 'duty_trim_processes', 500, '1 year', 'forgets processes that ended long ago'),
  ('trim_runs', '10 minutes', 'duty_trim_runs', 5000, '1 day', 'forgets old runs of duties, and old leads');

create table holdfast.duty_run (
  id bigint generated always as identity primary key,
  duty text not null,
  epoch bigint not null,
  process_id uuid not null,
  began_at timestamptz not null,
  ended_at timestamptz not null,
  count bigint not null,
  error text
);
comment on table holdfast.duty_run is 'Every run of a duty, written in the transaction that did it. No two of them overlap in time, and their epochs never go back.';
comment on column holdfast.duty_run.id is 'Order of recording.';
comment on column holdfast.duty_run.duty is 'The duty.';
comment on column holdfast.duty_run.epoch is 'The lead in which it ran.';
comment on column holdfast.duty_run.process_id is 'The runner.';
comment on column holdfast.duty_run.began_at is 'When it began, the gate being held.';
comment on column holdfast.duty_run.ended_at is 'When its work was done, just before it was committed.';
comment on column holdfast.duty_run.count is 'How many things it changed.';
comment on column holdfast.duty_run.error is 'Why it failed, if it did.';
create index duty_run_by_time on holdfast.duty_run (began_at);

-- Append-only, in the order of time: a few pages of index tell where the old ones are, and adding costs nothing.
create index attempt_by_end on holdfast.attempt using brin (ended_at);
create index process_by_end on holdfast.process (ended_at) where status = 'exited';

alter table holdfast.schedule add column hosts text[] not null default '{}';
comment on column holdfast.schedule.hosts is 'Hosts of the seeds, in the same order.';
alter table holdfast.schedule add column runs bigint not null default 0;
comment on column holdfast.schedule.runs is 'How many crawls it has added.';
alter table holdfast.schedule add column skipped bigint not null default 0;
comment on column holdfast.schedule.skipped is 'How often it was due while its last crawl was still open.';
alter table holdfast.schedule add column note text;
comment on column holdfast.schedule.note is 'What it last did or could not do, for people.';
alter table holdfast.schedule add constraint schedule_hosts_match check (cardinality(hosts) = cardinality(urls));
create index schedule_due on holdfast.schedule (next_run_at) where enabled;
