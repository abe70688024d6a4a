-- robots.txt, shared by all workers: one of them fetches it, the others read what it stored.

create or replace function holdfast.robots_get(p_worker uuid, p_snapshot uuid, p_crawl uuid, p_origin text)
  returns table (state text, rules text, error text, to_fetch boolean, too_early boolean)
  language plpgsql as $$
-- to_fetch: the caller must fetch robots.txt within a minute and call robots_put; no other worker fetches it
-- meanwhile. State "wanted" without to_fetch: another worker is fetching it. too_early: the snapshot was
-- claimed before the delay of its host was known.
declare
  v_now constant timestamptz := clock_timestamp();
  v_row holdfast.robots;
  v_fetch boolean := false;
begin
  perform holdfast.mine(p_worker);
  select * into v_row from holdfast.robots r where r.origin = p_origin;
  if (v_row.expires_at > v_now) is not true then
    if v_row.origin is null then
      insert into holdfast.robots (origin) values (p_origin) on conflict do nothing;
    end if;
    -- Does not wait: the holder of the lock is about to fetch, or has just done so.
    select * into v_row from holdfast.robots r where r.origin = p_origin for update skip locked;
    if found and coalesce(greatest(v_row.expires_at, v_row.fetch_until), v_now) <= v_now then
      update holdfast.robots r
        set fetcher_id = p_worker, fetch_until = v_now + interval '1 minute'
        where r.origin = p_origin;
      v_fetch := true;
    end if;
  end if;
  if v_row.expires_at > v_now then
    return query
      select v_row.state, v_row.rules, v_row.error, false,
             exists (select from holdfast.snapshot_queue q
                       join holdfast.crawl c on c.id = q.crawl_id
                       join holdfast.host h on h.name = q.host
                       where greatest(holdfast.host_delay(h, c), h.robots_delay) > '0'
                         and q.snapshot_id = p_snapshot
                         and q.crawl_id = p_crawl
                         and q.claimed_at < v_row.fetched_at);
  else
    return query select 'wanted', '', null::text, v_fetch, false;
  end if;
end $$;
comment on function holdfast.robots_get is 'Returns robots.txt of a site, or requests a fetch.';

create or replace function holdfast.robots_put(
    p_worker uuid, p_origin text, p_host text, p_status integer, p_rules text, p_error text, p_delay interval,
    p_keep interval)
  returns boolean language plpgsql as $$
-- p_error: it could not be fetched. p_delay: the site's Crawl-delay, capped by the caller. Returns whether
-- the host has a delay (its own, or of a crawl whose page the worker has), so that this request was the one
-- for now.
begin
  perform holdfast.mine(p_worker);
  perform from holdfast.robots
    where origin = p_origin and fetcher_id = p_worker
    for update; -- locked before the host
  if p_error is null then
    perform holdfast.host_crawl_delay(p_host, coalesce(p_delay, '0'), 'robots.txt of ' || p_origin);
  end if;
  -- fetched_at is taken after the host has its delay: a snapshot claimed before that did not keep it.
  update holdfast.robots
    set state = case when p_error is null then 'known' else 'unreachable' end,
        status = p_status, rules = p_rules, error = p_error, fetcher_id = null, fetch_until = null,
        fetched_at = clock_timestamp(), expires_at = clock_timestamp() + p_keep
    where origin = p_origin and fetcher_id = p_worker;
  return exists (select from holdfast.host h
                   left join (holdfast.snapshot_queue q join holdfast.crawl c on c.id = q.crawl_id)
                     on q.owner_id = p_worker and q.host = h.name
                   where h.name = p_host
                     and greatest(holdfast.host_delay(h, c), h.robots_delay) > '0');
end $$;
comment on function holdfast.robots_put is 'Stores robots.txt of a site, as just fetched.';

create or replace view holdfast.v_robots as
  select r.origin, r.state, r.status, length(r.rules) as size, r.error, r.fetched_at, r.expires_at
    from holdfast.robots r;
comment on view holdfast.v_robots is 'robots.txt of hosts, as last fetched.';
comment on column holdfast.v_robots.size is 'Length of the rules, in characters.';
