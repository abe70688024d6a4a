-- Sums that the runner keeps, so that pages about all of the collection cost the same at any size.

create table holdfast.counted (
  what text primary key,
  upto timestamptz not null default '-infinity',
  full_since timestamptz,
  constraint counted_what check (what in ('sites', 'periods', 'unchanged'))
);
comment on table holdfast.counted is
  'Up to when seals are in the sums; later ones are added when the sums are read. Also up to when the rule of '
  'archive.keep_unchanged has looked at seals; it begins again at the end.';
comment on column holdfast.counted.what is 'The sums: sites or periods; or unchanged.';
comment on column holdfast.counted.upto is 'Time of the last seal that was counted.';
comment on column holdfast.counted.full_since is
  'For unchanged: since when nothing is left to remove although the archive exceeds archive.max_bytes. NULL: not so.';
insert into holdfast.counted (what) values ('sites'), ('periods'), ('unchanged');

create table holdfast.site (
  host text primary key,
  pages bigint not null, captures bigint not null, failed bigint not null, bytes numeric not null,
  last_at timestamptz not null, changed_at timestamptz,
  constraint site_numbers check (pages >= 0 and captures > 0 and failed >= 0)
);
comment on table holdfast.site is 'Sums of the sealed snapshots of each host. See v_site.';
comment on column holdfast.site.host is 'The host.';
comment on column holdfast.site.pages is 'Different URLs.';
comment on column holdfast.site.captures is 'Sealed snapshots.';
comment on column holdfast.site.failed is 'Captures with another outcome than succeeded and partial.';
comment on column holdfast.site.bytes is 'Bytes of their files. Links to files of an earlier capture do not count.';
comment on column holdfast.site.last_at is 'Time of the last seal.';
comment on column holdfast.site.changed_at is 'Time of the last capture that found a change; NULL: none.';
create index site_by_last on holdfast.site (last_at);
comment on index holdfast.site_by_last is 'Sites that were captured last.';

create table holdfast.period (
  grain text not null, at timestamptz not null,
  succeeded bigint not null, partial bigint not null, failed bigint not null, changed bigint not null,
  bytes numeric not null, seconds numeric not null, queue bigint not null,
  constraint period_pkey primary key (grain, at),
  constraint period_grain check (grain in ('hour', 'day'))
);
comment on table holdfast.period is 'Sums of each hour and each day. Removed pages stay in them. See v_period.';
comment on column holdfast.period.grain is 'hour or day.';
comment on column holdfast.period.at is 'Start of the hour or day, in UTC.';
comment on column holdfast.period.succeeded is 'Sealed snapshots with the outcome succeeded.';
comment on column holdfast.period.partial is 'With outcome partial.';
comment on column holdfast.period.failed is 'With any other outcome.';
comment on column holdfast.period.changed is 'Captures that found a change.';
comment on column holdfast.period.bytes is 'Bytes of their files. Links to files of an earlier capture do not count.';
comment on column holdfast.period.seconds is 'Time between claim and seal, of all.';
comment on column holdfast.period.queue is 'Most open snapshots that the runner counted.';
