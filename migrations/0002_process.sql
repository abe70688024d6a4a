-- Machines, and the processes that run on them.

create table holdfast.machine (
  id text primary key,
  hostname text not null,
  os text not null default '', architecture text not null default '',
  cpu_count integer not null default 0, memory_bytes bigint not null default 0,
  options jsonb not null default '{}'
);
comment on table holdfast.machine is 'Machines and containers on which Holdfast has run.';
comment on column holdfast.machine.id is 'What its processes say it is and, behind "@", their database login; see machine_of().';
comment on column holdfast.machine.hostname is 'Its host name.';
comment on column holdfast.machine.os is 'Operating system and kernel.';
comment on column holdfast.machine.architecture is 'Processor architecture.';
comment on column holdfast.machine.cpu_count is 'Processors available.';
comment on column holdfast.machine.memory_bytes is 'Memory.';
comment on column holdfast.machine.options is
  'Hook options for this machine only, as set by Machine records.';

create table holdfast.process (
  id uuid primary key, login name not null default session_user,
  machine_id text not null references holdfast.machine (id),
  boot_id text not null, pid integer not null,
  pid_namespace text not null default '',
  start_ticks bigint not null,
  parent_id uuid references holdfast.process (id) on delete set null,
  process_type text not null, worker_type text not null default '',
  label text not null default '',
  version text not null default '', revision integer,
  capabilities jsonb not null default '{}',
  status text not null default 'running',
  started_at timestamptz not null default clock_timestamp(),
  heartbeat_at timestamptz, lease_until timestamptz,
  draining boolean not null default false, request text,
  paused_at timestamptz, paused_by text, log_level text,
  standby boolean not null default false, epoch bigint,
  slots integer not null default 0,
  stats jsonb not null default '{}',
  ended_at timestamptz, exit_code integer, exit_reason text,
  constraint process_status check (status in ('running', 'exited')),
  constraint process_type_known check (process_type in ('runner', 'worker', 'serve', 'command')),
  constraint process_exited_has_end check ((status = 'exited') = (ended_at is not null)),
  constraint process_request_known check (request in ('drain', 'stop', 'leave')),
  constraint process_lease_has_heartbeat check (lease_until is null or heartbeat_at is not null),
  constraint process_slots check (slots >= 0),
  constraint process_log_level check (log_level in ('trace', 'debug', 'info', 'warn', 'error', 'off'))
) with (fillfactor = 50);
comment on table holdfast.process is
  'Workers, runners, servers and long commands, past and present. One lease covers all that one holds.';
comment on column holdfast.process.id is
  'One incarnation: a process that lost its lease joins again with a new id.';
comment on column holdfast.process.login is
  'The database login with which it joined: nothing else may speak for it. See mine().';
comment on column holdfast.process.machine_id is 'Where it runs.';
comment on column holdfast.process.boot_id is
  'Boot of the machine; with pid and start_ticks it rules out pid reuse.';
comment on column holdfast.process.pid is 'Process id, in its own pid namespace.';
comment on column holdfast.process.pid_namespace is
  'Inode of its pid namespace: the pid means nothing elsewhere.';
comment on column holdfast.process.start_ticks is
  'Start in clock ticks since boot (/proc/PID/stat field 22).';
comment on column holdfast.process.parent_id is 'The process that started it, if that one is in this table.';
comment on column holdfast.process.process_type is
  'worker, runner, serve, or command (import, export, verify, adopt, check, search --rebuild).';
comment on column holdfast.process.worker_type is
  'Worker: all, crawl (expands seeds) or snapshot. Runner: worker_runner (holds the gate) or runner_waiting. '
  'serve: where it listens. command: its verb.';
comment on column holdfast.process.label is 'For people: "worker on host pid 123".';
comment on column holdfast.process.version is 'Version of its program.';
comment on column holdfast.process.revision is
  'Schema revision that its program was built for; NULL: unknown.';
comment on column holdfast.process.capabilities is
  'Worker: plugins (names of those that work), archive (directory or s3), only (works on some crawls only), '
  'browser (what is known of it), lacks (why not all enabled plugins work). Runner: spawns (starts local workers).';
comment on column holdfast.process.status is 'running or exited.';
comment on column holdfast.process.started_at is 'When it joined.';
comment on column holdfast.process.heartbeat_at is 'Last heartbeat.';
comment on column holdfast.process.lease_until is 'End of its lease. Past it, its work is given to others.';
comment on column holdfast.process.draining is 'It finishes what it has and claims nothing more.';
comment on column holdfast.process.request is
  'A command (drain, stop, leave) that it receives with its next heartbeat.';
comment on column holdfast.process.paused_at is
  'Since when this worker claims nothing by command; NULL: not paused.';
comment on column holdfast.process.paused_by is 'Who paused it, and why.';
comment on column holdfast.process.log_level is 'Log level of this process; NULL: that of the collection.';
comment on column holdfast.process.standby is
  'It waits for the one that leads, or that listens there, to end.';
comment on column holdfast.process.epoch is 'Runner that holds the gate: number of its term.';
comment on column holdfast.process.slots is 'How many snapshots it works on at once.';
comment on column holdfast.process.stats is 'Its last report: held, free disk, why it does not claim.';
comment on column holdfast.process.ended_at is 'When it stopped or lapsed.';
comment on column holdfast.process.exit_code is 'Exit code that it announced.';
comment on column holdfast.process.exit_reason is 'Why it ended: "left", "lease lapsed", ...';
create unique index process_single_runner on holdfast.process (worker_type)
  where worker_type = 'worker_runner' and status = 'running';
comment on index holdfast.process_single_runner is 'The gate: one running worker_runner in the collection.';
create index process_runners on holdfast.process (started_at, id)
  where process_type = 'runner' and status = 'running';
comment on index holdfast.process_runners is 'Running runners, in the order in which they joined.';
create index process_running_by_lease on holdfast.process (status, lease_until) where status = 'running';
comment on index holdfast.process_running_by_lease is 'Whose lease has lapsed.';
create index process_by_machine on holdfast.process (machine_id, status);
comment on index holdfast.process_by_machine is 'Processes of a machine.';
create index process_by_start on holdfast.process (started_at);
comment on index holdfast.process_by_start is 'The newest processes.';
create index process_by_system on holdfast.process (start_ticks, pid);
comment on index holdfast.process_by_system is
  'Earlier incarnations, whose commands hold for a process that rejoins.';
create index process_by_end on holdfast.process (ended_at) where status = 'exited';
comment on index holdfast.process_by_end is 'For trimming.';
