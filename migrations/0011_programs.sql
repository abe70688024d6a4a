-- What plugins need on each machine: who asks, from where it may come, and what has been found; and the words of crawl hooks
-- that failed.

alter table holdfast.binary add column id uuid not null default gen_random_uuid();
comment on column holdfast.binary.id is 'What on_Binary hooks are told it is called.';
alter table holdfast.binary add column providers text not null default '';
comment on column holdfast.binary.providers is 'Where it may come from, as its plugin says: env,apt,npm.';
alter table holdfast.binary add column overrides text not null default '';
comment on column holdfast.binary.overrides is 'What its plugin tells single providers, as JSON.';
alter table holdfast.binary add column plugins text[] not null default '{}';
comment on column holdfast.binary.plugins is 'Plugins that ask for it.';
alter table holdfast.binary add column fingerprint text;
comment on column holdfast.binary.fingerprint is 'Device, inode, size and times of the file: while they are the same it need not be read again.';
create index binary_due on holdfast.binary (machine_id, retry_at);
comment on index holdfast.binary_due is 'What is to be looked at on a machine.';

alter table holdfast.machine add column options jsonb not null default '{}';
comment on column holdfast.machine.options is 'Options of hooks that hold on this machine alone, as hooks of the old generation set them (Machine records): paths above all.';

alter table holdfast.crawl_session_hook add column log text not null default '';
comment on column holdfast.crawl_session_hook.log is 'The end of what it printed, if it failed: holdfast logs.';
