-- Results of hooks, and the hooks that run now.

create table holdfast.archive_result (
  snapshot_id uuid not null, crawl_id uuid not null, fence bigint not null,
  plugin text not null, hook_name text not null, status text not null,
  process_id uuid not null, pid integer,
  background boolean not null default false,
  started_at timestamptz not null, ended_at timestamptz not null,
  output text not null default '', error text not null default '',
  output_json jsonb, output_files jsonb not null default '[]',
  output_bytes bigint not null default 0,
  exit_code integer, exit_signal integer,
  wall_ms bigint, user_ms bigint, system_ms bigint,
  peak_memory_bytes bigint, read_bytes bigint, written_bytes bigint,
  started_with jsonb,
  constraint archive_result_pkey primary key (snapshot_id, crawl_id, fence, plugin, hook_name),
  constraint archive_result_status check (status in ('succeeded', 'failed', 'skipped', 'noresults')),
  constraint archive_result_failure_has_error check (status <> 'failed' or error <> ''),
  constraint archive_result_files_array check (jsonb_typeof(output_files) = 'array'),
  constraint archive_result_started_with check (
    jsonb_typeof(started_with) = 'object' and length(started_with::text) <= 16384),
  constraint archive_result_numbers check (
    least(fence, output_bytes, wall_ms, user_ms, system_ms, peak_memory_bytes, read_bytes, written_bytes)
      >= 0)
) partition by range (crawl_id);
create table holdfast.archive_result_other partition of holdfast.archive_result (
  constraint archive_result_snapshot foreign key (snapshot_id, crawl_id)
    references holdfast.snapshot_other (id, crawl_id) on delete cascade
) default;
comment on table holdfast.archive_result is
  'Result of one hook in one attempt. Insert-only: written when the attempt is finished, whatever its ending.';
comment on column holdfast.archive_result.snapshot_id is 'The snapshot.';
comment on column holdfast.archive_result.crawl_id is 'Crawl of the snapshot.';
comment on column holdfast.archive_result.fence is 'The attempt.';
comment on column holdfast.archive_result.plugin is 'Plugin: the name of its directory.';
comment on column holdfast.archive_result.hook_name is 'Hook: its file name without the last extension.';
comment on column holdfast.archive_result.status is 'succeeded, failed, skipped or noresults.';
comment on column holdfast.archive_result.process_id is 'The worker. No foreign key: processes are trimmed.';
comment on column holdfast.archive_result.pid is 'Process id of the hook on that machine.';
comment on column holdfast.archive_result.background is
  'The hook ran beside later hooks, until the last of them ended.';
comment on column holdfast.archive_result.started_at is 'Start of the hook.';
comment on column holdfast.archive_result.ended_at is
  'Time at which the hook and all processes that it started had ended.';
comment on column holdfast.archive_result.output is 'One line for users: a title, a file name, a count.';
comment on column holdfast.archive_result.error is 'Reason for a failure or a skip.';
comment on column holdfast.archive_result.output_json is 'Structured output, if the hook gave any.';
comment on column holdfast.archive_result.output_files is 'Files that the hook left: [{path, type, size, sha256}].';
comment on column holdfast.archive_result.output_bytes is 'Bytes of these files.';
comment on column holdfast.archive_result.exit_code is 'Exit status; NULL: a signal ended the hook.';
comment on column holdfast.archive_result.exit_signal is 'Signal that ended the hook.';
comment on column holdfast.archive_result.wall_ms is 'Duration in milliseconds.';
comment on column holdfast.archive_result.user_ms is 'User CPU time of all processes of the hook, in milliseconds.';
comment on column holdfast.archive_result.system_ms is
  'System CPU time of all processes of the hook, in milliseconds.';
comment on column holdfast.archive_result.peak_memory_bytes is 'Largest resident set of a process of the hook.';
comment on column holdfast.archive_result.read_bytes is 'Bytes read from storage.';
comment on column holdfast.archive_result.written_bytes is 'Bytes written to storage.';
comment on column holdfast.archive_result.started_with is
  'Command, directory and environment of a hook that failed, without secrets: {command, directory, environment}.';
create index archive_result_failed on holdfast.archive_result (ended_at) where status = 'failed';
comment on index holdfast.archive_result_failed is 'The latest failures.';
create index archive_result_unusual on holdfast.archive_result (status, snapshot_id, crawl_id)
  where status in ('failed', 'skipped', 'noresults');
comment on index holdfast.archive_result_unusual is
  'Results of a status, of all or of one crawl, newest first.';

create unlogged table holdfast.running_hook (
  process_id uuid not null, snapshot_id uuid not null,
  crawl_id uuid not null, fence bigint not null,
  plugin text not null, hook_name text not null,
  background boolean not null default false,
  pid integer,
  started_at timestamptz not null, timeout_ms bigint, no_progress_since timestamptz,
  started_with jsonb,
  ended jsonb, ended_at timestamptz,
  constraint running_hook_pkey primary key (snapshot_id, plugin, hook_name),
  constraint running_hook_ended check ((ended is null) = (ended_at is null))
) with (fillfactor = 50);
comment on table holdfast.running_hook is
  'Hooks that run now, and hooks that have ended on a page in work. Each worker rewrites its rows; they are valid '
  'while it holds the fence. No foreign keys.';
comment on column holdfast.running_hook.process_id is 'The worker.';
comment on column holdfast.running_hook.snapshot_id is 'The snapshot.';
comment on column holdfast.running_hook.crawl_id is 'Crawl of the snapshot.';
comment on column holdfast.running_hook.fence is 'The attempt.';
comment on column holdfast.running_hook.plugin is 'Plugin: the name of its directory.';
comment on column holdfast.running_hook.hook_name is 'Hook: its file name without the last extension.';
comment on column holdfast.running_hook.background is 'The hook runs beside later hooks, until the last of them ends.';
comment on column holdfast.running_hook.pid is 'Process id of the hook on that machine.';
comment on column holdfast.running_hook.started_at is 'Start of the hook.';
comment on column holdfast.running_hook.timeout_ms is 'Time limit in milliseconds.';
comment on column holdfast.running_hook.no_progress_since is 'Start of the present stall: no CPU time, no output.';
comment on column holdfast.running_hook.started_with is
  'Command, directory and environment, without secrets: {command, directory, environment}; NULL in the first second.';
comment on column holdfast.running_hook.ended is
  'Result with the column names of archive_result; NULL: the hook runs. The row of archive_result is written with '
  'the page.';
comment on column holdfast.running_hook.ended_at is 'End of the hook; NULL: running.';
create index running_hook_by_process on holdfast.running_hook (process_id);
comment on index holdfast.running_hook_by_process is 'Hooks of a worker.';
