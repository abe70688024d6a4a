-- What a crawl may ask for besides: robots.txt, a limit for each page, archiving again in place of what there is.

alter table holdfast.crawl
  add column max_snapshot_bytes bigint not null default 0 constraint crawl_max_snapshot_bytes check (max_snapshot_bytes >= 0),
  add column robots boolean not null default false,
  add column only_complete boolean not null default false,
  add column overwrite boolean not null default false,
  add constraint crawl_overwrites_or_skips check (not (overwrite and only_new));
comment on column holdfast.crawl.max_snapshot_bytes is 'The hooks of one snapshot may leave this much together; 0: no cap. A hook whose files would go beyond is ended, and they are not kept.';
comment on column holdfast.crawl.robots is 'Pages that the site''s robots.txt forbids are refused, and its Crawl-delay is kept.';
comment on column holdfast.crawl.only_complete is 'With only_new: a snapshot that is only partly there does not count as one that the collection holds (add --update).';
comment on column holdfast.crawl.overwrite is 'Once a page of it is sealed, older snapshots of the same URL are removed (add --overwrite).';

create table holdfast.robots (
  origin text primary key,
  state text not null default 'wanted',
  status integer,
  rules text not null default '',
  error text,
  fetcher_id uuid,
  fetch_until timestamptz,
  fetched_at timestamptz,
  expires_at timestamptz,
  constraint robots_state check (state in ('wanted', 'known', 'unreachable')),
  constraint robots_known_has_age check ((state <> 'wanted') <= (fetched_at is not null and expires_at is not null)),
  constraint robots_fetcher_has_time check ((fetcher_id is null) = (fetch_until is null))
);
comment on table holdfast.robots is 'robots.txt of web sites as last fetched, shared by all nodes: one request for each site and day.';
comment on column holdfast.robots.origin is 'Scheme, host and port: https://example.com.';
comment on column holdfast.robots.state is 'wanted (never fetched), known, or unreachable: then nothing of the site is fetched, and it is asked again soon.';
comment on column holdfast.robots.status is 'Status of the answer; NULL: there was none.';
comment on column holdfast.robots.rules is 'What it said, at most 500 KiB of it; empty: everything is allowed.';
comment on column holdfast.robots.error is 'Why it is unreachable.';
comment on column holdfast.robots.fetcher_id is 'The node that fetches it just now. No foreign key: a time limit is enough.';
comment on column holdfast.robots.fetch_until is 'By then it has, or somebody else will.';
comment on column holdfast.robots.fetched_at is 'When that was.';
comment on column holdfast.robots.expires_at is 'Past this it is fetched again before the next page.';

create table holdfast.superseded (
  snapshot_id uuid not null,
  crawl_id uuid not null,
  by_id uuid not null,
  at timestamptz not null default clock_timestamp(),
  constraint superseded_pkey primary key (snapshot_id, crawl_id)
);
comment on table holdfast.superseded is 'Marked for removal: snapshots in whose place a newer one of the same URL was archived. The duty "retention" takes them.';
comment on column holdfast.superseded.snapshot_id is 'The older one. No foreign key: it may be removed otherwise meanwhile.';
comment on column holdfast.superseded.crawl_id is 'Its crawl.';
comment on column holdfast.superseded.by_id is 'The newer one.';
comment on column holdfast.superseded.at is 'When it was sealed.';

comment on column holdfast.process.worker_type is 'For a worker: what it does: all, crawl (turns seeds into snapshots) or snapshot. For the runner: worker_runner (holds the gate) or runner_waiting.';
