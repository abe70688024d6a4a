-- Web hosts: limits and robots.txt, shared by all workers.

create table holdfast.host (
  name text primary key,
  min_delay interval, robots_delay interval not null default '0',
  max_parallel integer,
  last_at timestamptz, backoff_until timestamptz,
  backoff_level integer not null default 0,
  paused boolean not null default false, reason text,
  updated_by text not null default '',
  updated_at timestamptz not null default clock_timestamp(),
  constraint host_delay check (min_delay >= '0'),
  constraint host_robots_delay check (robots_delay >= '0'),
  constraint host_parallel check (max_parallel >= 0),
  constraint host_backoff_level check (backoff_level >= 0)
);
comment on table holdfast.host is 'Hosts that crawls with limits have met, or for which users have set limits.';
comment on column holdfast.host.name is 'Host name, as snapshot.host.';
comment on column holdfast.host.min_delay is
  'Minimum time between the starts of two pages; NULL: the host_delay of each crawl.';
comment on column holdfast.host.robots_delay is
  'Crawl-delay of robots.txt. Only crawls that follow robots.txt obey it.';
comment on column holdfast.host.max_parallel is
  'Maximum number of pages at once in the whole cluster; 0: no limit; NULL: the host_parallel of each crawl.';
comment on column holdfast.host.last_at is
  'Start of the last page; where one page at a time is allowed, its end. Delays count from here.';
comment on column holdfast.host.backoff_until is 'End of the pause that the host requested (429, 503, Retry-After).';
comment on column holdfast.host.backoff_level is 'Number of consecutive requests for a pause.';
comment on column holdfast.host.paused is 'No page of the host starts until it is resumed.';
comment on column holdfast.host.reason is 'Reason for the pause or back-off.';
comment on column holdfast.host.updated_by is 'User or process that changed the row last.';
comment on column holdfast.host.updated_at is 'Time of the last change.';

create table holdfast.robots (
  origin text primary key,
  state text not null default 'wanted',
  status integer, rules text not null default '',
  error text,
  fetcher_id uuid, fetch_until timestamptz,
  fetched_at timestamptz, expires_at timestamptz,
  constraint robots_state check (state in ('wanted', 'known', 'unreachable')),
  constraint robots_known_has_age check (
    state = 'wanted' or (fetched_at is not null and expires_at is not null)),
  constraint robots_fetcher_has_time check ((fetcher_id is null) = (fetch_until is null))
);
comment on table holdfast.robots is 'robots.txt as last fetched: one request for each origin and day in all.';
comment on column holdfast.robots.origin is 'Scheme, host and port: https://example.com.';
comment on column holdfast.robots.state is 'wanted, known, or unreachable: then pages wait for a retry.';
comment on column holdfast.robots.status is 'HTTP status; NULL: no answer.';
comment on column holdfast.robots.rules is 'Text of robots.txt, at most 500 KiB; empty: everything is allowed.';
comment on column holdfast.robots.error is 'Reason why robots.txt is unreachable.';
comment on column holdfast.robots.fetcher_id is
  'Worker that fetches robots.txt. No foreign key: fetch_until limits it.';
comment on column holdfast.robots.fetch_until is 'Time after which another worker may fetch robots.txt.';
comment on column holdfast.robots.fetched_at is 'Time of the last fetch.';
comment on column holdfast.robots.expires_at is 'Time after which robots.txt is fetched again before the next page.';
