-- Binaries that plugins need, as found on each machine.

create table holdfast.binary (
  id uuid not null default gen_random_uuid(),
  machine_id text not null references holdfast.machine (id) on delete cascade,
  name text not null,
  providers text not null default '', overrides text not null default '',
  plugins text[] not null default '{}',
  status text not null default 'queued',
  retry_at timestamptz default clock_timestamp(),
  owner_id uuid references holdfast.process (id) on delete set null,
  fence bigint not null default 0,
  provider text not null default '',
  path text, version text, sha256 text, fingerprint text,
  failures integer not null default 0,
  error text, checked_at timestamptz,
  constraint binary_pkey primary key (machine_id, name),
  constraint binary_status check (status in ('queued', 'installed')),
  constraint binary_installed_has_path check (status <> 'installed' or path is not null)
);
comment on table holdfast.binary is 'Binaries that plugins need, one row for each machine.';
comment on column holdfast.binary.id is 'Identity that on_Binary hooks receive.';
comment on column holdfast.binary.machine_id is 'The machine.';
comment on column holdfast.binary.name is 'Name that plugins use for the binary.';
comment on column holdfast.binary.providers is 'Possible sources, from the plugin: env,apt,npm.';
comment on column holdfast.binary.overrides is 'Settings of the plugin for single providers, as JSON.';
comment on column holdfast.binary.plugins is 'Plugins that require the binary.';
comment on column holdfast.binary.status is 'queued (not found yet) or installed.';
comment on column holdfast.binary.retry_at is 'Time of the next check.';
comment on column holdfast.binary.owner_id is 'Process that checks the binary.';
comment on column holdfast.binary.fence is
  'Grows with each claim; a write with an older fence changes nothing.';
comment on column holdfast.binary.provider is 'Source: env, apt, npm, ...';
comment on column holdfast.binary.path is 'Absolute path.';
comment on column holdfast.binary.version is 'Version that the binary reports.';
comment on column holdfast.binary.sha256 is 'SHA-256 of the file.';
comment on column holdfast.binary.fingerprint is
  'Device, inode, size and times. If they are unchanged, the file is not read again.';
comment on column holdfast.binary.failures is 'Number of consecutive checks that did not find the binary.';
comment on column holdfast.binary.error is 'Message of the last failure.';
comment on column holdfast.binary.checked_at is 'Time of the last check.';
create index binary_due on holdfast.binary (machine_id, retry_at);
comment on index holdfast.binary_due is 'Binaries that a machine must check.';
