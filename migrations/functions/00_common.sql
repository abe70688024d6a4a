-- Helpers that other functions use. Not for people.

create or replace function holdfast.new_uuid() returns uuid language sql volatile parallel safe as $$
  -- Version 7 (RFC 9562): 48 bits of milliseconds, then random bits; PostgreSQL has its own only from 18 on.
  select (lpad(to_hex(floor(extract(epoch from clock_timestamp()) * 1000)::bigint), 12, '0') || '7'
          || substr(replace(gen_random_uuid()::text, '-', ''), 14))::uuid
$$;
comment on function holdfast.new_uuid() is 'A UUID version 7: ordered by time.';

create or replace function holdfast.retry_at_max() returns timestamptz language sql immutable parallel safe as $$
  select timestamptz '9999-01-01T00:00:00Z'
$$;
comment on function holdfast.retry_at_max() is 'The due time of what is parked.';

create or replace function holdfast.ring() returns void language plpgsql as $$
-- A doorbell, not a queue: a notifying commit holds one server-wide lock, so it is rung only on the edge from nothing
-- due to something due. Nodes poll as well. Not where the caller takes what becomes due, and rings for the rest (crawl_open_small).
begin
  if current_setting('holdfast.quiet', true) is distinct from 'on' then perform pg_notify('holdfast', 'work'); end if;
end $$;
comment on function holdfast.ring() is 'Wakes idle nodes.';

create or replace function holdfast.crawl_wake(p_crawl uuid, p_at timestamptz) returns void language plpgsql as $$
-- Somebody put work of this crawl into the queue, due at p_at. Always counts, so that a claim which has just looked in
-- vain does not park the crawl; rings only when the crawl was not ready before.
declare
  v_was timestamptz;
begin
  select ready_at into v_was from holdfast.crawl_queue where crawl_id = p_crawl for no key update;
  if not found then return; end if;
  update holdfast.crawl_queue set ready_at = least(coalesce(ready_at, p_at), p_at), wakes = wakes + 1 where crawl_id = p_crawl;
  if p_at <= clock_timestamp() and (v_was is null or v_was > clock_timestamp()) then perform holdfast.ring(); end if;
end $$;
comment on function holdfast.crawl_wake(uuid, timestamptz) is 'Makes claims look at a crawl again.';

create or replace function holdfast.crawl_page_changes(p_crawl uuid) returns void language sql as $$
  insert into holdfast.crawl_page_stale (crawl_id) values (p_crawl) on conflict (crawl_id) do update set since = clock_timestamp()
$$;
comment on function holdfast.crawl_page_changes(uuid) is 'The page of a crawl is to be written anew.';

create or replace function holdfast.crawl_settle(p_crawl uuid) returns boolean language plpgsql as $$
-- Seals the crawl if nothing of it is open. The caller holds the crawl's row lock: without it two last snapshots sealing at
-- once would each see the other open, and the crawl would never end.
begin
  perform set_config('holdfast.event', case when stop_reason = 'cancelled' then 'cancel' else 'seal' end, true)
    from holdfast.crawl where id = p_crawl;
  update holdfast.crawl c set status = 'sealed', retry_at = null, reason = null, owner_id = null, judged_to = null, paused_at = null,
      sealed_at = clock_timestamp(),
      outcome = case when c.snapshots_total = 0 then 'empty'
                     when c.stop_reason = 'cancelled' then 'cancelled'
                     when c.snapshots_partial = 0 and c.snapshots_failed = n.cancelled and c.snapshots_succeeded > 0 then 'succeeded'
                     when c.snapshots_succeeded = 0 and c.snapshots_partial = 0 then case n.cancelled when c.snapshots_total then 'cancelled' else 'failed' end
                     else 'partial' end
    from (select case when o.stopping_at is null then 0 else o.snapshots_cancelled end as cancelled from holdfast.crawl o where o.id = p_crawl) n
    where c.id = p_crawl and c.snapshots_open = 0 and c.seeds_left = 0
      and (c.status in ('queued', 'started') or (c.status = 'paused' and c.stopping_at is not null));
  if found then
    delete from holdfast.crawl_queue where crawl_id = p_crawl;
    delete from holdfast.crawl_lane where crawl_id = p_crawl;
    perform holdfast.crawl_page_changes(p_crawl);
    perform pg_notify('holdfast', 'crawl_sealed ' || p_crawl);
    return true;
  end if;
  -- Only what its scope excludes is left: a node closes that, batch by batch.
  update holdfast.crawl set stopping_at = clock_timestamp(), retry_at = clock_timestamp()
    where id = p_crawl and status = 'started' and seeds_left = 0 and snapshots_open = snapshots_excluded and stopping_at is null
      and judged_to is null and snapshots_excluded > 0;
  return false;
end $$;
comment on function holdfast.crawl_settle(uuid) is 'Seals a crawl that has nothing open.';

create or replace function holdfast.lane_open(p_crawl uuid, p_hosts text[], p_at timestamptz) returns void language plpgsql as $$
-- In the order of the hosts: two transactions that open the same lanes must not wait for each other. (In SQL it would be planned with each call.)
begin
  insert into holdfast.crawl_lane as l (crawl_id, host, next_at) select p_crawl, h, p_at from (select distinct unnest(p_hosts) as h order by 1) u
    on conflict on constraint crawl_lane_pkey do update set next_at = least(l.next_at, excluded.next_at);
end $$;
comment on function holdfast.lane_open(uuid, text[], timestamptz) is 'Makes claims look at these hosts of a crawl.';

create or replace function holdfast.lane_end(p_crawl uuid, p_host text, p_delayed boolean) returns void language plpgsql as $$
-- A snapshot of a host with limits is nobody's any more: the host may be asked again, by whoever waits for that. The own crawl, whose
-- row in crawl_queue the caller has locked, is woken for certain; a few others if nobody holds them just now (they look again within
-- a second by themselves).
declare
  v_crawls uuid[];
begin
  if p_delayed then -- the caller has locked the host
    update holdfast.host set next_at = greatest(next_at, clock_timestamp() + min_delay)
      where name = p_host and min_delay > '0' and coalesce(max_parallel, 1) = 1;
  end if;
  -- Unlocked, it may have changed its mind: then a claim is at it, which counts us as ended, or looks again in a second.
  if exists (select from holdfast.crawl_lane where crawl_id = p_crawl and host = p_host and wants_room) then
    update holdfast.crawl_queue set ready_at = least(coalesce(ready_at, clock_timestamp()), clock_timestamp()), wakes = wakes + 1
      where crawl_id = p_crawl;
    update holdfast.crawl_lane set next_at = clock_timestamp(), wants_room = false where crawl_id = p_crawl and host = p_host and wants_room;
  end if;
  -- Others' rows of crawl_queue before their lanes, as their owners lock them: whoever waits for a lane holds its crawl's row already,
  -- so that it cannot be in our hands while we wait for one in his.
  v_crawls := array(select l.crawl_id from holdfast.crawl_lane l where l.host = p_host and l.wants_room and l.crawl_id <> p_crawl
                      order by l.next_at limit 4);
  if v_crawls = '{}' then return; end if;
  v_crawls := array(select q.crawl_id from holdfast.crawl_queue q where q.crawl_id = any (v_crawls) order by q.crawl_id for update skip locked);
  update holdfast.crawl_queue set ready_at = clock_timestamp(), wakes = wakes + 1 where crawl_id = any (v_crawls);
  with lane as (
    select l.crawl_id from holdfast.crawl_lane l where l.host = p_host and l.wants_room and l.crawl_id = any (v_crawls)
      for update skip locked
  )
  update holdfast.crawl_lane l set next_at = clock_timestamp(), wants_room = false from lane
    where l.crawl_id = lane.crawl_id and l.host = p_host;
end $$;
comment on function holdfast.lane_end(uuid, text, boolean) is 'Called when a snapshot of a host with limits ends.';

create or replace function holdfast.archived_plugins(p_url_hash bytea, p_but_crawl uuid, p_age interval) returns text[] language sql stable as $$
  -- Whose results the collection has of a URL, in pages that were archived at least in part. What was only skipped counts where nothing
  -- failed: beside a failure it may have had nothing to work on. What another hook has spoiled afterwards (a success with an error) does not.
  select coalesce(array_agg(distinct d.plugin), '{}') from (
    select r.plugin
      from holdfast.snapshot s
      join holdfast.snapshot_sealed e on e.snapshot_id = s.id and e.crawl_id = s.crawl_id and e.outcome in ('succeeded', 'partial')
      join holdfast.archive_result r on r.snapshot_id = s.id and r.crawl_id = s.crawl_id and r.fence = e.fence
      where s.url_hash = p_url_hash and s.crawl_id <> p_but_crawl and (p_age is null or e.sealed_at > clock_timestamp() - p_age)
      group by s.id, s.crawl_id, r.plugin
      having bool_and((r.status in ('succeeded', 'noresults') and r.error = '') or (e.outcome = 'succeeded' and r.status = 'skipped'))) d
$$;
comment on function holdfast.archived_plugins(bytea, uuid, interval) is 'Plugins whose results other crawls have already of a URL.';

create or replace function holdfast.snapshot_insert(p_crawl uuid, p_parent uuid, p_depth integer, p_urls text[], p_hosts text[],
    p_titles text[], p_tags jsonb) returns bigint language plpgsql set enable_seqscan = off set enable_sort = off set enable_hashjoin = off set enable_mergejoin = off
  set jit = off set plan_cache_mode = force_generic_plan as $$
-- New snapshots of a crawl, in the order given, each URL once, inside its scope, up to its cap. The caller holds the crawl's row
-- lock, so "not there yet" and "room left" are exact, and has given the hosts their limits (hosts_enter). Spacing the due times by a
-- microsecond keeps the order without a column. Of a URL that is given several times the longest title and all tags are kept; of seeds
-- (p_tags: an array of tags for each, or an empty one) also where it came before, as long as it is open.
-- One plan for one URL and for thousands, in a crawl of one and of a million: what is given is looked up row by row, by its key. "limit 1"
-- keeps the planner from reading the whole crawl instead, "between" and "order by" from every other index, whatever the statistics were.
declare
  v_now constant timestamptz := clock_timestamp();
  v_crawl holdfast.crawl;
  v_wanted bigint;
  v_inserted bigint;
  v_refused bigint := 0;
  v_lanes text[];
  v_allowed boolean[];
  v_limits boolean;
  v_tags text[];
  v_tagged jsonb; -- tags by URL
begin
  select * into strict v_crawl from holdfast.crawl where id = p_crawl;
  if v_crawl.stopping_at is not null then return 0; end if;
  if v_crawl.scope <> '{}' or v_crawl.only_new then
    select array_agg(a.allowed order by a.ordinality), count(*) filter (where not a.allowed) into v_allowed, v_refused from (
      select u.ordinality,
             holdfast.scope_refusal(v_crawl.scope, u.url, u.host) is null
             and not (v_crawl.only_new and case when v_crawl.wanted <> '{}' then
               v_crawl.wanted <@ holdfast.archived_plugins(sha256(convert_to(u.url, 'UTF8')), p_crawl, v_crawl.only_new_age)
             else exists (
               select from holdfast.snapshot s
                 join holdfast.snapshot_sealed e on e.snapshot_id = s.id and e.crawl_id = s.crawl_id
                   and (e.outcome = 'succeeded' or (e.outcome = 'partial' and not v_crawl.only_complete))
                 where s.url_hash = sha256(convert_to(u.url, 'UTF8')) and s.crawl_id <> p_crawl
                   and (v_crawl.only_new_age is null or e.sealed_at > v_now - v_crawl.only_new_age)) end) as allowed
        from unnest(p_urls, p_hosts) with ordinality u(url, host, ordinality)) a;
  end if;
  v_limits := exists (select from holdfast.host);
  v_tags := array(select distinct t from unnest(v_crawl.tags) t order by 1);
  if p_tags <> '[]' then
    select jsonb_object_agg(t.url, t.tags) into v_tagged from (
      select u.url, jsonb_agg(distinct t.tag) as tags
        from unnest(p_urls) with ordinality u(url, ordinality), jsonb_array_elements_text(p_tags -> (u.ordinality - 1)::integer) t(tag) group by u.url) t;
  end if;
  if v_crawl.snapshots_total > 0 and (v_tagged is not null or (p_tags is not null and exists (select from unnest(p_titles) t where t <> ''))) then
    update holdfast.snapshot s set title = case when length(g.title) > length(s.title) then g.title else s.title end,
        tags = array(select distinct t from unnest(s.tags || g.tags) t order by t)
      from (select o.id, u.title, array(select jsonb_array_elements_text(v_tagged -> u.url)) as tags
              from (select distinct on (d.url) d.url, coalesce(d.title, '') as title, sha256(convert_to(d.url, 'UTF8')) as url_hash
                      from unnest(p_urls, p_titles) d(url, title)
                      order by d.url, length(coalesce(d.title, '')) desc) u
              cross join lateral (select f.id from holdfast.snapshot f
                                    where f.crawl_id = p_crawl and f.url_hash between u.url_hash and u.url_hash
                                    order by f.crawl_id, f.url_hash limit 1) o) g
      where s.id = g.id and s.crawl_id = p_crawl and (length(g.title) > length(s.title) or not g.tags <@ s.tags)
        and exists (select from holdfast.snapshot_queue q where q.snapshot_id = s.id and q.crawl_id = s.crawl_id);
  end if;
  with given as (
    select distinct on (u.url) u.url, u.host, u.title, u.ordinality as position
      from unnest(p_urls, p_hosts, p_titles) with ordinality u(url, host, title, ordinality)
      where v_allowed is null or v_allowed[u.ordinality]
      order by u.url, length(coalesce(u.title, '')) desc, u.ordinality
  ), hashed as materialized (
    select g.*, sha256(convert_to(g.url, 'UTF8')) as url_hash from given g
  ), fresh as materialized (
    select holdfast.new_uuid() as id, h.*, row_number() over (order by h.position) as rank from hashed h
      left join lateral (select true as there from holdfast.snapshot s
                           where v_crawl.snapshots_total > 0 and s.crawl_id = p_crawl and s.url_hash between h.url_hash and h.url_hash
                           order by s.crawl_id, s.url_hash limit 1) o on true
      where o.there is null
  ), room as materialized (
    select f.*, v_limits and exists (select from holdfast.host h where h.name = f.host) as lane
      from fresh f where v_crawl.max_urls = 0 or f.rank <= v_crawl.max_urls - v_crawl.snapshots_total
  ), cold as (
    insert into holdfast.snapshot (id, crawl_id, url, url_hash, host, depth, parent_id, title, tags)
      select r.id, p_crawl, r.url, r.url_hash, r.host, p_depth, p_parent, coalesce(r.title, ''),
             case when v_tagged is null then v_tags
                  else array(select distinct t from unnest(v_tags || array(select jsonb_array_elements_text(v_tagged -> r.url))) t order by 1) end
        from room r order by r.rank
  ), hot as (
    insert into holdfast.snapshot_queue (snapshot_id, crawl_id, host, lane, retry_at)
      select r.id, p_crawl, r.host, r.lane, v_now - (select count(*) from room) * interval '1 microsecond' + r.rank * interval '1 microsecond'
        from room r order by r.rank
  )
  select (select count(*) from fresh), (select count(*) from room), (select array_agg(distinct r.host) from room r where r.lane)
    into v_wanted, v_inserted, v_lanes;
  update holdfast.crawl set snapshots_total = snapshots_total + v_inserted, snapshots_open = snapshots_open + v_inserted,
      urls_refused = urls_refused + v_refused,
      stop_reason = case when v_inserted < v_wanted then 'max_urls' else stop_reason end
    where id = p_crawl and (v_inserted > 0 or v_wanted > 0 or v_refused > 0);
  if v_inserted > 0 then perform holdfast.crawl_wake(p_crawl, v_now); end if;
  if v_lanes is not null then perform holdfast.lane_open(p_crawl, v_lanes, v_now); end if;
  return v_inserted;
end $$;
comment on function holdfast.snapshot_insert(uuid, uuid, integer, text[], text[], text[], jsonb) is 'Adds snapshots to a crawl whose row the caller has locked; returns how many.';

create or replace function holdfast.attempt_end(p_snapshot uuid, p_crawl uuid, p_ending text, p_reason text) returns void language plpgsql as $$
-- Called while the queue row still names the owner. Makes room where the end of this attempt does: at its host, in its crawl.
declare
  v_host text;
  v_lane boolean;
  v_delayed boolean;
begin
  insert into holdfast.attempt (snapshot_id, crawl_id, fence, process_id, claimed_at, started_at, ending, reason)
    select q.snapshot_id, q.crawl_id, q.fence, q.owner_id, q.claimed_at, q.started_at, p_ending, p_reason
      from holdfast.snapshot_queue q where q.snapshot_id = p_snapshot and q.crawl_id = p_crawl and q.owner_id is not null
    on conflict do nothing;
  select q.host, q.lane into v_host, v_lane from holdfast.snapshot_queue q
    where q.snapshot_id = p_snapshot and q.crawl_id = p_crawl and q.owner_id is not null;
  -- Hosts, then crawl_queue, then lanes: the order of everybody's locks.
  if v_lane then
    perform from holdfast.host where name = v_host and min_delay > '0' for no key update;
    v_delayed := found;
    perform from holdfast.crawl_queue where crawl_id = p_crawl for no key update;
  end if;
  update holdfast.crawl_queue set ready_at = least(coalesce(ready_at, clock_timestamp()), clock_timestamp()), wakes = wakes + 1
    where crawl_id = p_crawl and max_parallel is not null;
  if v_lane then perform holdfast.lane_end(p_crawl, v_host, v_delayed); end if;
end $$;
comment on function holdfast.attempt_end(uuid, uuid, text, text) is 'Writes down how the current ownership of a snapshot ended.';

create or replace function holdfast.results_close(p_snapshot uuid, p_crawl uuid, p_fence bigint, p_error text) returns void language sql as $$
  update holdfast.archive_result set status = 'failed', ended_at = clock_timestamp(),
      error = coalesce(nullif(p_error, ''), 'its owner gave it up')
    where snapshot_id = p_snapshot and crawl_id = p_crawl and fence = p_fence and ended_at is null
$$;
comment on function holdfast.results_close(uuid, uuid, bigint, text) is 'Closes results that their owner will never finish.';

create or replace function holdfast.snapshot_finish(p_snapshot uuid, p_crawl uuid, p_outcome text, p_reason text, p_owner uuid,
    p_directory text, p_manifest text, p_bytes bigint, p_files bigint, p_title text, p_tags text[]) returns boolean language plpgsql as $$
-- The last step of every way to be sealed: the sealed row, the counters, and the crawl too if that was the last. The caller
-- holds the crawl's row lock. Returns whether the crawl was sealed.
declare
  v_may_end boolean;
begin
  insert into holdfast.snapshot_sealed (snapshot_id, crawl_id, outcome, reason, fence, owner_id, directory, manifest_sha256, bytes,
      files, title, tags, attempts, owners_lost, started_at)
    select q.snapshot_id, q.crawl_id, p_outcome, p_reason, q.fence, p_owner, p_directory, p_manifest, p_bytes, p_files,
           coalesce(nullif(p_title, ''), s.title), array(select distinct t from unnest(s.tags || coalesce(p_tags, '{}')) t order by t),
           q.attempts, q.owners_lost, q.started_at
      from holdfast.snapshot_queue q join holdfast.snapshot s on s.id = q.snapshot_id and s.crawl_id = q.crawl_id
      where q.snapshot_id = p_snapshot and q.crawl_id = p_crawl;
  update holdfast.crawl set snapshots_open = snapshots_open - 1, bytes = bytes + p_bytes,
      snapshots_succeeded = snapshots_succeeded + (p_outcome = 'succeeded')::integer,
      snapshots_partial = snapshots_partial + (p_outcome = 'partial')::integer,
      snapshots_failed = snapshots_failed + (p_outcome not in ('succeeded', 'partial'))::integer,
      snapshots_cancelled = snapshots_cancelled + (p_outcome = 'cancelled')::integer
    where id = p_crawl returning seeds_left = 0 and snapshots_open <= snapshots_excluded into v_may_end;
  if v_may_end then return holdfast.crawl_settle(p_crawl); end if; -- two more statements, which only the last snapshots need
  return false;
end $$;
comment on function holdfast.snapshot_finish(uuid, uuid, text, text, uuid, text, text, bigint, bigint, text, text[]) is 'Seals one snapshot; the caller has checked that it may.';
