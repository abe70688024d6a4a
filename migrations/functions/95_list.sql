-- Lists that are more than a view with a condition for each filter (lib/catalog/list.cpp has them all).
-- NULL: no filter. A list has no argument for a filter that it does not support. Each answers quickly in a
-- collection of millions: an index finds the rows, or they are met soon in the order in which they are shown.
-- Where neither is certain for one query, there is one query for each case, in PL/pgSQL; those functions read
-- tables and run as the owner (99_roles.sql).

create or replace function holdfast.has_part(p_text text, p_part text)
  returns boolean language sql immutable as $$
  select p_part is null
    or lower(p_text) like '%' || regexp_replace(lower(p_part), '([\\%_])', '\\\1', 'g') || '%'
$$;
comment on function holdfast.has_part is 'Returns true if a text contains another, in any case; NULL is in all.';

create or replace function holdfast.index_urls()
  returns text language plpgsql as $$
-- Makes the trigram index that finds parts of URLs. The extension comes with PostgreSQL's contrib package; a
-- user who may create in the database may install it. Without it, a search for a part reads all URLs.
-- Returns why it could not be made; NULL: it is there.
declare
  v_schema text;
begin
  if to_regclass('holdfast.snapshot_by_url_part') is not null then return null; end if;
  create extension if not exists pg_trgm schema public;
  select extnamespace::regnamespace into v_schema from pg_catalog.pg_extension where extname = 'pg_trgm';
  execute format(
    'create index snapshot_by_url_part on holdfast.snapshot using gin (lower(url) %s.gin_trgm_ops)',
    v_schema);
  comment on index holdfast.snapshot_by_url_part is
  'Parts of URLs, for users (--url). Costs 50 bytes and 25 microseconds for each new snapshot.';
  return null;
exception
  when insufficient_privilege or feature_not_supported or undefined_file or invalid_schema_name
       or undefined_object then
    return sqlerrm;
end $$;
do $$ begin perform holdfast.index_urls(); end $$;

create or replace function holdfast.snapshots_found(
    p_crawl uuid, p_url text, p_host text, p_tag text, p_before uuid, p_limit bigint)
  returns table (id uuid)
  language plpgsql stable as $$
-- The newest with a tag, a part of a URL or a host (whose name is a part of the URL), by the indexes for
-- those. All are found, then ordered: the planner underestimates a walk over all snapshots in the order of
-- their ids, because the snapshots with one tag belong to one crawl and are neighbours.
begin
  if p_tag is null then
    return query
      with found as materialized (
        select s.id
          from holdfast.snapshot s
          where holdfast.has_part(s.url, p_url) and (p_crawl is null or s.crawl_id = p_crawl)
            and holdfast.has_part(s.url, p_host) and (p_host is null or s.host = p_host)
            and (p_before is null or s.id < p_before))
      select f.id from found f order by f.id desc limit p_limit;
  else
    return query
      with found as materialized (
        select s.id
          from holdfast.snapshot s
          where s.tags @> array[p_tag] and s.tags <> '{}' and (p_crawl is null or s.crawl_id = p_crawl)
            and holdfast.has_part(s.url, p_url) and (p_host is null or s.host = p_host)
            and (p_before is null or s.id < p_before))
      select f.id from found f order by f.id desc limit p_limit;
  end if;
end $$;

create or replace function holdfast.list_snapshots(p_crawl uuid,
    p_snapshot uuid, p_status text, p_url text, p_tag text, p_limit bigint, p_outcome text default null,
    p_host text default null, p_since timestamptz default null, p_before uuid default null)
  returns setof holdfast.v_snapshot
  language plpgsql stable as $$
declare
  v_oldest constant uuid := holdfast.first_id(p_since);
  v_searched constant boolean := num_nonnulls(p_url, p_tag, p_host) > 0;
  -- A filter that is applied later must see all rows.
  v_first constant bigint := case when not v_searched then p_limit end;
  v_ids uuid[]; -- NULL: any
  v_paused uuid[]; -- crawls
begin
  if p_snapshot is not null then
    v_ids := array[p_snapshot];
  elsif p_status in ('queued', 'started', 'paused') then
    v_paused := array(select c.id
                        from holdfast.crawl c
                        where c.status = 'paused' and c.status <> 'sealed'
                          and (p_crawl is null or c.id = p_crawl));
    -- Few are open, and fewer are started or paused; indexes by owner, by time and by crawl find those.
    v_ids := array(select q.snapshot_id
                     from holdfast.snapshot_queue q
                     where q.status = p_status and (p_crawl is null or q.crawl_id = p_crawl)
                       and (p_status <> 'started' or q.owner_id is not null)
                       and (p_status <> 'queued' or q.crawl_id <> all (v_paused))
                       and (p_status <> 'paused' or q.retry_at = holdfast.retry_at_max())
                       and (v_oldest is null or q.snapshot_id >= v_oldest)
                       and (p_before is null or q.snapshot_id < p_before)
                     order by q.snapshot_id desc limit v_first);
    if p_status = 'paused' and v_paused <> '{}' then
      v_ids := v_ids || array(select q.snapshot_id
                                from holdfast.snapshot_queue q
                                where q.crawl_id = any (v_paused) and q.owner_id is null
                                  and q.status = 'queued'
                                  and (v_oldest is null or q.snapshot_id >= v_oldest)
                                  and (p_before is null or q.snapshot_id < p_before)
                                order by q.snapshot_id desc limit v_first);
    end if;
  elsif v_first is not null and p_outcome <> 'succeeded' and p_before is null then
    -- An index has those by the time when they were sealed, which is not the order of pages of a list.
    v_ids := array(select e.snapshot_id
                     from holdfast.snapshot_sealed e
                     where e.outcome = p_outcome and e.outcome <> 'succeeded'
                       and (p_crawl is null or e.crawl_id = p_crawl)
                       and (p_since is null or (e.sealed_at >= p_since and e.snapshot_id >= v_oldest))
                     order by e.sealed_at desc limit v_first);
  elsif v_first is not null and p_crawl is null and (p_status = 'sealed' or p_outcome is not null) then
    v_ids := array(select e.snapshot_id
                     from holdfast.snapshot_sealed e
                     where (p_outcome is null or e.outcome = p_outcome)
                       and (v_oldest is null or e.snapshot_id >= v_oldest)
                       and (p_before is null or e.snapshot_id < p_before)
                     order by e.snapshot_id desc limit v_first);
  elsif p_crawl is not null and num_nonnulls(p_status, p_outcome) = 0 and not v_searched then
    v_ids := array(select s.id
                     from holdfast.snapshot s
                     -- Written like this, only the index by crawl gives the order. The one by id has
                     -- the snapshots of all crawls of the time.
                     where s.crawl_id between p_crawl and p_crawl
                       and (v_oldest is null or s.id >= v_oldest) and (p_before is null or s.id < p_before)
                     order by s.crawl_id desc, s.id desc limit p_limit);
  elsif v_searched then
    -- A frequent word is found among the newest snapshots, a rare one by an index.
    v_ids := array(select x.id
                     from (select s.id, s.url, s.host, s.tags
                             from holdfast.snapshot s
                             where (p_crawl is null or s.crawl_id = p_crawl)
                               and (p_before is null or s.id < p_before)
                             order by s.id desc limit 2000) x
                     where holdfast.has_part(x.url, p_url) and (p_tag is null or p_tag = any (x.tags))
                       and (p_host is null or x.host = p_host)
                     order by x.id desc limit p_limit);
    if num_nonnulls(p_status, p_outcome) > 0 or cardinality(v_ids) < p_limit then
      v_ids := array(select f.id
                       from holdfast.snapshots_found(
                              p_crawl, p_url, p_host, p_tag, p_before,
                              case when num_nonnulls(p_status, p_outcome) = 0 then p_limit end) f);
    end if;
  end if;
  return query
    select v.*
      from holdfast.v_snapshot v
      where (v_ids is null or v.id = any (v_ids)) and (p_crawl is null or v.crawl_id = p_crawl)
        and (p_status is null or v.status = p_status) and holdfast.has_part(v.url, p_url)
        and (p_tag is null or p_tag = any (v.tags)) and (p_outcome is null or v.outcome = p_outcome)
        and (p_host is null or v.host = p_host) and (v_oldest is null or v.id >= v_oldest)
        and (p_before is null or v.id < p_before)
      order by v.id desc limit p_limit;
end $$;
comment on function holdfast.list_snapshots is 'Snapshots: list snapshots.';

create or replace function holdfast.snapshot_number(
    p_number bigint, p_status text, p_url text, p_tag text)
  returns uuid language plpgsql stable as $$
-- Only ids are read, by an index: a list that begins behind them costs no more than one that begins at the
-- first.
begin
  if p_status = 'sealed' and num_nonnulls(p_url, p_tag) = 0 then
    return (select e.snapshot_id
              from holdfast.snapshot_sealed e
              order by e.snapshot_id desc offset p_number - 1 limit 1);
  end if;
  return (select s.id
            from holdfast.snapshot s
            where holdfast.has_part(s.url, p_url) and (p_tag is null or p_tag = any (s.tags))
              and (p_status is null or exists (select
                                                 from holdfast.v_snapshot v
                                                 where v.id = s.id and v.crawl_id = s.crawl_id
                                                   and v.status = p_status))
            order by s.id desc offset p_number - 1 limit 1);
end $$;
comment on function holdfast.snapshot_number is
  'Returns the id of the p_number-th newest snapshot of a list, at which the rest of the list begins. NULL: the list '
  'is shorter.';

create or replace function holdfast.list_results(p_crawl uuid,
    p_snapshot uuid, p_status text, p_url text, p_limit bigint)
  returns setof holdfast.v_result
  language plpgsql stable as $$
-- Ids are in the order of time, and an index has them: those of a crawl are found by its snapshots, all
-- others by the results. "offset 0" looks up one after the other: a merge or a hash join would read the
-- results of all crawls.
begin
  if p_snapshot is null and p_status in ('failed', 'skipped', 'noresults') then
    return query
      select v.*
        from (select r.snapshot_id, r.crawl_id, r.fence, r.plugin, r.hook_name
                from holdfast.archive_result r
                where r.status = p_status and r.status in ('failed', 'skipped', 'noresults')
                  and (p_crawl is null or r.crawl_id = p_crawl)
                order by r.snapshot_id desc, r.started_at desc
                limit case when p_url is null then p_limit end) x
        cross join lateral (select *
                              from holdfast.v_result r
                              where r.snapshot_id = x.snapshot_id and r.crawl_id = x.crawl_id
                                and r.fence = x.fence and r.plugin = x.plugin and r.hook_name = x.hook_name
                              offset 0) v
        where holdfast.has_part(v.url, p_url)
        order by v.snapshot_id desc, v.started_at desc limit p_limit;
  elsif p_snapshot is null and p_status is distinct from 'started' and p_crawl is not null then
    return query
      select v.*
        from (select *
                from holdfast.snapshot s
                where s.crawl_id between p_crawl and p_crawl and holdfast.has_part(s.url, p_url)
                order by s.crawl_id desc, s.id desc) s -- as in list_snapshots()
        cross join lateral (select *
                              from holdfast.v_result r
                              where r.snapshot_id = s.id and r.crawl_id = s.crawl_id
                                and (p_status is null or r.status = p_status)
                              offset 0) v
        order by s.crawl_id desc, s.id desc, v.started_at desc limit p_limit;
  elsif p_snapshot is null and p_status is distinct from 'started' and p_url is not null then
    return query
      select v.*
        from (select f.id
                from holdfast.snapshots_found(null, p_url, null, null, null, null) f
                order by f.id desc) f
        cross join lateral (select s.crawl_id from holdfast.snapshot s where s.id = f.id limit 1) s
        cross join lateral (select *
                              from holdfast.v_result r
                              where r.snapshot_id = f.id and r.crawl_id = s.crawl_id
                                and (p_status is null or r.status = p_status)
                              offset 0) v
        order by f.id desc, v.started_at desc limit p_limit;
  else -- The few that run, those of a snapshot, or the newest of all.
    return query
      select v.*
        from holdfast.v_result v
        where (p_crawl is null or v.crawl_id = p_crawl) and (p_snapshot is null or v.snapshot_id = p_snapshot)
          and (p_status is null or v.status = p_status) and holdfast.has_part(v.url, p_url)
        order by v.snapshot_id desc, v.started_at desc limit p_limit;
  end if;
end $$;
comment on function holdfast.list_results is 'Results: holdfast list results.';

create or replace function holdfast.list_queue(p_crawl uuid,
    p_snapshot uuid, p_status text, p_url text, p_limit bigint)
  returns setof holdfast.v_queue language sql stable as $$
  select *
    from holdfast.v_queue
    where (p_crawl is null or crawl_id = p_crawl) and (p_snapshot is null or id = p_snapshot)
      and (p_status is null or status = p_status) and holdfast.has_part(url, p_url)
      and (p_status is distinct from 'started' or owner_id is not null) -- an index has those
    order by retry_at limit p_limit
$$;
comment on function holdfast.list_queue is 'The queue: holdfast list queue.';

create or replace function holdfast.list_failures(p_crawl uuid,
    p_snapshot uuid, p_url text, p_limit bigint, p_plugin text default null, p_host text default null,
    p_since timestamptz default null)
  returns setof holdfast.v_failure
  language plpgsql stable as $$
-- A rare part of a URL is found by the index of snapshots, all else by that of failures.
declare
  v_frequent constant boolean := p_url is not null and num_nonnulls(p_snapshot, p_plugin, p_host, p_since) = 0
    and p_limit = (select count(*)
                     from (select
                             from (select v.url
                                     from holdfast.v_failure v
                                     where p_crawl is null or v.crawl_id = p_crawl
                                     order by v.ended_at desc limit 2000) x
                             where holdfast.has_part(x.url, p_url)
                             limit p_limit) y);
begin
  if p_url is null or v_frequent then
    return query
      select *
        from holdfast.v_failure
        where (p_crawl is null or crawl_id = p_crawl) and (p_snapshot is null or snapshot_id = p_snapshot)
          and holdfast.has_part(url, p_url)
          and (p_plugin is null or plugin = p_plugin) and (p_host is null or host = p_host)
          and (p_since is null or ended_at >= p_since)
        order by ended_at desc limit p_limit;
  else
    return query
      select f.*
        from holdfast.snapshots_found(p_crawl, p_url, p_host, null, null, null) x
        cross join lateral (select s.crawl_id from holdfast.snapshot s where s.id = x.id limit 1) s
        cross join lateral (select *
                              from holdfast.v_failure v
                              where v.snapshot_id = x.id and v.crawl_id = s.crawl_id
                              offset 0) f -- or the planner joins with all failures
        where (p_snapshot is null or x.id = p_snapshot) and (p_plugin is null or f.plugin = p_plugin)
          and (p_since is null or f.ended_at >= p_since)
        order by f.ended_at desc limit p_limit;
  end if;
end $$;
comment on function holdfast.list_failures is 'Failures: holdfast list failures.';

create or replace function holdfast.snapshot_events(p_snapshot uuid)
  returns setof holdfast.v_event language sql stable as $$
  -- Its starts and its seal are recorded together with those of others, where its id cannot be found. Its own
  -- rows have them as well; id is NULL for these.
  select e.at, e.lifecycle, e.object_id, e.crawl_id, e.from_state, e.event, e.to_state, p.label, e.detail,
         e.id
    from holdfast.event e
    left join holdfast.process p on p.id = e.process_id
    where e.object_id = p_snapshot
  union all
  select s.at, 'snapshot', p_snapshot, a.crawl_id, s.from_state, s.event, s.to_state, p.label, s.detail, null
    from (select crawl_id, process_id, claimed_at,
                 case when ending = 'sealed' then ended_at end as sealed_at, reason
            from holdfast.v_attempt
            where snapshot_id = p_snapshot
          union all
          select crawl_id, owner_id, claimed_at, null, null
            from holdfast.snapshot_queue
            where snapshot_id = p_snapshot) a
    cross join lateral (values
      (a.claimed_at, 'queued', 'start', 'started', null),
      (a.sealed_at, 'started', 'seal', 'sealed', a.reason)) s(at, from_state, event, to_state, detail)
    left join holdfast.process p on p.id = a.process_id
    -- A refusal has an event of its own.
    where s.at is not null and (s.event = 'start' or s.detail not like 'refused%')
$$;

create or replace function holdfast.list_events(p_crawl uuid, p_snapshot uuid, p_limit bigint)
  returns setof holdfast.v_event language plpgsql stable as $$
begin
  if p_snapshot is not null then
    return query
      select v.*
        from holdfast.snapshot_events(p_snapshot) v
        where p_crawl is null or v.crawl_id = p_crawl
        order by v.at desc, v.id desc limit p_limit;
  elsif p_crawl is not null then
    -- Not "=": a walk over all events until enough of the crawl have been met looks cheaper than it is.
    return query
      select v.*
        from holdfast.v_event v
        where v.crawl_id >= p_crawl and v.crawl_id <= p_crawl
        order by v.crawl_id desc, v.id desc limit p_limit;
  else
    return query select v.* from holdfast.v_event v order by v.id desc limit p_limit;
  end if;
end $$;
comment on function holdfast.list_events is 'Events: holdfast list events.';

create or replace function holdfast.list_events_after(p_id bigint, p_limit bigint, p_crawl uuid)
  returns setof holdfast.v_event language plpgsql stable as $$
-- Limited by ids: one id may be the event of many snapshots, and its rows stay together.
declare
  v_last bigint;
begin
  if p_crawl is null then
    select max(n.id) into v_last
      from (select e.id from holdfast.event e where e.id > p_id order by e.id limit p_limit) n;
  else
    select max(n.id) into v_last
      from (select e.id
              from holdfast.event e
              where e.crawl_id = p_crawl and e.id > p_id
              order by e.crawl_id, e.id limit p_limit) n;
  end if;
  return query
    select v.*
      from holdfast.v_event v
      where v.id > p_id and v.id <= v_last and (p_crawl is null or v.crawl_id = p_crawl)
      order by v.id;
end $$;
comment on function holdfast.list_events_after is
  'Events in their order, of so many ids after one: holdfast events --follow.';
