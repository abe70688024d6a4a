-- Machines, and the processes that run on them.

create table holdfast.machine (
  id text primary key,
  hostname text not null,
  os text not null default '', architecture text not null default '',
  cpu_count integer not null default 0, memory_bytes bigint not null default 0,
  options jsonb not null default '{}'
);
comment on table holdfast.machine is 'Machines and containers on which Holdfast has run.';
comment on column holdfast.machine.id is
  'Name that its processes report and, behind "@", their database login; see machine_of().';
comment on column holdfast.machine.hostname is 'Host name.';
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
  'Id of one incarnation: a process that lost its lease joins again with a new id.';
comment on column holdfast.process.login is
  'Database login with which the process joined: no other login may act for it. See mine().';
comment on column holdfast.process.machine_id is 'Machine on which the process runs.';
comment on column holdfast.process.boot_id is
  'Boot of the machine; with pid and start_ticks, this rules out that a pid was reused.';
comment on column holdfast.process.pid is 'Process id, in the pid namespace of the process.';
comment on column holdfast.process.pid_namespace is 'Inode of the pid namespace: the pid has no meaning elsewhere.';
comment on column holdfast.process.start_ticks is
  'Start in clock ticks since boot (/proc/PID/stat field 22).';
comment on column holdfast.process.parent_id is 'Process that started this one, if it is in this table.';
comment on column holdfast.process.process_type is
  'worker, runner, serve, or command (import, export, verify, adopt, check, search --rebuild).';
comment on column holdfast.process.worker_type is
  'Worker: all, crawl (expands seeds) or snapshot. Runner: worker_runner (holds the gate) or runner_waiting. serve: '
  'listen address. command: its verb.';
comment on column holdfast.process.label is 'Name for users: "worker on host pid 123".';
comment on column holdfast.process.version is 'Version of the program.';
comment on column holdfast.process.revision is 'Schema revision that the program was built for; NULL: unknown.';
comment on column holdfast.process.capabilities is
  'Worker: plugins (names of those that work), archive (directory or s3), only (works on some crawls only), browser '
  '(its state), lacks (why not all enabled plugins work). Runner: spawns (starts local workers).';
comment on column holdfast.process.status is 'running or exited.';
comment on column holdfast.process.started_at is 'Time at which the process joined.';
comment on column holdfast.process.heartbeat_at is 'Last heartbeat.';
comment on column holdfast.process.lease_until is
  'End of the lease. After this time, other workers take over the work.';
comment on column holdfast.process.draining is 'The worker finishes its pages and claims no more.';
comment on column holdfast.process.request is
  'Command (drain, stop, leave) that the process receives with its next heartbeat.';
comment on column holdfast.process.paused_at is
  'Start of a pause by command, in which the worker claims nothing; NULL: not paused.';
comment on column holdfast.process.paused_by is 'User who paused the worker, and why.';
comment on column holdfast.process.log_level is 'Log level of this process; NULL: that of the collection.';
comment on column holdfast.process.standby is
  'True while this process waits to take over: a runner from the leader, a server from the process that has the '
  'listen address.';
comment on column holdfast.process.epoch is 'Number of the term of a runner that holds the gate.';
comment on column holdfast.process.slots is 'Number of snapshots that the worker processes at once.';
comment on column holdfast.process.stats is
  'Last report: held snapshots, free disk space, the reason for not claiming.';
comment on column holdfast.process.ended_at is 'Time at which the process stopped or lapsed.';
comment on column holdfast.process.exit_code is 'Exit code that the process announced.';
comment on column holdfast.process.exit_reason is 'Reason for the end: "left", "lease lapsed", ...';
create unique index process_single_runner on holdfast.process (worker_type)
  where worker_type = 'worker_runner' and status = 'running';
comment on index holdfast.process_single_runner is 'The gate: one running worker_runner in the collection.';
create index process_runners on holdfast.process (started_at, id)
  where process_type = 'runner' and status = 'running';
comment on index holdfast.process_runners is 'Running runners, in the order in which they joined.';
create index process_running_by_lease on holdfast.process (status, lease_until) where status = 'running';
comment on index holdfast.process_running_by_lease is 'Running processes by the end of their lease.';
create index process_by_machine on holdfast.process (machine_id, status);
comment on index holdfast.process_by_machine is 'Processes of a machine.';
create index process_by_start on holdfast.process (started_at);
comment on index holdfast.process_by_start is 'The newest processes.';
create index process_by_system on holdfast.process (start_ticks, pid);
comment on index holdfast.process_by_system is
  'Earlier incarnations, whose commands hold for a process that rejoins.';
create index process_by_end on holdfast.process (ended_at) where status = 'exited';
comment on index holdfast.process_by_end is 'For trimming.';
