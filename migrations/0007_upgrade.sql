-- Programs of several releases on one schema, while a cluster is upgraded node by node.

alter table holdfast.process add column revision integer;
comment on column holdfast.process.revision is 'Schema revision its program was made for; NULL: a program that does not say.';
alter table holdfast.process add column capabilities jsonb not null default '{}';
comment on column holdfast.process.capabilities is 'What it can do, as it said when it joined: "plugins" (their names), "archive" (directory or s3).';
