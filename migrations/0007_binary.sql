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
comment on column holdfast.binary.name is 'Name by which plugins ask for it.';
comment on column holdfast.binary.providers is 'Where it may come from, as its plugin says: env,apt,npm.';
comment on column holdfast.binary.overrides is 'What its plugin tells single providers, as JSON.';
comment on column holdfast.binary.plugins is 'Plugins that ask for it.';
comment on column holdfast.binary.status is 'queued (not found yet) or installed.';
comment on column holdfast.binary.retry_at is 'When it is checked next.';
comment on column holdfast.binary.owner_id is 'The process that checks it.';
comment on column holdfast.binary.fence is
  'Grows with each claim; a write with an older fence changes nothing.';
comment on column holdfast.binary.provider is 'Where it came from: env, apt, npm, ...';
comment on column holdfast.binary.path is 'Absolute path.';
comment on column holdfast.binary.version is 'Version that it reports.';
comment on column holdfast.binary.sha256 is 'SHA-256 of the file.';
comment on column holdfast.binary.fingerprint is 'Device, inode, size, times: if equal it is not read again.';
comment on column holdfast.binary.failures is 'Checks in a row that did not find it.';
comment on column holdfast.binary.error is 'Message of the last failure.';
comment on column holdfast.binary.checked_at is 'When it was last checked.';
create index binary_due on holdfast.binary (machine_id, retry_at);
comment on index holdfast.binary_due is 'What a machine is to check.';
