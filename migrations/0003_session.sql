-- Crawl sessions: the running set of crawl hooks (a browser and its helpers) that one node keeps for one crawl.
-- "Where is Chrome open for this crawl?" is a query: holdfast.v_session.

create table holdfast.crawl_session (
  id uuid primary key,
  crawl_id uuid not null references holdfast.crawl (id) on delete cascade,
  process_id uuid not null references holdfast.process (id) on delete cascade,
  status text not null default 'opening',
  directory text not null,
  opened_at timestamptz not null default clock_timestamp(),
  ready_at timestamptz,
  draining_at timestamptz,
  ended_at timestamptz,
  reason text,
  constraint crawl_session_status check (status in ('opening', 'ready', 'draining', 'closed', 'failed')),
  constraint crawl_session_ended check ((status in ('closed', 'failed')) = (ended_at is not null)),
  constraint crawl_session_failure_has_reason check (status <> 'failed' or reason is not null)
);
comment on table holdfast.crawl_session is 'The crawl hooks of one crawl on one node, from their start to their end; shared by the snapshots of that crawl there.';
comment on column holdfast.crawl_session.id is 'UUID version 7.';
comment on column holdfast.crawl_session.crawl_id is 'The crawl.';
comment on column holdfast.crawl_session.process_id is 'The node.';
comment on column holdfast.crawl_session.status is 'opening (hooks are starting), ready, draining (hooks are being ended), closed, or failed (a hook failed or died).';
comment on column holdfast.crawl_session.directory is 'CRAWL_DIR of the hooks, on that node.';
comment on column holdfast.crawl_session.opened_at is 'When the first hook was about to start.';
comment on column holdfast.crawl_session.ready_at is 'When every crawl hook was done or ready.';
comment on column holdfast.crawl_session.draining_at is 'When the hooks were asked to end.';
comment on column holdfast.crawl_session.ended_at is 'When nothing of it ran any more.';
comment on column holdfast.crawl_session.reason is 'Why it is being ended, has ended, or failed.';
create unique index crawl_session_one_live on holdfast.crawl_session (crawl_id, process_id) where ended_at is null;
comment on index holdfast.crawl_session_one_live is 'One live session a crawl and node.';
create index crawl_session_by_process on holdfast.crawl_session (process_id);

create table holdfast.crawl_session_hook (
  session_id uuid not null references holdfast.crawl_session (id) on delete cascade,
  plugin text not null,
  hook_name text not null,
  status text not null,
  background boolean not null default false,
  pid integer,
  started_at timestamptz not null default clock_timestamp(),
  ended_at timestamptz,
  output text not null default '',
  error text not null default '',
  exit_code integer,
  exit_signal integer,
  wall_ms bigint,
  user_ms bigint,
  system_ms bigint,
  peak_memory_bytes bigint,
  read_bytes bigint,
  written_bytes bigint,
  constraint crawl_session_hook_pkey primary key (session_id, plugin, hook_name),
  constraint crawl_session_hook_status check (status in ('started', 'succeeded', 'failed', 'skipped', 'noresults')),
  constraint crawl_session_hook_ended check ((status = 'started') = (ended_at is null))
);
comment on table holdfast.crawl_session_hook is 'What each crawl hook of a session did, or does just now.';
comment on column holdfast.crawl_session_hook.session_id is 'The session.';
comment on column holdfast.crawl_session_hook.plugin is 'The plugin: the name of its directory.';
comment on column holdfast.crawl_session_hook.hook_name is 'The hook: its file name without the last extension.';
comment on column holdfast.crawl_session_hook.status is 'started (a daemon that runs), or final: succeeded, failed, skipped, noresults.';
comment on column holdfast.crawl_session_hook.background is 'It stays, once ready, until the session is closed.';
comment on column holdfast.crawl_session_hook.pid is 'Process id of the hook on that node''s machine.';
comment on column holdfast.crawl_session_hook.started_at is 'When this was first written down.';
comment on column holdfast.crawl_session_hook.ended_at is 'When it was gone.';
comment on column holdfast.crawl_session_hook.output is 'One line for people.';
comment on column holdfast.crawl_session_hook.error is 'Why it failed or was skipped.';
comment on column holdfast.crawl_session_hook.exit_code is 'Exit status; NULL if a signal ended it.';
comment on column holdfast.crawl_session_hook.exit_signal is 'Signal that ended it.';
comment on column holdfast.crawl_session_hook.wall_ms is 'Time it took, in milliseconds.';
comment on column holdfast.crawl_session_hook.user_ms is 'CPU time in user mode of its process tree, in milliseconds.';
comment on column holdfast.crawl_session_hook.system_ms is 'CPU time in the kernel of its process tree, in milliseconds.';
comment on column holdfast.crawl_session_hook.peak_memory_bytes is 'Largest resident set of any one process of the tree.';
comment on column holdfast.crawl_session_hook.read_bytes is 'Bytes read from storage.';
comment on column holdfast.crawl_session_hook.written_bytes is 'Bytes written to storage.';

create trigger crawl_session_lifecycle before update of status on holdfast.crawl_session
  for each row when (old.status is distinct from new.status) execute function holdfast.lifecycle_guard('crawl_session', 'log');
