-- Sessions: the crawl hooks (a browser and its helpers) that one worker keeps running for one crawl.

create table holdfast.session (
  id uuid primary key,
  crawl_id uuid not null references holdfast.crawl (id) on delete cascade,
  process_id uuid not null references holdfast.process (id) on delete cascade,
  status text not null default 'opening', event text,
  directory text not null,
  opened_at timestamptz not null default clock_timestamp(),
  ready_at timestamptz, draining_at timestamptz, ended_at timestamptz,
  reason text,
  constraint session_status check (status in ('opening', 'ready', 'draining', 'closed', 'failed')),
  constraint session_ended check ((status in ('closed', 'failed')) = (ended_at is not null)),
  constraint session_failure_has_reason check (status <> 'failed' or reason is not null)
);
comment on table holdfast.session is
  'Sessions, past and present. The snapshots of a crawl on a worker share one.';
comment on column holdfast.session.id is 'UUID version 7.';
comment on column holdfast.session.crawl_id is 'The crawl.';
comment on column holdfast.session.process_id is 'The worker.';
comment on column holdfast.session.status is
  'opening, ready, draining, closed, or failed (a hook failed or died).';
comment on column holdfast.session.event is 'See crawl.event.';
comment on column holdfast.session.directory is 'CRAWL_DIR of the hooks, on the machine of the worker.';
comment on column holdfast.session.opened_at is 'Time at which the first hook was about to start.';
comment on column holdfast.session.ready_at is 'Time at which every crawl hook was done or ready.';
comment on column holdfast.session.draining_at is 'Time at which the hooks were requested to end.';
comment on column holdfast.session.ended_at is 'Time at which all processes had ended.';
comment on column holdfast.session.reason is 'Reason for the end or the failure.';
create unique index session_one_live on holdfast.session (crawl_id, process_id) where ended_at is null;
comment on index holdfast.session_one_live is 'One live session for each crawl and worker.';
create index session_by_process on holdfast.session (process_id);
comment on index holdfast.session_by_process is 'Sessions of a worker.';

create table holdfast.session_hook (
  session_id uuid not null references holdfast.session (id) on delete cascade,
  plugin text not null, hook_name text not null, status text not null,
  background boolean not null default false, pid integer,
  started_at timestamptz not null default clock_timestamp(),
  ended_at timestamptz,
  output text not null default '', error text not null default '',
  log text not null default '',
  exit_code integer, exit_signal integer,
  wall_ms bigint, user_ms bigint, system_ms bigint,
  peak_memory_bytes bigint, read_bytes bigint, written_bytes bigint,
  started_with jsonb,
  constraint session_hook_pkey primary key (session_id, plugin, hook_name),
  constraint session_hook_status check (status in ('started', 'succeeded', 'failed', 'skipped', 'noresults')),
  constraint session_hook_ended check ((status = 'started') = (ended_at is null))
);
comment on table holdfast.session_hook is 'Crawl hooks of a session and their results.';
comment on column holdfast.session_hook.session_id is 'The session.';
comment on column holdfast.session_hook.plugin is 'Plugin: the name of its directory.';
comment on column holdfast.session_hook.hook_name is 'Hook: its file name without the last extension.';
comment on column holdfast.session_hook.status is 'started (running), succeeded, failed, skipped or noresults.';
comment on column holdfast.session_hook.background is 'The hook stays after it is ready, until the session is closed.';
comment on column holdfast.session_hook.pid is 'Process id of the hook on that machine.';
comment on column holdfast.session_hook.started_at is 'Time of the first record.';
comment on column holdfast.session_hook.ended_at is 'Time of the end.';
comment on column holdfast.session_hook.output is 'One line for users.';
comment on column holdfast.session_hook.error is 'Reason for a failure or a skip.';
comment on column holdfast.session_hook.log is 'End of the output of a failed hook, for holdfast logs.';
comment on column holdfast.session_hook.exit_code is 'Exit status; NULL: a signal ended the hook.';
comment on column holdfast.session_hook.exit_signal is 'Signal that ended the hook.';
comment on column holdfast.session_hook.wall_ms is 'Duration in milliseconds.';
comment on column holdfast.session_hook.user_ms is 'User CPU time of all processes of the hook, in milliseconds.';
comment on column holdfast.session_hook.system_ms is 'System CPU time of all processes of the hook, in milliseconds.';
comment on column holdfast.session_hook.peak_memory_bytes is 'Largest resident set of a process of the hook.';
comment on column holdfast.session_hook.read_bytes is 'Bytes read from storage.';
comment on column holdfast.session_hook.written_bytes is 'Bytes written to storage.';
comment on column holdfast.session_hook.started_with is
  'Command, directory and environment, without secrets: {command, directory, environment}.';
