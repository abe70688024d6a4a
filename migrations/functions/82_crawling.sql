-- What a node asks before it works on a snapshot, robots.txt as all nodes share it, and removing single snapshots.

create or replace function holdfast.snapshot_enter(p_node uuid, p_snapshot uuid, p_crawl uuid, p_fence bigint)
  returns table (robots boolean, max_snapshot_bytes bigint, archived text[]) language plpgsql as $$
-- For programs older than revision 17: snapshot_start, and the terms on which its crawl wants it done. archived: plugins that need not run, because the collection has their
-- results. May be repeated.
#variable_conflict use_column
begin
  perform holdfast.snapshot_start(p_node, p_snapshot, p_crawl, p_fence);
  return query select c.robots, c.max_snapshot_bytes,
      case when c.only_complete then
        holdfast.archived_plugins((select s.url_hash from holdfast.snapshot s where s.id = p_snapshot and s.crawl_id = p_crawl), p_crawl, c.only_new_age)
      else '{}' end
    from holdfast.crawl c where c.id = p_crawl;
end $$;
comment on function holdfast.snapshot_enter(uuid, uuid, uuid, bigint) is 'The owner is about to work on a snapshot; answers with what its crawl demands.';

create or replace function holdfast.snapshot_begin(p_node uuid, p_snapshot uuid, p_crawl uuid, p_fence bigint)
  returns table (robots boolean, max_snapshot_bytes bigint) language sql as $$
  -- For programs older than revision 13: they run all of a page.
  select e.robots, e.max_snapshot_bytes from holdfast.snapshot_enter(p_node, p_snapshot, p_crawl, p_fence) e
$$;
comment on function holdfast.snapshot_begin(uuid, uuid, uuid, bigint) is 'As snapshot_enter, for older programs.';

create or replace function holdfast.snapshot_order_of_claims() returns text language sql stable as $$
  -- How this transaction claims within a crawl: "oldest" (found first, first) or "newest"; with holdfast.claim_from_top_n, at random
  -- among the first so many. Set by snapshot_take.
  select coalesce(nullif(current_setting('holdfast.claim_order', true), ''), 'oldest')
$$;
comment on function holdfast.snapshot_order_of_claims() is 'In which order this transaction takes the snapshots of a crawl.';

create or replace function holdfast.snapshot_pick(p_crawl uuid, p_now timestamptz, p_count integer, p_order text, p_pool integer)
  returns table (snapshot_id uuid, crawl_id uuid, host text) language plpgsql rows 4 set plan_cache_mode = force_generic_plan as $$
-- Locks and returns due snapshots of a crawl in another order than that in which they were found. One index range, read from either
-- end; what somebody else has locked is passed over.
#variable_conflict use_column
declare
  v_ids uuid[];
begin
  if p_order = 'newest' and p_pool <= p_count then
    return query
      select q.snapshot_id, q.crawl_id, q.host from holdfast.snapshot_queue q
        where q.crawl_id = p_crawl and q.owner_id is null and not q.lane and q.retry_at <= p_now
        order by q.retry_at desc limit p_count for update skip locked;
    return;
  end if;
  -- In two steps, so that no plan can do worse than a few index probes. Twice as many as needed: some will be locked.
  if p_order = 'newest' then
    v_ids := array(select n.snapshot_id from (
      select q.snapshot_id from holdfast.snapshot_queue q
        where q.crawl_id = p_crawl and q.owner_id is null and not q.lane and q.retry_at <= p_now
        order by q.retry_at desc limit greatest(p_pool, p_count)) n order by random() limit 2 * p_count + 8);
  else
    v_ids := array(select o.snapshot_id from (
      select q.snapshot_id from holdfast.snapshot_queue q
        where q.crawl_id = p_crawl and q.owner_id is null and not q.lane and q.retry_at <= p_now
        order by q.retry_at limit greatest(p_pool, p_count)) o order by random() limit 2 * p_count + 8);
  end if;
  -- coalesce: "is null" would let a plan made for an empty queue walk the index of all that is due in the crawl, and pick from that.
  return query
    select q.snapshot_id, q.crawl_id, q.host from holdfast.snapshot_queue q
      where q.snapshot_id = any (v_ids) and q.crawl_id = p_crawl and coalesce(q.owner_id::text, '') = '' and not q.lane and q.retry_at <= p_now
      limit p_count for update skip locked;
end $$;
comment on function holdfast.snapshot_pick(uuid, timestamptz, integer, text, integer) is 'Due snapshots of a crawl, newest first or at random among the first few.';

-- robots.txt --------------------------------------------------------------------------------------------------------------

create or replace function holdfast.claimed_too_early(p_snapshot uuid, p_crawl uuid, p_known_at timestamptz) returns boolean language sql stable as $$
  -- Its host has a delay that its claim cannot have kept: claimed before that was known, or not by its lane, so without having seen the host.
  select exists (select from holdfast.snapshot_queue q join holdfast.host h on h.name = q.host and h.min_delay > '0'
                   where q.snapshot_id = p_snapshot and q.crawl_id = p_crawl and (not q.lane or q.claimed_at < p_known_at))
$$;
comment on function holdfast.claimed_too_early(uuid, uuid, timestamptz) is 'Whether a snapshot was claimed without regard to the delay of its host.';

create or replace function holdfast.robots_get(p_node uuid, p_snapshot uuid, p_crawl uuid, p_origin text)
  returns table (state text, rules text, error text, to_fetch boolean, too_early boolean)
  language plpgsql as $$
-- What robots.txt of a site says. to_fetch: the caller is to fetch it, within a minute, and to call robots_put; nobody else does so
-- meanwhile. state "wanted" without it: somebody is fetching it. too_early: see claimed_too_early.
#variable_conflict use_column
declare
  v_now constant timestamptz := clock_timestamp();
  v_row holdfast.robots;
begin
  select * into v_row from holdfast.robots r where r.origin = p_origin;
  if v_row.expires_at > v_now then
    return query select v_row.state, v_row.rules, v_row.error, false,
      holdfast.claimed_too_early(p_snapshot, p_crawl, v_row.fetched_at);
    return;
  end if;
  insert into holdfast.robots (origin) values (p_origin) on conflict do nothing;
  -- Never waits: whoever has the row locked is about to fetch, or has just done so.
  select * into v_row from holdfast.robots r where r.origin = p_origin for update skip locked;
  if not found or v_row.fetch_until > v_now then
    return query select 'wanted', '', null::text, false, false;
    return;
  end if;
  if v_row.expires_at > v_now then
    return query select v_row.state, v_row.rules, v_row.error, false,
      holdfast.claimed_too_early(p_snapshot, p_crawl, v_row.fetched_at);
    return;
  end if;
  update holdfast.robots r set fetcher_id = p_node, fetch_until = v_now + interval '1 minute' where r.origin = p_origin;
  return query select 'wanted', '', null::text, true, false;
end $$;
comment on function holdfast.robots_get(uuid, uuid, uuid, text) is 'What robots.txt of a site says, or who is to fetch it.';

create or replace function holdfast.robots_put(p_node uuid, p_origin text, p_host text, p_status integer, p_rules text, p_error text,
    p_delay interval, p_keep interval) returns boolean language plpgsql as $$
-- The answer to robots_get's request. p_error: it could not be had. p_delay: the site's Crawl-delay, capped by the caller; it makes the
-- host's own delay longer, never shorter. True: the host is one with a delay, so this was its request for now.
begin
  perform from holdfast.robots where origin = p_origin and fetcher_id = p_node for update; -- before the host: everybody's order
  if p_delay > '0' and not exists (select from holdfast.host where name = p_host and min_delay >= p_delay) then
    perform holdfast.host_set(p_host, p_delay, null, 'robots.txt of ' || p_origin);
  end if;
  -- After the host: what claimed with its row before this has not kept the new delay.
  update holdfast.robots set state = case when p_error is null then 'known' else 'unreachable' end, status = p_status, rules = p_rules,
      error = p_error, fetcher_id = null, fetch_until = null, fetched_at = clock_timestamp(), expires_at = clock_timestamp() + p_keep
    where origin = p_origin and fetcher_id = p_node;
  return exists (select from holdfast.host where name = p_host and min_delay > '0');
end $$;
comment on function holdfast.robots_put(uuid, text, text, integer, text, text, interval, interval) is 'Stores robots.txt of a site, as just fetched.';

-- Removing single snapshots -------------------------------------------------------------------------------------------------

create or replace function holdfast.snapshot_remove(p_snapshot uuid, p_by text) returns bigint language plpgsql as $$
-- Deletes one snapshot of a sealed crawl; its directory is listed in purge by the same transaction. A crawl that has none left goes
-- too. Returns 1, or 0 if there is no such snapshot. The rest of its crawl stays as it is; what was found on it remembers its URL.
declare
  v_crawl holdfast.crawl;
  v_sealed holdfast.snapshot_sealed;
  v_url text;
begin
  select c.* into v_crawl from holdfast.crawl c where c.id = (select s.crawl_id from holdfast.snapshot s where s.id = p_snapshot) for no key update;
  if not found then return 0; end if;
  if v_crawl.status <> 'sealed' then
    raise exception 'snapshot % belongs to crawl %, which is not sealed', p_snapshot, v_crawl.id using errcode = 'HF004',
      hint = 'A snapshot can be removed once its crawl has ended; holdfast cancel ends it.';
  end if;
  if v_crawl.snapshots_total = 1 then
    perform holdfast.crawl_remove(v_crawl.id, p_by);
    return 1;
  end if;
  select * into strict v_sealed from holdfast.snapshot_sealed e where e.snapshot_id = p_snapshot and e.crawl_id = v_crawl.id;
  insert into holdfast.purge (directory) select regexp_replace(v_sealed.directory, '/a[0-9]+$', '') where v_sealed.directory is not null
    on conflict do nothing;
  delete from holdfast.snapshot where id = p_snapshot and crawl_id = v_crawl.id returning url into v_url;
  update holdfast.snapshot set parent_id = null, found_on = v_url where parent_id = p_snapshot and crawl_id = v_crawl.id;
  update holdfast.crawl set snapshots_total = snapshots_total - 1, bytes = bytes - v_sealed.bytes,
      snapshots_succeeded = snapshots_succeeded - (v_sealed.outcome = 'succeeded')::integer,
      snapshots_partial = snapshots_partial - (v_sealed.outcome = 'partial')::integer,
      snapshots_failed = snapshots_failed - (v_sealed.outcome not in ('succeeded', 'partial'))::integer,
      snapshots_cancelled = snapshots_cancelled - (v_sealed.outcome = 'cancelled')::integer
    where id = v_crawl.id;
  perform holdfast.crawl_page_changes(v_crawl.id);
  perform holdfast.control_note('remove', 'snapshot', p_snapshot::text, v_crawl.id, p_by, v_url, 0);
  return 1;
end $$;
comment on function holdfast.snapshot_remove(uuid, text) is 'Deletes a snapshot of a sealed crawl; its files are listed in purge.';

create or replace function holdfast.crawl_pages_stale(p_limit bigint, p_age interval, p_crawl uuid) returns table (crawl_id uuid, since timestamptz, there boolean)
  language sql stable as $$
  -- Pages to be written, or deleted if the crawl is no longer there, that have waited for that long; p_crawl: only this one's.
  select p.crawl_id, p.since, exists (select from holdfast.crawl c where c.id = p.crawl_id)
    from holdfast.crawl_page_stale p where p.since <= clock_timestamp() - p_age and (p_crawl is null or p.crawl_id = p_crawl) order by p.since limit p_limit
$$;
comment on function holdfast.crawl_pages_stale(bigint, interval, uuid) is 'Pages of crawls that wait to be written or deleted.';

create or replace function holdfast.crawl_page_made(p_crawl uuid, p_since timestamptz) returns void language sql as $$
  -- What has changed since it was looked at is to be written again.
  delete from holdfast.crawl_page_stale where crawl_id = p_crawl and since <= p_since
$$;
comment on function holdfast.crawl_page_made(uuid, timestamptz) is 'The page of a crawl says what was so at that time.';

create or replace function holdfast.snapshots_supersede(p_snapshots uuid[]) returns void language sql as $$
  -- Marks the older snapshots of the same URLs, for those of these just sealed whose crawls overwrite and that have something. Only marks:
  -- their crawls cannot be locked here, after our own. Of two in one call the later one is the newer. In one order, so that nobody waits
  -- for who waits for him.
  insert into holdfast.superseded (snapshot_id, crawl_id, by_id)
    select distinct on (o.id, o.crawl_id) o.id, o.crawl_id, n.snapshot_id
      from holdfast.snapshot_sealed n
      join holdfast.crawl c on c.id = n.crawl_id and c.overwrite
      join holdfast.snapshot s on s.id = n.snapshot_id and s.crawl_id = n.crawl_id
      join holdfast.snapshot o on o.url_hash = s.url_hash and o.id <> s.id and o.crawl_id <> s.crawl_id
      join holdfast.snapshot_sealed e on e.snapshot_id = o.id and e.crawl_id = o.crawl_id
      where n.snapshot_id = any (p_snapshots) and n.outcome in ('succeeded', 'partial')
        and coalesce(array_position(p_snapshots, o.id) < array_position(p_snapshots, s.id), true)
      order by o.id, o.crawl_id, array_position(p_snapshots, s.id) desc
    on conflict do nothing
$$;
comment on function holdfast.snapshots_supersede(uuid[]) is 'Marks what newly sealed snapshots take the place of.';

create or replace function holdfast.superseded_remove(p_limit bigint) returns bigint language plpgsql as $$
-- Those of open crawls wait until these have ended: a page less would let them take another one.
declare
  v_row record;
  v_count bigint := 0;
begin
  for v_row in
    select u.snapshot_id, u.by_id from holdfast.superseded u left join holdfast.crawl c on c.id = u.crawl_id
      where coalesce(c.status, 'sealed') = 'sealed' order by u.crawl_id, u.snapshot_id limit p_limit
  loop
    perform holdfast.snapshot_remove(v_row.snapshot_id, 'overwritten by ' || v_row.by_id);
    delete from holdfast.superseded where snapshot_id = v_row.snapshot_id;
    v_count := v_count + 1;
  end loop;
  return v_count;
end $$;
comment on function holdfast.superseded_remove(bigint) is 'Removes snapshots that were marked by newer ones; returns how many.';

create or replace view holdfast.v_purge as
  select p.directory, p.requested_at, clock_timestamp() - p.requested_at as waits from holdfast.purge p order by p.requested_at;
comment on view holdfast.v_purge is 'Directories marked for deletion: their rows are gone, their files not yet. A runner or a node that has the archive deletes them.';

create or replace view holdfast.v_robots as
  select r.origin, r.state, r.status, length(r.rules) as size, r.error, r.fetched_at, r.expires_at from holdfast.robots r;
comment on view holdfast.v_robots is 'robots.txt of web sites, as last fetched.';
