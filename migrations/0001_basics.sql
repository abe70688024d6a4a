-- The schema, functions that tables need, and the tables that belong to the whole collection. Numbered files
-- hold tables and never change after their release; README.md lists all files.

-- "if not exists" demands a privilege on the database even if the schema exists.
do $$ begin if to_regnamespace('holdfast') is null then create schema holdfast; end if; end $$;
comment on schema holdfast is
  'Holdfast, a distributed web archive. Read the v_* views and call the functions; tables may change between '
  'releases.';

create table holdfast.schema_migration (
  name text primary key, number integer,
  checksum text not null,
  breaking boolean not null default false,
  applied_at timestamptz not null default clock_timestamp()
);
comment on table holdfast.schema_migration is 'The ledger of holdfast migrate: which files were applied.';
comment on column holdfast.schema_migration.name is 'File name.';
comment on column holdfast.schema_migration.number is 'Number of the file; NULL: a file of functions.';
comment on column holdfast.schema_migration.checksum is 'SHA-256 of the file''s text.';
comment on column holdfast.schema_migration.breaking is 'Programs that do not know this file cannot work any more.';
comment on column holdfast.schema_migration.applied_at is 'Time of the last application.';

-- Functions that tables need --------------------------------------------------------------------------------
-- All others are in functions/. Those in checks and generated columns are in PL/pgSQL: PostgreSQL would parse
-- an inlined SQL function again with every insert, which takes 0.2 to 0.3 ms.

create function holdfast.new_uuid() returns uuid language sql volatile parallel safe as $$
  -- UUID version 7 (RFC 9562), ordered by time: 48 bits of milliseconds, 12 bits of their 4096ths (method 3),
  -- then random bits. PostgreSQL 18 has its own.
  select (overlay(lpad(to_hex(floor(extract(epoch from clock_timestamp()) * 4096000)::bigint), 15, '0')
                  placing '7' from 13 for 0)
          || substr(replace(gen_random_uuid()::text, '-', ''), 17))::uuid
$$;
comment on function holdfast.new_uuid() is 'A new UUID of version 7, ordered by time.';

create function holdfast.retry_at_max() returns timestamptz language sql immutable parallel safe as $$
  -- The due time of what is parked.
  select timestamptz '9999-01-01T00:00:00Z'
$$;
comment on function holdfast.retry_at_max() is 'Due time of parked rows.';

create function holdfast.host_of(p_url text) returns text language plpgsql immutable parallel safe as $$
-- The host of a canonical URL, as url.host in lib/base/url.cpp: without port, an IPv6 address without
-- brackets. NULL if the URL is not canonical: another scheme, a user name, upper case, no path.
declare
  v_authority constant text := split_part(p_url, '/', 3);
begin
  if p_url not like 'http://%/%' and p_url not like 'https://%/%' then return null; end if;
  if v_authority ~ '^[a-z0-9._-]+(:[0-9]+)?$' then return split_part(v_authority, ':', 1); end if;
  if v_authority ~ '^\[[0-9a-f:.]+\](:[0-9]+)?$' then
    return split_part(ltrim(v_authority, '['), ']', 1);
  end if;
  return null;
end $$;

create function holdfast.is_attempt_directory(p_directory text, p_snapshot uuid, p_fence bigint)
  returns boolean language plpgsql immutable parallel safe as $$
-- yyyy/mm/<host directory>/<snapshot id>/a<fence>, below the archive root. A component of dots only never
-- matches.
begin
  return p_directory ~ '^[0-9]{4}/[0-9]{2}/[.]*[a-z0-9_-][a-z0-9._-]*/[0-9a-f-]+/a[0-9]+$'
     and split_part(p_directory, '/', 4) = p_snapshot::text
     and split_part(p_directory, '/', 5) = 'a' || p_fence;
end $$;

create function holdfast.fact_integer(p_facts jsonb, p_name text)
  returns bigint language sql immutable parallel safe as $$
  -- The planner puts this in line, so that an index on it is found.
  select case jsonb_typeof(p_facts -> p_name) when 'number' then (p_facts -> p_name)::bigint end
$$;
comment on function holdfast.fact_integer(jsonb, text) is
  'A fact of a page as an integer; NULL: unknown, or another type.';

create function holdfast.is_facts(p_facts jsonb)
  returns boolean language plpgsql immutable parallel safe as $$
-- A document as read_facts() in lib/base/text/facts.cpp makes it: names in lower case, and numbers that are
-- exact in JSON. Hooks choose most facts; only those that queries compute with have a type here. (A bound on
-- the length of names would take 40 us.)
declare
  c_id constant text := '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$';
  c_uncountable constant jsonpath :=
    '$.keyvalue() ? (@.key like_regex "^(requests|requests_refused|received_bytes|bytes_saved|words_added|'
    'words_removed|words_moved|links_added|links_removed|change_share|look_share)$"'
    ' && (@.value.type() != "number" || @.value < 0))';
begin
  return jsonb_typeof(p_facts) = 'object'
     and octet_length(p_facts::text) <= 131072
     and not p_facts @? '$.keyvalue() ? (!(@.key like_regex "^[a-z][a-z0-9_]*$"))'
     and not p_facts @? 'strict $.* ? (@ < -9007199254740992 || @ > 9007199254740992)'
     and coalesce(holdfast.fact_integer(p_facts, 'http_status') between 100 and 999, not p_facts ? 'http_status')
     and coalesce(p_facts ->> 'mime' ~ '^[a-z0-9!#$&^_.+-]+/[a-z0-9!#$&^_.+-]+$', not p_facts ? 'mime')
     and coalesce(jsonb_typeof(p_facts -> 'unrecorded') = 'object', true)
     and coalesce(jsonb_typeof(p_facts -> 'found') = 'array', true)
     and coalesce(jsonb_typeof(p_facts -> 'number') = 'number', true)
     and not p_facts @? c_uncountable
     and coalesce(p_facts ->> 'change_from' ~ c_id, not p_facts ? 'change_from')
     and coalesce(p_facts ->> 'files_from' ~ c_id, not p_facts ? 'files_from')
     and coalesce(holdfast.fact_integer(p_facts, 'resources_missing')
                    between 0 and holdfast.fact_integer(p_facts, 'resources')
                  and jsonb_typeof(p_facts -> 'missing_reasons') = 'object',
                  not p_facts ?| '{resources, resources_missing, missing_reasons}');
end $$;

-- The collection --------------------------------------------------------------------------------------------

create table holdfast.collection (
  singleton boolean primary key default true,
  id uuid not null default gen_random_uuid(), created_at timestamptz not null default clock_timestamp(),
  paused_at timestamptz, paused_by text,
  log_level text,
  system_identifier bigint not null default (pg_catalog.pg_control_system()).system_identifier,
  max_attempts integer not null default 5, max_lapses integer not null default 3,
  max_worker_errors integer not null default 10,
  retry_base interval not null default '5 seconds',
  retry_max interval not null default '10 minutes',
  constraint collection_is_one_row check (singleton),
  constraint collection_log_level check (log_level in ('trace', 'debug', 'info', 'warn', 'error', 'off')),
  constraint collection_max_attempts check (max_attempts > 0),
  constraint collection_max_lapses check (max_lapses > 0),
  constraint collection_max_worker_errors check (max_worker_errors > 0),
  constraint collection_retries check (retry_base > '0' and retry_max >= retry_base)
);
comment on table holdfast.collection is 'The one row that names this collection, with settings of all its workers.';
comment on column holdfast.collection.singleton is 'Always true: there is one row.';
comment on column holdfast.collection.id is
  'Identity; .holdfast-archive in the archive root carries the same id.';
comment on column holdfast.collection.created_at is 'Time at which the schema was created.';
comment on column holdfast.collection.paused_at is 'Start of a pause of all claims (pause --all); NULL: not paused.';
comment on column holdfast.collection.paused_by is 'User who paused everything, and why.';
comment on column holdfast.collection.log_level is
  'Log level of all workers and runners; NULL: as each is configured.';
comment on column holdfast.collection.system_identifier is
  'Identifier of the server that the collection was made on, or was last restored on with restored().';
comment on column holdfast.collection.max_attempts is 'A page that failed this often is sealed as failed.';
comment on column holdfast.collection.max_lapses is
  'A page whose worker lapsed this often is quarantined.';
comment on column holdfast.collection.max_worker_errors is
  'Limit for releases of one page because of errors of workers (a full disk, an unreachable archive). Then the page '
  'is sealed as failed.';
comment on column holdfast.collection.retry_base is 'Delay before the second attempt. It doubles each time.';
comment on column holdfast.collection.retry_max is 'Longest delay between two attempts.';
insert into holdfast.collection default values;

create table holdfast.tally (
  name text primary key, value bigint not null default 0
);
comment on table holdfast.tally is 'Counters of rare events since the collection was created.';
comment on column holdfast.tally.name is 'workers_lapsed, takeovers, bytes_saved/0 to bytes_saved/15.';
comment on column holdfast.tally.value is 'Number of occurrences, or bytes.';
insert into holdfast.tally (name) values ('workers_lapsed'), ('takeovers');

-- Lifecycles as rows ----------------------------------------------------------------------------------------

create table holdfast.lifecycle_edge (
  lifecycle text not null, from_state text not null, event text not null, to_state text not null,
  why text not null,
  constraint lifecycle_edge_pkey primary key (lifecycle, from_state, event)
);
comment on table holdfast.lifecycle_edge is
  'Every legal transition; triggers refuse all others (HF001). lib/store/lifecycle.hpp holds the same rows.';
comment on column holdfast.lifecycle_edge.lifecycle is 'Name of the lifecycle.';
comment on column holdfast.lifecycle_edge.from_state is 'State before.';
comment on column holdfast.lifecycle_edge.event is 'Name of the transition.';
comment on column holdfast.lifecycle_edge.to_state is 'State after.';
comment on column holdfast.lifecycle_edge.why is 'A sentence for logs.';
create index lifecycle_edge_by_states on holdfast.lifecycle_edge (lifecycle, from_state, to_state);
comment on index holdfast.lifecycle_edge_by_states is 'Transitions between two states.';

insert into holdfast.lifecycle_edge (lifecycle, from_state, event, to_state, why) values
  ('crawl', 'queued', 'start', 'started', 'its first seeds became snapshots'),
  ('crawl', 'queued', 'seal', 'sealed', 'none of its seeds became a snapshot'),
  ('crawl', 'queued', 'pause', 'paused', 'it was paused'),
  ('crawl', 'queued', 'cancel', 'sealed', 'it was cancelled'),
  ('crawl', 'started', 'seal', 'sealed', 'its last snapshot was sealed'),
  ('crawl', 'started', 'pause', 'paused', 'it was paused'),
  ('crawl', 'started', 'cancel', 'sealed', 'it was cancelled'),
  ('crawl', 'paused', 'resume', 'queued', 'it was resumed'),
  ('crawl', 'paused', 'cancel', 'sealed', 'it was cancelled'),
  ('snapshot', 'queued', 'start', 'started', 'a worker claimed it'),
  ('snapshot', 'queued', 'pause', 'paused', 'it was paused, or its scope excludes it'),
  ('snapshot', 'queued', 'cancel', 'sealed', 'it or its crawl was cancelled'),
  ('snapshot', 'started', 'seal', 'sealed', 'every hook has ended and its files are published'),
  ('snapshot', 'started', 'release', 'queued', 'its worker released it'),
  ('snapshot', 'started', 'lapse', 'queued', 'its worker lapsed'),
  ('snapshot', 'started', 'pause', 'paused', 'it was paused, or its scope excludes it'),
  ('snapshot', 'started', 'refuse', 'sealed', 'its URL is not allowed'),
  ('snapshot', 'started', 'quarantine', 'sealed', 'its workers lapsed too often'),
  ('snapshot', 'started', 'cancel', 'sealed', 'it or its crawl was cancelled'),
  ('snapshot', 'paused', 'resume', 'queued', 'it was resumed, or its scope includes it'),
  ('snapshot', 'paused', 'cancel', 'sealed', 'it or its crawl was cancelled'),
  ('archive_result', 'started', 'succeed', 'succeeded', 'its hook did its work'),
  ('archive_result', 'started', 'fail', 'failed', 'its hook failed'),
  ('archive_result', 'started', 'skip', 'skipped', 'its hook had nothing to run with'),
  ('archive_result', 'started', 'find_nothing', 'noresults', 'its hook found nothing'),
  ('binary', 'queued', 'install', 'installed', 'the binary was found'),
  ('binary', 'installed', 'recheck', 'queued', 'the binary is gone or has changed'),
  ('session', 'opening', 'open', 'ready', 'its crawl hooks are done or ready'),
  ('session', 'opening', 'fail', 'failed', 'a crawl hook failed'),
  ('session', 'opening', 'drain', 'draining', 'its worker is stopping'),
  ('session', 'opening', 'lapse', 'closed', 'its worker lapsed'),
  ('session', 'ready', 'fail', 'failed', 'a crawl hook that should stay has ended'),
  ('session', 'ready', 'drain', 'draining', 'no page needs it, or its worker is stopping'),
  ('session', 'ready', 'lapse', 'closed', 'its worker lapsed'),
  ('session', 'draining', 'close', 'closed', 'its hooks have ended'),
  ('session', 'draining', 'lapse', 'closed', 'its worker lapsed'),
  ('process', 'running', 'exit', 'exited', 'it stopped, or its lease lapsed'),
  ('delivery', 'waiting', 'deliver', 'delivered', 'its receiver accepted it'),
  ('delivery', 'waiting', 'give_up', 'given_up', 'its receiver did not accept it in time'),
  ('delivery', 'given_up', 'retry', 'waiting', 'it was retried by hand');

create table holdfast.event (
  id bigint generated always as identity primary key,
  at timestamptz not null default clock_timestamp(),
  lifecycle text not null,
  object_id uuid, objects uuid[], crawl_id uuid,
  from_state text, event text not null, to_state text not null,
  process_id uuid, detail text,
  constraint event_has_object check (num_nonnulls(object_id, objects) = 1)
);
comment on table holdfast.event is
  'Append-only record of every transition, written by its transaction. No foreign keys: events outlive '
  'their objects.';
comment on column holdfast.event.id is 'Order of recording.';
comment on column holdfast.event.at is 'Time of the transition.';
comment on column holdfast.event.lifecycle is 'Name of the lifecycle.';
comment on column holdfast.event.object_id is
  'Crawl, snapshot, session or process; for a persona, the crawl that found it signed out.';
comment on column holdfast.event.objects is
  'Instead of object_id: the snapshots of a crawl that one call started or sealed. v_event has a row '
  'for each.';
comment on column holdfast.event.crawl_id is 'Crawl to which the object belongs, if any.';
comment on column holdfast.event.from_state is 'State before; NULL: the object was created.';
comment on column holdfast.event.event is 'The transition; "direct" if the row was changed by hand.';
comment on column holdfast.event.to_state is 'State after.';
comment on column holdfast.event.process_id is 'Process that made the transition, if one did.';
comment on column holdfast.event.detail is 'A sentence for users.';
create index event_by_crawl on holdfast.event (crawl_id, id);
comment on index holdfast.event_by_crawl is 'Events of a crawl and of everything in it.';
create index event_of_object on holdfast.event (object_id, id) where object_id is not null;
comment on index holdfast.event_of_object is 'Events of one object. See objects for sets of snapshots.';
create index event_by_time on holdfast.event using brin (at);
comment on index holdfast.event_by_time is 'For trimming. Rows are in the order of time: BRIN costs nothing.';
