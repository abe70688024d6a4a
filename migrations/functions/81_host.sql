-- Web sites: how they are to be treated. Changes take effect with the next claim of any node.

create or replace function holdfast.is_own_host(p_host text) returns boolean language plpgsql immutable parallel safe as $$
-- Addresses and names of one's own network: default politeness is for the sites of others.
begin
  if p_host ~ '^[0-9.]+$' or p_host ~ ':' then
    return p_host::inet <<= any (array['127.0.0.0/8', '10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '169.254.0.0/16', '::1/128', 'fc00::/7', 'fe80::/10']::inet[]);
  end if;
  return p_host = 'localhost' or p_host ~ '[.](localhost|local|localdomain|internal|home[.]arpa)$' or p_host !~ '[.]';
exception when others then
  return false;
end $$;
comment on function holdfast.is_own_host(text) is 'Whether a host is of one''s own network, by its name alone.';

create or replace function holdfast.hosts_enter(p_crawls uuid[], p_hosts text[]) returns void language plpgsql
  set enable_seqscan = off set jit = off set plan_cache_mode = force_generic_plan as $$
-- Hosts of links get the limits that their crawls want for hosts without any; one array names the crawl of each. In one order, and
-- before anything of crawl_queue is locked. (In SQL it would be planned with each call.)
begin
  insert into holdfast.host (name, min_delay, max_parallel, updated_by)
    select distinct on (u.host) u.host, c.host_delay, c.host_parallel, 'default of crawl ' || c.id
      from unnest(p_crawls, p_hosts) u(crawl, host)
      join holdfast.crawl c on c.id = u.crawl and c.stopping_at is null and (c.host_delay > '0' or c.host_parallel is not null)
      where c.id = any (p_crawls) and not holdfast.is_own_host(u.host) and not exists (select from holdfast.host o where o.name = u.host)
      order by u.host
    on conflict (name) do nothing;
end $$;
comment on function holdfast.hosts_enter(uuid[], text[]) is 'Gives hosts the limits that their crawls have for new hosts.';

create or replace function holdfast.host_wake(p_host text) returns void language plpgsql as $$
-- Its lanes are looked at again, and the crawls they belong to; these first, as everybody locks them. Those that come while we wait for
-- a lock are new, and looked at anyway: they are not ours to lock, out of order.
declare
  v_lanes constant uuid[] := array(select l.crawl_id from holdfast.crawl_lane l where l.host = p_host);
  v_crawls uuid[];
begin
  v_crawls := array(select q.crawl_id from holdfast.crawl_queue q where q.crawl_id = any (v_lanes) order by q.crawl_id for no key update);
  update holdfast.crawl_queue q set ready_at = clock_timestamp(), wakes = wakes + 1 where q.crawl_id = any (v_crawls);
  perform from holdfast.crawl_lane l where l.host = p_host and l.crawl_id = any (v_lanes) order by l.crawl_id for no key update;
  update holdfast.crawl_lane l set next_at = clock_timestamp(), wants_room = false where l.host = p_host and l.crawl_id = any (v_lanes);
  perform holdfast.ring();
end $$;
comment on function holdfast.host_wake(text) is 'Makes claims look at a host again.';

create or replace function holdfast.host_held(p_host text) returns uuid[] language sql stable as $$
  select array(select q.snapshot_id from holdfast.process p join holdfast.snapshot_queue q on q.owner_id = p.id
                 where p.status = 'running' and q.host = p_host)
$$;
comment on function holdfast.host_held(text) is 'Snapshots of a host in work.';

create or replace function holdfast.host_enter(p_host text, p_by text) returns void language plpgsql as $$
-- Gives a host its row, and locks it: it may be one that is just being forgotten. What is in work of it counts from now on (unless it
-- is just ending); what waits moves to a lane when a claim comes upon it.
declare
  v_new boolean;
begin
  loop
    insert into holdfast.host (name, updated_by) values (p_host, p_by) on conflict do nothing;
    v_new := found;
    perform from holdfast.host where name = p_host for no key update;
    exit when found;
  end loop;
  if not v_new then return; end if;
  update holdfast.snapshot_queue set lane = true where not lane and snapshot_id in
    (select q.snapshot_id from holdfast.snapshot_queue q where q.snapshot_id = any (holdfast.host_held(p_host)) for update skip locked);
end $$;
comment on function holdfast.host_enter(text, text) is 'Makes a host one with limits.';

create or replace function holdfast.host_check(p_host text) returns void language plpgsql immutable as $$
begin
  if p_host is null or p_host !~ '^[a-z0-9._:-]+$' then
    raise exception '"%" is no name of a host', p_host using errcode = 'HF004', hint = 'As in a URL, in lower case: example.org, without https:// and without a path.';
  end if;
end $$;
comment on function holdfast.host_check(text) is 'Refuses what cannot be the name of a host.';

create or replace function holdfast.host_set(p_host text, p_delay interval, p_parallel integer, p_by text) returns void language plpgsql as $$
-- NULL: as it is. p_parallel 0: no cap. An earlier delay that still runs is shortened with it.
begin
  perform holdfast.host_check(p_host);
  if p_delay < '0' or p_parallel < 0 then raise exception 'neither delay nor parallel can be below 0' using errcode = 'HF004'; end if;
  perform holdfast.host_enter(p_host, p_by);
  update holdfast.host set min_delay = coalesce(p_delay, min_delay),
      max_parallel = case when p_parallel is null then max_parallel else nullif(p_parallel, 0) end,
      next_at = case when next_at is not null then least(next_at, clock_timestamp() + coalesce(p_delay, min_delay)) end, updated_by = p_by, updated_at = clock_timestamp()
    where name = p_host;
  perform holdfast.host_wake(p_host);
  perform holdfast.control_note('set', 'host', p_host, null, p_by,
    (select concat_ws(', ', 'delay ' || min_delay, coalesce('at most ' || max_parallel || ' at once', 'no cap')) from holdfast.host where name = p_host), 0);
end $$;
comment on function holdfast.host_set(text, interval, integer, text) is 'Sets the least time between two pages of a host, and how many at once (0: no cap). NULL: as it is.';

create or replace function holdfast.host_forget(p_host text, p_by text) returns bigint language plpgsql as $$
-- Its row goes, and its limits with it. What is in its lanes is taken from there as if they had none. Returns 0 if there is no such row.
declare
  v_host holdfast.host;
begin
  perform holdfast.host_check(p_host);
  select * into v_host from holdfast.host where name = p_host for update;
  if not found then return 0; end if;
  if v_host.paused or v_host.backoff_until > clock_timestamp() then
    raise exception '% is %', p_host, case when v_host.paused then 'paused' else 'left in peace until ' || holdfast.people_time(v_host.backoff_until) end
      using errcode = 'HF004', hint = 'holdfast resume --host ' || p_host || ' ends that first.';
  end if;
  delete from holdfast.host where name = p_host;
  perform holdfast.host_wake(p_host);
  perform holdfast.control_note('forget', 'host', p_host, null, p_by, null, 0);
  return 1;
end $$;
comment on function holdfast.host_forget(text, text) is 'Takes all limits off a host and forgets it, unless it is paused or left in peace. A crawl with limits for new hosts may give it some again.';

create or replace function holdfast.host_pause(p_host text, p_by text, p_why text) returns bigint language plpgsql as $$
declare
  v_reason constant text := holdfast.control_reason('its web site was paused', p_by, p_why);
  v_ids uuid[];
begin
  perform holdfast.host_check(p_host);
  if exists (select from holdfast.host where name = p_host and paused) then return 0; end if;
  -- The host, also a new one, comes after crawls and rows, and before crawl_queue.
  v_ids := holdfast.held_lock_rows(holdfast.host_held(p_host));
  perform holdfast.host_enter(p_host, p_by);
  update holdfast.host set paused = true, reason = v_reason, updated_by = p_by, updated_at = clock_timestamp() where name = p_host;
  v_ids := holdfast.held_lock(v_ids);
  perform holdfast.control_note('pause', 'host', p_host, null, p_by, p_why, holdfast.held_take(v_ids, 'queued', v_reason));
  return 1;
end $$;
comment on function holdfast.host_pause(text, text, text) is 'Nothing of a host is started, and what is in work goes back into the queue.';

create or replace function holdfast.host_resume(p_host text, p_by text, p_why text) returns bigint language plpgsql as $$
-- Ends a pause, and a back-off: who resumes a site knows better.
begin
  update holdfast.host set paused = false, reason = null, backoff_until = null, backoff_level = 0, updated_by = p_by, updated_at = clock_timestamp()
    where name = p_host and (paused or backoff_until > clock_timestamp());
  if not found then return 0; end if;
  perform holdfast.host_wake(p_host);
  perform holdfast.control_note('resume', 'host', p_host, null, p_by, p_why, 0);
  return 1;
end $$;
comment on function holdfast.host_resume(text, text, text) is 'Ends the pause of a host, and its back-off. Returns 0 if there was neither.';

create or replace function holdfast.host_cancel(p_host text, p_by text, p_why text) returns bigint language plpgsql as $$
-- Up to 500 open snapshots of a host, in every crawl, are sealed as cancelled; call it until it returns 0.
declare
  v_row record;
  v_count bigint := 0;
  v_held bigint := 0;
  v_ids uuid[];
  v_reason constant text := holdfast.control_reason('its web site was cancelled', p_by, p_why);
begin
  select array_agg(snapshot_id) into v_ids from (select q.snapshot_id from holdfast.snapshot_queue q where q.host = p_host limit 500) o;
  if v_ids is null then return 0; end if;
  perform from holdfast.crawl c where c.id in (select q.crawl_id from holdfast.snapshot_queue q where q.snapshot_id = any (v_ids)) order by c.id for no key update;
  perform from holdfast.snapshot_queue q where q.snapshot_id = any (v_ids) order by q.crawl_id, q.snapshot_id for update;
  perform holdfast.held_lock(v_ids);
  for v_row in select q.snapshot_id, q.crawl_id, q.owner_id from holdfast.snapshot_queue q where q.snapshot_id = any (v_ids) order by q.crawl_id, q.snapshot_id loop
    perform holdfast.snapshot_set(v_row.snapshot_id, v_row.crawl_id, 'cancelled', v_reason);
    v_count := v_count + 1;
    v_held := v_held + (v_row.owner_id is not null)::integer;
  end loop;
  perform holdfast.control_note('cancel', 'host', p_host, null, p_by, p_why, v_held);
  return v_count;
end $$;
comment on function holdfast.host_cancel(text, text, text) is 'Cancels the next open snapshots of a host; returns how many.';

create or replace function holdfast.host_rate_limited(p_host text, p_status integer, p_retry_after interval, p_by text) returns timestamptz language plpgsql as $$
-- A site asked to be left alone (429, 503, Retry-After). Until the time it named (a day at most), or 30 s, doubled with each complaint
-- that comes after the last wait was over, an hour at most. Complaints of pages that were under way together count once.
declare
  v_now constant timestamptz := clock_timestamp();
  v_until timestamptz;
begin
  perform holdfast.host_enter(p_host, p_by);
  update holdfast.host h
    set backoff_level = case when h.backoff_until > v_now then h.backoff_level else h.backoff_level + 1 end,
        backoff_until = case when h.backoff_until > v_now then greatest(h.backoff_until, v_now + case when p_retry_after > '1 day' then interval '1 day' else p_retry_after end)
          else v_now + least(coalesce(p_retry_after, interval '30 seconds' * power(2, least(h.backoff_level, 7))),
                             case when p_retry_after is null then interval '1 hour' else interval '1 day' end) end,
        reason = case when h.paused then h.reason else 'it asked us to slow down' || coalesce(' (status ' || nullif(p_status, 0) || ')', '') end,
        updated_by = p_by, updated_at = v_now
    where h.name = p_host returning h.backoff_until into v_until;
  perform holdfast.control_note('back off', 'host', p_host, null, p_by, format('until %s', to_char(v_until at time zone 'UTC', 'HH24:MI:SS "UTC"')), 0);
  return v_until;
end $$;
comment on function holdfast.host_rate_limited(text, integer, interval, text) is 'A site asked us to slow down; returns until when it is left alone.';
