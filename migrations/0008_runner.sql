-- The runner: its terms, its maintenance tasks and their runs.

create table holdfast.runner_term (
  epoch bigint primary key,
  process_id uuid not null, label text not null,
  began_at timestamptz not null default clock_timestamp(),
  valid_until timestamptz not null,
  ended_at timestamptz, ending text,
  constraint runner_term_forwards check (valid_until >= began_at),
  constraint runner_term_ended_has_ending check ((ended_at is null) = (ending is null))
);
comment on table holdfast.runner_term is 'Terms: which runner held the gate, from when until when.';
comment on column holdfast.runner_term.epoch is 'Number of the term; a write that names an older one fails.';
comment on column holdfast.runner_term.process_id is 'The runner. No foreign key: processes are trimmed.';
comment on column holdfast.runner_term.label is 'Name of the runner, for users.';
comment on column holdfast.runner_term.began_at is 'Time at which the runner passed the gate.';
comment on column holdfast.runner_term.valid_until is 'End of the lease; after the term: end of its validity.';
comment on column holdfast.runner_term.ended_at is 'Time at which the end was recorded.';
comment on column holdfast.runner_term.ending is
  'Reason for the end: exit_reason of the process, and whether its lease expired.';

create table holdfast.maintenance_task (
  name text primary key,
  every interval not null,
  function text not null, batch bigint not null, keep interval,
  enabled boolean not null default true,
  about text not null,
  next_at timestamptz not null default clock_timestamp(),
  last_run_at timestamptz, last_duration interval, last_count bigint,
  total_count bigint not null default 0, runs bigint not null default 0,
  error text,
  constraint maintenance_every check (every > '0'),
  constraint maintenance_batch check (batch > 0),
  constraint maintenance_keep check (keep > '0'),
  constraint maintenance_function_name check (function ~ '^maintenance_[a-z_]+$')
);
comment on table holdfast.maintenance_task is
  'Maintenance tasks of the runner. You may change every, keep and enabled.';
comment on column holdfast.maintenance_task.name is 'The task.';
comment on column holdfast.maintenance_task.every is 'Interval between two runs.';
comment on column holdfast.maintenance_task.function is
  'Function of the task: takes this row, returns the number of changes.';
comment on column holdfast.maintenance_task.batch is
  'Maximum number of changes in one transaction; after a full batch the task runs again at once.';
comment on column holdfast.maintenance_task.keep is 'Age at which tasks that trim delete records.';
comment on column holdfast.maintenance_task.enabled is 'False: the task does not run.';
comment on column holdfast.maintenance_task.about is 'A sentence for users.';
comment on column holdfast.maintenance_task.next_at is 'Next due time.';
comment on column holdfast.maintenance_task.last_run_at is 'Time of the last run.';
comment on column holdfast.maintenance_task.last_duration is 'Duration of the last run.';
comment on column holdfast.maintenance_task.last_count is 'Changes of the last run.';
comment on column holdfast.maintenance_task.total_count is 'Changes of all runs.';
comment on column holdfast.maintenance_task.runs is 'Number of runs.';
comment on column holdfast.maintenance_task.error is 'Error of the last run, which was rolled back; NULL: no error.';

insert into holdfast.maintenance_task (name, every, function, batch, keep, about)
  values
  ('schedules', '2 seconds', 'maintenance_schedules', 10, null,
   'adds the crawls of schedules that are due'),
  ('lapsed', '2 seconds', 'maintenance_lapsed', 1, null,
   'releases the work of lapsed workers and closes their rows'),
  ('mend', '30 seconds', 'maintenance_mend', 100, null,
   'wakes or seals crawls that were changed by hand'),
  ('retention', '30 seconds', 'maintenance_retention', 1, null,
   'removes crawls past keep_until, and their files'),
  ('unchanged', '1 minute', 'maintenance_unchanged', 50, null,
   'removes captures without a change by archive.keep_unchanged and archive.max_bytes'),
  ('clock', '1 minute', 'maintenance_clock', 10000, null,
   'after the clock has gone back, makes due what lies too far ahead'),
  ('hosts', '1 minute', 'maintenance_hosts', 500, null,
   'reduces the back-off of hosts that have not asked again'),
  ('sites', '1 minute', 'maintenance_sites', 20000, null,
   'adds sealed pages to the sums of their hosts'),
  ('periods', '1 minute', 'maintenance_periods', 20000, '40 days',
   'adds sealed pages to the sums of hours and days; removes old hours'),
  ('partitions', '1 day', 'maintenance_partitions', 3, null,
   'makes the partitions of the next month'),
  ('trim_events', '10 minutes', 'maintenance_trim', 5000, '90 days',
   'removes old events'),
  ('trim_attempts', '10 minutes', 'maintenance_trim_attempts', 5000, '1 year',
   'removes old attempts at sealed snapshots'),
  ('trim_processes', '10 minutes', 'maintenance_trim', 500, '1 year',
   'removes processes that ended long ago'),
  ('trim_runs', '10 minutes', 'maintenance_trim', 5000, '1 day',
   'removes old runs of maintenance tasks, and old terms'),
  ('trim_deliveries', '10 minutes', 'maintenance_trim', 5000, '30 days',
   'removes old webhook deliveries');

create table holdfast.maintenance_run (
  id bigint generated always as identity primary key,
  task text not null, epoch bigint not null, process_id uuid not null,
  began_at timestamptz not null, ended_at timestamptz not null,
  count bigint not null, error text
);
comment on table holdfast.maintenance_run is
  'Every run of a task. Runs do not overlap, and their epochs never fall.';
comment on column holdfast.maintenance_run.id is 'Order of recording.';
comment on column holdfast.maintenance_run.task is 'The task.';
comment on column holdfast.maintenance_run.epoch is 'Term of the run.';
comment on column holdfast.maintenance_run.process_id is 'The runner. No foreign key: processes are trimmed.';
comment on column holdfast.maintenance_run.began_at is 'Start, while the runner held the gate.';
comment on column holdfast.maintenance_run.ended_at is 'End of the work, just before the commit.';
comment on column holdfast.maintenance_run.count is 'Number of changes.';
comment on column holdfast.maintenance_run.error is 'Error of the run, if it failed.';
create index maintenance_run_by_time on holdfast.maintenance_run (began_at);
comment on index holdfast.maintenance_run_by_time is 'The latest runs, and for trimming.';
