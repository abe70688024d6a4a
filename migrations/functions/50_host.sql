-- Hosts and their limits: those that users have set, else those of each crawl (host_limits). Snapshots are
-- claimed through lanes, a row of crawl_lane for each crawl and host, so that a host that has to wait costs
-- one lane and not a scan over its rows. Changes take effect with the next claim of any worker.

create or replace function holdfast.lane_open(p_crawl uuid, p_hosts text[], p_at timestamptz[])
  returns void language plpgsql as $$
-- Pages of these hosts of a crawl are due at these times. In the order of the hosts: two transactions that
-- open the same lanes must not wait for each other.
begin
  insert into holdfast.crawl_lane as l (crawl_id, host, next_at)
    select p_crawl, u.host, min(u.at)
      from unnest(p_hosts, p_at) u(host, at)
      group by u.host
      order by u.host
    on conflict (crawl_id, host) do update
      set next_at = least(l.next_at, excluded.next_at), low_at = least(l.low_at, excluded.next_at);
end $$;

create or replace function holdfast.claim_lanes(
    p_worker uuid, p_crawl uuid, p_room integer, p_newest boolean, p_top_n integer, p_only uuid[])
  returns uuid[] language plpgsql as $$
-- Takes due snapshots lane by lane, each with the row of its host locked. So the limits of a host are exact,
-- however many workers claim. p_newest, p_top_n: the order within a lane, see claim_pick; the lanes
-- themselves take turns. Fetches one lane at a time: a loop over the query would lock lanes ahead, which
-- other claims could serve.
declare
  c_lanes cursor for
    select l.host, l.low_at
      from holdfast.crawl_lane l
      where l.crawl_id = p_crawl
        and l.next_at <= clock_timestamp()
        and (p_only is null or l.host in (select q.host
                                            from holdfast.snapshot_queue q
                                            where q.snapshot_id = any (p_only)))
      order by l.next_at
      limit greatest(8, 2 * p_room)
      for update skip locked;
  v_lane record;
  v_host holdfast.host;
  v_crawl holdfast.crawl;
  v_ids uuid[] := '{}';
begin
  open c_lanes;
  while cardinality(v_ids) < p_room loop
    fetch c_lanes into v_lane;
    exit when not found;
    select * into v_host from holdfast.host h where h.name = v_lane.host for update skip locked;
    -- Without a row only the limits of the crawl hold.
    continue when not found and exists (select from holdfast.host h where h.name = v_lane.host);
    v_host.name := v_lane.host;
    if v_crawl.id is null then
      select * into v_crawl from holdfast.crawl c where c.id = p_crawl;
    end if;
    v_ids := v_ids || holdfast.claim_lane(p_worker, v_crawl, v_host, v_lane.low_at,
                                          p_room - cardinality(v_ids), p_newest, p_top_n, p_only);
  end loop;
  close c_lanes;
  return v_ids;
end $$;

create or replace function holdfast.host_delay(p_host holdfast.host, p_crawl holdfast.crawl)
  returns interval language sql immutable as $$
  select greatest(coalesce(p_host.min_delay, p_crawl.host_delay),
                  case when p_crawl.robots then p_host.robots_delay end)
$$;
comment on function holdfast.host_delay is
  'Returns the delay of a crawl at a host: the one that users have set for the host, else that of the crawl. A '
  'Crawl-delay counts only in crawls that follow robots.txt.';

create or replace function holdfast.host_limits(
    p_host holdfast.host, p_crawl holdfast.crawl, out delay interval, out cap integer)
  language plpgsql immutable as $$
-- Returns the limits that a crawl obeys at a host.
declare
  v_robots constant boolean := p_crawl.robots and p_host.robots_delay > '0';
begin
  delay := holdfast.host_delay(p_host, p_crawl);
  -- Where one page at a time is allowed, the delay counts from the end of one to the start of the next: with
  -- a Crawl-delay, and with a delay without a cap.
  cap := case when v_robots then 1
              else coalesce(nullif(coalesce(p_host.max_parallel, p_crawl.host_parallel), 0),
                            case when delay > '0' then 1 end) end;
end $$;

create or replace function holdfast.claim_lane(
    p_worker uuid, p_crawl holdfast.crawl, p_host holdfast.host, p_low timestamptz, p_room integer,
    p_newest boolean, p_top_n integer, p_only uuid[])
  returns uuid[] language plpgsql as $$
-- Takes the pages that the host allows now from one lane; both rows are locked. Then sets the next due time
-- of the lane.
--
-- Claimed rows leave dead index entries at the head of the lane, which stay as long as any transaction may
-- see them. So low_at of a lane records how far its claims have come, and a claim starts there. Pages that a
-- claim in another transaction has taken still count as waiting here, so low_at never passes them.
declare
  v_now constant timestamptz := clock_timestamp();
  v_limits constant record := holdfast.host_limits(p_host, p_crawl);
  v_free integer;
  v_room integer;
  v_full boolean;
  v_ids uuid[] := '{}';
  v_next timestamptz := case when p_host.paused then 'infinity'
                             else greatest(p_host.last_at + v_limits.delay, p_host.backoff_until) end;
begin
  if p_crawl.deadline_at <= v_now then return v_ids; end if; -- since the claim began
  if v_next > v_now then
    update holdfast.crawl_lane set next_at = v_next where crawl_id = p_crawl.id and host = p_host.name;
    return v_ids;
  end if;
  if v_limits.cap is not null then
    select v_limits.cap - count(*)
      into v_free
      from (select from holdfast.snapshot_queue q
              where q.host = p_host.name and q.claimed_at is not null
              limit v_limits.cap) held;
  end if;
  if v_free > 0 or v_limits.cap is null then
    v_room := least(p_room, v_free, case when v_limits.delay > '0' then 1 end);
    if p_only is not null or p_newest or p_top_n > v_room then
      v_ids := holdfast.claim_pick(p_crawl.id, p_host.name, v_room, p_newest, p_top_n, p_only);
    else
      v_ids := holdfast.claim_due(p_crawl.id, p_host.name, p_low, v_room);
    end if;
    if v_ids <> '{}' then v_ids := holdfast.claim_take(p_worker, p_crawl.id, v_ids, v_now); end if;
  end if;
  -- Once a crawl has kept a delay at the host, pages of all crawls count for it.
  if v_ids <> '{}'
     and (p_host.last_at is not null or v_limits.delay > '0' or p_host.robots_delay > '0') then
    p_host.last_at := clock_timestamp();
    update holdfast.host set last_at = p_host.last_at where name = p_host.name;
  end if;
  select q.retry_at -- not min(): planned for an empty queue, that reads the whole lane
    into v_next
    from holdfast.snapshot_queue q
    where q.crawl_id = p_crawl.id and q.host = p_host.name and q.owner_id is null and q.retry_at >= p_low
    order by q.retry_at
    limit 1;
  -- A full host is looked at again when one of its snapshots ends, and after a second at the latest. A lane
  -- that was served goes behind those that were not. An empty lane is opened by the transaction that puts
  -- work into it; should that ever fail, work that is held now and comes back waits a minute, not for ever.
  v_full := coalesce(v_free - cardinality(v_ids) <= 0, false);
  update holdfast.crawl_lane
    set wants_room = v_full, low_at = coalesce(v_next, p_low),
        next_at = case
          when v_next is null
               and exists (select from holdfast.snapshot_queue q
                             where q.host = p_host.name
                               and q.claimed_at is not null
                               and q.crawl_id = p_crawl.id)
            then v_now + interval '1 minute'
          when v_next is null or v_next = holdfast.retry_at_max() then 'infinity'
          when v_full then greatest(v_next, v_now + interval '1 second')
          else greatest(v_next, p_host.last_at + v_limits.delay, v_now)
        end
    where crawl_id = p_crawl.id and host = p_host.name;
  return v_ids;
end $$;

create or replace function holdfast.room_made(p_crawls uuid[], p_lanes text[])
  returns void language plpgsql as $$
-- Snapshots of these crawls, and of these lanes ("crawl host"), are held no longer. Crawls at their
-- max_parallel are ready again, hosts at their cap are looked at again. The caller holds the locks
-- (lock_for).
declare
  v_lane record;
begin
  if p_crawls is not null then
    update holdfast.crawl_queue c
      set ready_at = least(coalesce(c.ready_at, clock_timestamp()), clock_timestamp()), wakes = c.wakes + 1
      where c.crawl_id = any (p_crawls) and c.max_parallel is not null;
  end if;
  if p_lanes is null then return; end if;
  for v_lane in
    select split_part(u, ' ', 1)::uuid as crawl_id, split_part(u, ' ', 2) as host
      from unnest(p_lanes) u
      order by u
  loop
    perform holdfast.lane_end(v_lane.crawl_id, v_lane.host);
  end loop;
end $$;

create or replace function holdfast.lane_end(p_crawl uuid, p_host text)
  returns void language plpgsql as $$
-- A snapshot of a rate-limited host was released or sealed. Frees the host's slot and wakes the crawls that
-- wait for it: for certain the snapshot's own crawl, whose row in crawl_queue the caller has locked; and a
-- few others, if their rows are not locked just now (they look again within a second anyway).
declare
  v_crawls uuid[];
begin
  if not exists (select from holdfast.crawl_lane l where l.host = p_host and l.wants_room)
     and not exists (select from holdfast.host h
                       where h.name = p_host
                         and (h.last_at is not null or greatest(h.min_delay, h.robots_delay) > '0')) then
    return; -- no crawl waits for it, and it has no delay
  end if;
  -- One at a time: the delay counts from here. The row is locked (lock_for), unless the host has only just
  -- got its delay.
  update holdfast.host
    set last_at = clock_timestamp()
    where name in (select h.name
                     from holdfast.host h
                     join holdfast.crawl c on c.id = p_crawl
                     cross join lateral holdfast.host_limits(h, c) l
                     where h.name = p_host
                       and (h.robots_delay > '0' or l.delay > '0' and l.cap = 1)
                     for no key update of h skip locked);
  -- Read without a lock: if a claim is just setting wants_room, it has counted this snapshot as ended, or it
  -- looks again in a second.
  if exists (select from holdfast.crawl_lane where crawl_id = p_crawl and host = p_host and wants_room) then
    update holdfast.crawl_queue
      set ready_at = least(coalesce(ready_at, clock_timestamp()), clock_timestamp()), wakes = wakes + 1
      where crawl_id = p_crawl;
    update holdfast.crawl_lane
      set next_at = clock_timestamp(), wants_room = false
      where crawl_id = p_crawl and host = p_host and wants_room;
  end if;
  v_crawls := array(select l.crawl_id
                      from holdfast.crawl_lane l
                      where l.host = p_host and l.wants_room and l.crawl_id <> p_crawl
                      order by l.next_at
                      limit 4);
  if v_crawls = '{}' then return; end if;
  v_crawls := array(select q.crawl_id
                      from holdfast.crawl_queue q
                      where q.crawl_id = any (v_crawls)
                      order by q.crawl_id
                      for update skip locked);
  update holdfast.crawl_queue
    set ready_at = clock_timestamp(), wakes = wakes + 1
    where crawl_id = any (v_crawls);
  update holdfast.crawl_lane l
    set next_at = clock_timestamp(), wants_room = false
    from (select o.crawl_id
            from holdfast.crawl_lane o
            where o.host = p_host and o.wants_room and o.crawl_id = any (v_crawls)
            for update skip locked) o
    where l.crawl_id = o.crawl_id and l.host = p_host;
end $$;

create or replace function holdfast.hosts_enter(p_crawls uuid[], p_hosts text[])
  returns void language plpgsql as $$
-- Hosts of found URLs whose crawls have limits get their row; p_crawls names the crawl of each. The limits
-- stay the crawl's. In one order, and before anything of crawl_queue is locked.
begin
  insert into holdfast.host (name, updated_by)
    select distinct on (u.host) u.host, 'crawl ' || c.id
      from unnest(p_crawls, p_hosts) u(crawl, host)
      join holdfast.crawl c
        on c.id = u.crawl and c.stopping_at is null and (c.host_delay > '0' or c.host_parallel is not null)
      where c.id = any (p_crawls)
        and u.host <> ''
        and not exists (select from holdfast.host o where o.name = u.host)
      order by u.host
    on conflict (name) do nothing;
end $$;

create or replace function holdfast.host_wake(p_host text)
  returns void language plpgsql as $$
-- Makes the lanes of a host due, and the crawls they belong to; the crawls' rows are locked first, as
-- everywhere. A lane made while this waits for a lock is new and due anyway.
declare
  v_lanes constant uuid[] := array(select l.crawl_id from holdfast.crawl_lane l where l.host = p_host);
  v_crawls uuid[];
begin
  v_crawls := array(select q.crawl_id
                      from holdfast.crawl_queue q
                      where q.crawl_id = any (v_lanes)
                      order by q.crawl_id
                      for no key update);
  update holdfast.crawl_queue q
    set ready_at = clock_timestamp(), wakes = wakes + 1
    where q.crawl_id = any (v_crawls);
  perform from holdfast.crawl_lane l
    where l.host = p_host and l.crawl_id = any (v_lanes)
    order by l.crawl_id
    for no key update;
  update holdfast.crawl_lane l
    set next_at = clock_timestamp(), wants_room = false
    where l.host = p_host and l.crawl_id = any (v_lanes);
  perform holdfast.notify_workers();
end $$;

create or replace function holdfast.host_held(p_host text)
  returns uuid[] language sql stable as $$
  -- The snapshots of a host that workers have now.
  select array(select q.snapshot_id
                 from holdfast.process p
                 join holdfast.snapshot_queue q on q.owner_id = p.id
                 where p.status = 'running' and q.host = p_host)
$$;

create or replace function holdfast.host_enter(p_host text, p_who text)
  returns void language plpgsql as $$
-- Gives a host its row, and locks it.
begin
  loop -- again if another transaction has just deleted the row
    insert into holdfast.host (name, updated_by) values (p_host, p_who) on conflict do nothing;
    perform from holdfast.host where name = p_host for no key update;
    exit when found;
  end loop;
end $$;

create or replace function holdfast.host_check(p_host text)
  returns void language plpgsql immutable as $$
begin
  if p_host is null or p_host !~ '^[a-z0-9._:-]+$' then
    raise exception '"%" is not a host name', p_host
      using errcode = 'HF004',
        hint = 'As in a URL, in lower case: example.org, without https:// and without a path.';
  end if;
end $$;

create or replace function holdfast.host_set(p_host text, p_delay interval, p_parallel integer, p_by text)
  returns void language plpgsql as $$
-- Counts from the last page, so a delay that still runs is shortened with it.
begin
  perform holdfast.host_check(p_host);
  if p_delay < '0' or p_delay > '1 day' or p_parallel < 0 then
    raise exception 'a delay must be from 0 to 1 day, and a cap must not be negative' using errcode = 'HF004';
  end if;
  perform holdfast.host_enter(p_host, holdfast.who(p_by));
  update holdfast.host
    set min_delay = coalesce(p_delay, min_delay),
        max_parallel = coalesce(p_parallel, max_parallel),
        updated_by = holdfast.who(p_by), updated_at = clock_timestamp()
    where name = p_host;
  perform holdfast.host_wake(p_host);
  perform holdfast.control_done('set', 'host', p_host, null, holdfast.who(p_by),
    (select concat_ws(', ', 'delay ' || min_delay,
                      case max_parallel when 0 then 'no cap' else 'at most ' || max_parallel || ' at once' end)
       from holdfast.host
       where name = p_host), 0);
end $$;
comment on function holdfast.host_set is
  'Sets the minimum time between two pages of a host, and the maximum number at once (0: no cap). NULL: unchanged.';

create or replace function holdfast.host_crawl_delay(p_host text, p_delay interval, p_who text)
  returns void language plpgsql as $$
-- The Crawl-delay that its robots.txt states now; 0: none. If sites on several ports of a host state one, the
-- last that was read counts.
begin
  if coalesce((select h.robots_delay from holdfast.host h where h.name = p_host), '0') = p_delay then
    return;
  end if;
  perform holdfast.host_check(p_host);
  perform holdfast.host_enter(p_host, p_who);
  update holdfast.host
    set robots_delay = p_delay, updated_by = p_who, updated_at = clock_timestamp(),
        last_at = coalesce(last_at, clock_timestamp()) -- reading robots.txt was a request, too
    where name = p_host;
  perform holdfast.host_wake(p_host);
  perform holdfast.control_done('set', 'host', p_host, null, p_who,
    'delay ' || p_delay || ' in crawls that follow robots.txt', 0);
end $$;

create or replace function holdfast.host_forget(p_host text, p_by text)
  returns bigint language plpgsql as $$
declare
  v_host holdfast.host;
begin
  perform holdfast.host_check(p_host);
  select * into v_host from holdfast.host where name = p_host for update;
  if not found then return 0; end if;
  if v_host.paused or v_host.backoff_until > clock_timestamp() then
    raise exception '% is %', p_host,
      case when v_host.paused then 'paused'
           else 'in back-off until ' || holdfast.people_time(v_host.backoff_until) end
      using errcode = 'HF004', hint = 'holdfast resume --host ' || p_host || ' ends that first.';
  end if;
  delete from holdfast.host where name = p_host;
  perform holdfast.host_wake(p_host);
  return holdfast.control_done('forget', 'host', p_host, null, holdfast.who(p_by), null, 0);
end $$;
comment on function holdfast.host_forget is
  'Removes all limits of a host, unless it is paused or in back-off. Returns 0 if it had none.';

create or replace function holdfast.host_rate_limited(
    p_host text, p_status integer, p_retry_after interval, p_hostname text)
  returns timestamptz language plpgsql as $$
-- Records that a host requested fewer requests (429, 503, Retry-After). It gets none until the time it named
-- (a day at most), or for 30 s, doubled with each complaint after the last wait was over (an hour at most).
-- Complaints of pages that were under way together count once.
declare
  v_now constant timestamptz := clock_timestamp();
  v_who constant text := 'worker on ' || p_hostname;
  v_asked constant interval := case when p_retry_after is not null
                                    then greatest(least(p_retry_after, interval '1 day'), interval '0') end;
  v_until timestamptz;
begin
  perform holdfast.host_check(p_host);
  perform holdfast.host_enter(p_host, v_who);
  update holdfast.host h
    set backoff_level = case when h.backoff_until > v_now then h.backoff_level else h.backoff_level + 1 end,
        backoff_until = case
          when h.backoff_until > v_now then greatest(h.backoff_until, v_now + v_asked)
          else v_now + coalesce(v_asked, least(interval '30 seconds' * power(2, least(h.backoff_level, 7)),
                                               interval '1 hour'))
        end,
        reason = case
          when h.paused then h.reason
          else 'it asked us to slow down' || coalesce(' (status ' || nullif(p_status, 0) || ')', '')
        end,
        updated_by = v_who, updated_at = v_now
    where h.name = p_host
    returning h.backoff_until into v_until;
  perform holdfast.control_done('back off', 'host', p_host, null, v_who,
    format('until %s', to_char(v_until at time zone 'UTC', 'HH24:MI:SS "UTC"')), 0);
  return v_until;
end $$;
comment on function holdfast.host_rate_limited is
  'Records that a host requested fewer requests; returns the end of the back-off.';
