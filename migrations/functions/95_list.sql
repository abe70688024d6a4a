-- Lists for the command line: the views with the usual filters. NULL: no filter. A filter that a list does not know is an
-- argument that its function does not have. Each answers quickly in a collection of millions: what is asked for is found by an index,
-- or met soon in the order in which it is shown. Where neither is certain for one query, there is one for each case, in PL/pgSQL; those read
-- tables and run as the owner (99_roles.sql).

create or replace function holdfast.like_part(p_text text) returns text language sql immutable as $$
  select '%' || replace(replace(replace(lower(p_text), '\', '\\'), '%', '\%'), '_', '\_') || '%'
$$;
comment on function holdfast.like_part(text) is 'The pattern of what contains a text, in lower case.';

create or replace function holdfast.index_urls() returns text language plpgsql as $$
-- Parts of URLs are found by an index of trigrams. The extension comes with PostgreSQL's contrib package, and who may create in the database
-- may make it. Without it everything works; only what looks for a part of a URL reads all of them.
declare
  v_schema text;
begin
  if to_regclass('holdfast.snapshot_by_url_part') is not null then return 'there is one'; end if;
  create extension if not exists pg_trgm schema public;
  select n.nspname into v_schema from pg_catalog.pg_extension e join pg_catalog.pg_namespace n on n.oid = e.extnamespace where e.extname = 'pg_trgm';
  execute format('create index snapshot_by_url_part on holdfast.snapshot using gin (lower(url) %I.gin_trgm_ops)', v_schema);
  comment on index holdfast.snapshot_by_url_part is 'Parts of URLs, for people (--url). Costs 50 bytes and 25 microseconds a snapshot when it is made.';
  return 'made';
exception when insufficient_privilege or feature_not_supported or undefined_file or invalid_schema_name or undefined_object then
  return 'not made: ' || sqlerrm;
end $$;
comment on function holdfast.index_urls() is 'Makes the index for parts of URLs if it is not there and pg_trgm can be had; says what it did. Part of holdfast migrate.';
do $$ begin perform holdfast.index_urls(); end $$;

create or replace function holdfast.list_crawls(p_crawl uuid, p_status text, p_url text, p_tag text, p_limit bigint) returns setof holdfast.v_crawl language sql stable as $$
  select * from holdfast.v_crawl
    where (p_crawl is null or id = p_crawl)
      and (p_status is null or status = p_status)
      and (p_url is null or position(lower(p_url) in lower(first_url)) > 0)
      and (p_tag is null or p_tag = any (tags))
    order by created_at desc limit p_limit
$$;
comment on function holdfast.list_crawls(uuid, text, text, text, bigint) is 'Crawls, filtered: holdfast list crawls.';

create or replace function holdfast.snapshots_found(p_crawl uuid, p_url text, p_tag text, p_limit bigint) returns table (id uuid, crawl_id uuid)
  language plpgsql stable set enable_indexscan = off set enable_indexonlyscan = off set plan_cache_mode = force_custom_plan set jit = off as $$
-- The newest with a tag, a part of a URL, or both. By the indexes made for that: walking all snapshots in the order of their ids until
-- enough have been met looks cheaper than it is, for those with one tag are those of one crawl, side by side.
begin
  if p_tag is null then
    return query select s.id, s.crawl_id from holdfast.snapshot s
      where lower(s.url) like holdfast.like_part(p_url) and (p_crawl is null or s.crawl_id = p_crawl) order by s.id desc limit p_limit;
  else
    -- A sealed snapshot has the tags it had before, and those that were found.
    return query
      (select s.id, s.crawl_id from holdfast.snapshot s
         where s.tags @> array[p_tag] and s.tags <> '{}' and (p_crawl is null or s.crawl_id = p_crawl) and (p_url is null or lower(s.url) like holdfast.like_part(p_url))
         order by s.id desc limit p_limit)
      union
      (select e.snapshot_id, e.crawl_id from holdfast.snapshot_sealed e
         where e.tags @> array[p_tag] and e.tags <> '{}' and (p_crawl is null or e.crawl_id = p_crawl)
         order by e.snapshot_id desc limit case when p_url is null then p_limit end);
  end if;
end $$;
comment on function holdfast.snapshots_found(uuid, text, text, bigint) is 'Part of list_snapshots.';

create or replace function holdfast.list_snapshots(p_crawl uuid, p_snapshot uuid, p_status text, p_url text, p_tag text, p_limit bigint) returns setof holdfast.v_snapshot
  language plpgsql stable set plan_cache_mode = force_custom_plan set jit = off as $$
declare
  -- What is filtered only after the first cut must not be cut.
  v_first constant bigint := case when p_url is null and p_tag is null then p_limit end;
  v_found bigint;
begin
  if p_snapshot is not null then
    return query select v.* from holdfast.v_snapshot v
      where v.id = p_snapshot and (p_crawl is null or v.crawl_id = p_crawl) and (p_status is null or v.status = p_status)
        and (p_url is null or lower(v.url) like holdfast.like_part(p_url)) and (p_tag is null or p_tag = any (v.tags)) limit p_limit;
  elsif p_status in ('queued', 'started', 'paused') then
    -- Few are open. Of those started or paused even fewer, which their owner or their time tells.
    return query select v.* from (
        select q.snapshot_id, q.crawl_id from holdfast.snapshot_queue q
          where q.status = p_status and (p_crawl is null or q.crawl_id = p_crawl)
            and (p_status <> 'started' or q.owner_id is not null) and (p_status <> 'paused' or q.retry_at = holdfast.retry_at_max())
          order by q.snapshot_id desc limit v_first) q
      join holdfast.v_snapshot v on v.id = q.snapshot_id and v.crawl_id = q.crawl_id
      where (p_url is null or lower(v.url) like holdfast.like_part(p_url)) and (p_tag is null or p_tag = any (v.tags))
      order by v.id desc limit p_limit;
  elsif p_tag is not null or p_url is not null then
    -- What many have, enough of the newest may have; what few have, an index finds.
    select count(*) into v_found from (select s.url, s.tags from holdfast.snapshot s where p_crawl is null or s.crawl_id = p_crawl order by s.id desc limit 2000) x
      where (p_url is null or lower(x.url) like holdfast.like_part(p_url)) and (p_tag is null or p_tag = any (x.tags));
    if v_found >= p_limit and p_status is null then
      return query select v.* from (
          select s.id, s.crawl_id from holdfast.snapshot s where p_crawl is null or s.crawl_id = p_crawl order by s.id desc limit 2000) x
        join holdfast.v_snapshot v on v.id = x.id and v.crawl_id = x.crawl_id
        where (p_url is null or lower(v.url) like holdfast.like_part(p_url)) and (p_tag is null or p_tag = any (v.tags))
        order by v.id desc limit p_limit;
    else
      return query select v.* from holdfast.snapshots_found(p_crawl, p_url, p_tag, case when p_status is null then p_limit end) x
        join holdfast.v_snapshot v on v.id = x.id and v.crawl_id = x.crawl_id
        where p_status is null or v.status = p_status
        order by v.id desc limit p_limit;
    end if;
  else
    return query select v.* from holdfast.v_snapshot v
      where (p_crawl is null or v.crawl_id = p_crawl) and (p_status is null or v.status = p_status) and (p_url is null or lower(v.url) like holdfast.like_part(p_url))
      order by v.id desc limit p_limit;
  end if;
end $$;
comment on function holdfast.list_snapshots(uuid, uuid, text, text, text, bigint) is 'Snapshots, filtered: holdfast list snapshots.';

create or replace function holdfast.list_results(p_crawl uuid, p_snapshot uuid, p_status text, p_url text, p_limit bigint) returns setof holdfast.v_result
  language plpgsql stable set enable_mergejoin = off set enable_hashjoin = off set plan_cache_mode = force_custom_plan set jit = off as $$
-- Ids are in the order of time, and an index has them: those of a crawl are found by its snapshots, all others by the results. A merge
-- would read the results of all crawls.
begin
  if p_snapshot is null and p_status in ('failed', 'skipped', 'noresults') then
    return query select v.* from (
        select r.snapshot_id, r.crawl_id, r.fence, r.plugin, r.hook_name from holdfast.archive_result r
          where r.status = p_status and r.status in ('failed', 'skipped', 'noresults') and (p_crawl is null or r.crawl_id = p_crawl)
          order by r.snapshot_id desc, r.started_at desc limit case when p_url is null then p_limit end) x
      join holdfast.v_result v on v.snapshot_id = x.snapshot_id and v.crawl_id = x.crawl_id and v.fence = x.fence and v.plugin = x.plugin and v.hook_name = x.hook_name
      where p_url is null or lower(v.url) like holdfast.like_part(p_url)
      order by v.snapshot_id desc, v.started_at desc limit p_limit;
  elsif p_snapshot is null and p_status in ('queued', 'started') then
    return query select v.* from holdfast.v_result v
      where v.ended_at is null and v.status = p_status and (p_crawl is null or v.crawl_id = p_crawl) and (p_url is null or lower(v.url) like holdfast.like_part(p_url))
      order by v.snapshot_id desc, v.started_at desc limit p_limit;
  elsif p_snapshot is null and (p_crawl is not null or p_url is not null) then
    return query
      select v.* from holdfast.snapshot s
        cross join lateral (select * from holdfast.v_result r where r.snapshot_id = s.id and r.crawl_id = s.crawl_id
                              and (p_status is null or r.status = p_status)) v
        where (p_crawl is null or s.crawl_id = p_crawl) and (p_url is null or lower(s.url) like holdfast.like_part(p_url))
        order by s.id desc, v.started_at desc limit p_limit;
  else
    return query
      select v.* from holdfast.v_result v
        where (p_crawl is null or v.crawl_id = p_crawl) and (p_snapshot is null or v.snapshot_id = p_snapshot)
          and (p_status is null or v.status = p_status) and (p_url is null or lower(v.url) like holdfast.like_part(p_url))
        order by v.snapshot_id desc, v.started_at desc limit p_limit;
  end if;
end $$;
comment on function holdfast.list_results(uuid, uuid, text, text, bigint) is 'Results, filtered: holdfast list results.';

create or replace function holdfast.list_queue(p_crawl uuid, p_snapshot uuid, p_status text, p_url text, p_limit bigint) returns setof holdfast.v_queue language sql stable as $$
  select * from holdfast.v_queue
    where (p_crawl is null or crawl_id = p_crawl)
      and (p_snapshot is null or id = p_snapshot)
      and (p_status is null or status = p_status) and (p_status is distinct from 'paused' or retry_at = holdfast.retry_at_max())
      and (p_url is null or lower(url) like holdfast.like_part(p_url))
    order by retry_at limit p_limit
$$;
comment on function holdfast.list_queue(uuid, uuid, text, text, bigint) is 'Queue, filtered: holdfast list queue.';

drop function if exists holdfast.list_running(uuid, uuid, text, bigint);
create or replace function holdfast.list_running(p_crawl uuid, p_snapshot uuid, p_url text, p_limit bigint, p_plugin text default null) returns setof holdfast.v_running language sql stable as $$
  select * from holdfast.v_running
    where (p_crawl is null or crawl_id = p_crawl)
      and (p_snapshot is null or snapshot_id = p_snapshot)
      and (p_url is null or lower(url) like holdfast.like_part(p_url))
      and (p_plugin is null or plugin = p_plugin)
    order by running_for desc limit p_limit
$$;
comment on function holdfast.list_running(uuid, uuid, text, bigint, text) is 'Running, filtered: holdfast list running.';

create or replace function holdfast.list_nodes(p_status text, p_limit bigint) returns setof holdfast.v_node language sql stable as $$
  select * from holdfast.v_node
    where (p_status is null or status = p_status)
    order by started_at desc limit p_limit
$$;
comment on function holdfast.list_nodes(text, bigint) is 'Nodes, filtered: holdfast list nodes.';

create or replace function holdfast.snapshot_events(p_snapshot uuid) returns setof holdfast.v_event language sql stable as $$
  -- What is recorded of one snapshot. Its starts, and its seal, are recorded together with those of others, where nobody can find them by its id; they stand
  -- in its own rows as well. id: NULL for these. Recorded singly, as by revision 18 and older programs, they are not said twice.
  with single as (
    select e.at, e.lifecycle, e.object_id, e.crawl_id, e.from_state, e.event, e.to_state, p.label as process, e.detail, e.id
      from holdfast.event e left join holdfast.process p on p.id = e.process_id where e.object_id = p_snapshot
  ), shared as (
    select a.started_at as at, a.crawl_id, 'queued' as from_state, 'start' as event, 'started' as to_state, a.process_id, null as detail
      from holdfast.v_attempt a where a.snapshot_id = p_snapshot and a.started_at is not null
    union all
    select q.started_at, q.crawl_id, 'queued', 'start', 'started', q.owner_id, null from holdfast.snapshot_queue q where q.snapshot_id = p_snapshot and q.started_at is not null
    union all
    select e.sealed_at, e.crawl_id, 'started', 'seal', 'sealed', e.owner_id, e.outcome || coalesce(': ' || e.reason, '')
      from holdfast.snapshot_sealed e where e.snapshot_id = p_snapshot and e.outcome not in ('refused', 'quarantined', 'cancelled')
  )
  select * from single
  union all
  select s.at, 'snapshot', p_snapshot, s.crawl_id, s.from_state, s.event, s.to_state, p.label, s.detail, null
    from shared s left join holdfast.process p on p.id = s.process_id
    where not exists (select from single o where o.event = s.event and o.at between s.at - interval '1 second' and s.at + interval '1 second')
$$;
comment on function holdfast.snapshot_events(uuid) is 'What happened to a snapshot.';

create or replace function holdfast.list_events_after(p_id bigint, p_limit bigint, p_crawl uuid) returns setof holdfast.v_event language plpgsql stable as $$
-- By ids, so that what one call did to many snapshots is told whole.
declare
  v_last bigint;
begin
  if p_crawl is null then
    select max(n.id) into v_last from (select e.id from holdfast.event e where e.id > p_id order by e.id limit p_limit) n;
    return query select v.* from holdfast.v_event v where v.id > p_id and v.id <= v_last order by v.id;
  else
    select max(n.id) into v_last from (select e.id from holdfast.event e where e.crawl_id = p_crawl and e.id > p_id order by e.crawl_id, e.id limit p_limit) n;
    return query select v.* from holdfast.v_event v where v.crawl_id = p_crawl and v.id > p_id and v.id <= v_last order by v.id;
  end if;
end $$;
comment on function holdfast.list_events_after(bigint, bigint, uuid) is 'Events in their order, of so many ids after one: holdfast events --follow.';

create or replace function holdfast.list_events(p_crawl uuid, p_snapshot uuid, p_limit bigint) returns setof holdfast.v_event language plpgsql stable as $$
begin
  if p_snapshot is not null then
    return query select v.* from holdfast.snapshot_events(p_snapshot) v where p_crawl is null or v.crawl_id = p_crawl order by v.at desc, v.id desc limit p_limit;
  elsif p_crawl is not null then
    -- Not "=": all events in the order of their ids, until enough of the crawl have been met, would look cheaper than they are.
    return query select v.* from holdfast.v_event v where v.crawl_id >= p_crawl and v.crawl_id <= p_crawl order by v.crawl_id desc, v.id desc limit p_limit;
  else
    return query select v.* from holdfast.v_event v order by v.id desc limit p_limit;
  end if;
end $$;
comment on function holdfast.list_events(uuid, uuid, bigint) is 'Events, filtered: holdfast list events.';

drop function if exists holdfast.list_failures(uuid, uuid, text, bigint);
create or replace function holdfast.list_failures(p_crawl uuid, p_snapshot uuid, p_url text, p_limit bigint, p_plugin text default null) returns setof holdfast.v_failure language sql stable as $$
  select * from holdfast.v_failure
    where (p_crawl is null or crawl_id = p_crawl)
      and (p_snapshot is null or snapshot_id = p_snapshot)
      and (p_url is null or lower(url) like holdfast.like_part(p_url))
      and (p_plugin is null or plugin = p_plugin)
    order by ended_at desc limit p_limit
$$;
comment on function holdfast.list_failures(uuid, uuid, text, bigint, text) is 'Failures, filtered: holdfast list failures.';

create or replace function holdfast.list_hosts(p_url text, p_limit bigint) returns setof holdfast.v_host language sql stable as $$
  select * from holdfast.v_host
    where (p_url is null or position(lower(p_url) in lower(name)) > 0)
    order by name limit p_limit
$$;
comment on function holdfast.list_hosts(text, bigint) is 'Hosts, filtered: holdfast list hosts.';

create or replace function holdfast.list_sessions(p_crawl uuid, p_status text, p_limit bigint) returns setof holdfast.v_session language sql stable as $$
  select * from holdfast.v_session
    where (p_crawl is null or crawl_id = p_crawl)
      and (p_status is null or status = p_status)
    order by opened_at desc limit p_limit
$$;
comment on function holdfast.list_sessions(uuid, text, bigint) is 'Crawl sessions, filtered: holdfast list sessions.';
