-- Snapshots: claiming, starting, putting back, sealing. Every function that writes names (snapshot, fence); a stale fence
-- raises HF003 and changes nothing.

create or replace function holdfast.lane_claim(p_node uuid, p_crawl uuid, p_room integer) returns uuid[]
  language plpgsql set plan_cache_mode = force_generic_plan as $$
-- Takes due snapshots of hosts with limits, of one crawl: lane by lane, each with the row of its host locked, so that what the host
-- allows is counted exactly however many nodes claim. Whatever another claim has locked is left to that one: a claim never waits.
declare
  v_now timestamptz;
  v_room integer := p_room;
  v_may integer;
  v_cap integer;
  v_free integer;
  v_full boolean;
  v_lane record;
  v_host holdfast.host;
  v_taken uuid[];
  v_ids uuid[] := '{}';
  v_next timestamptz;
begin
  for v_lane in
    select l.host from holdfast.crawl_lane l where l.crawl_id = p_crawl and l.next_at <= clock_timestamp()
      order by l.next_at limit greatest(8, 2 * p_room) for update skip locked
  loop
    exit when v_room <= 0;
    select * into v_host from holdfast.host h where h.name = v_lane.host for update skip locked;
    if not found and exists (select from holdfast.host h where h.name = v_lane.host) then continue; end if;
    v_now := clock_timestamp();
    if v_host.paused then
      update holdfast.crawl_lane set next_at = 'infinity' where crawl_id = p_crawl and host = v_lane.host;
      continue;
    end if;
    v_next := greatest(v_host.next_at, v_host.backoff_until);
    if v_next > v_now then
      update holdfast.crawl_lane set next_at = v_next where crawl_id = p_crawl and host = v_lane.host;
      continue;
    end if;
    -- A delay without a cap means one at a time: the delay then counts from the end of one to the start of the next.
    v_cap := coalesce(v_host.max_parallel, case when v_host.min_delay > '0' then 1 end);
    v_may := v_room;
    if v_cap is not null then
      select v_cap - count(*) into v_free from (select from holdfast.snapshot_queue q where q.host = v_lane.host and q.owner_id is not null and q.lane
        limit v_cap) held;
      v_may := least(v_room, v_free, case when v_host.min_delay > '0' then 1 end);
    end if;
    v_taken := null;
    if v_may > 0 then
      with due as (
        select q.snapshot_id, q.crawl_id from holdfast.snapshot_queue q
          where q.crawl_id = p_crawl and q.host = v_lane.host and q.owner_id is null and q.lane and q.retry_at <= v_now
          order by q.retry_at limit v_may for update skip locked
      ), taken as (
        update holdfast.snapshot_queue q
          set owner_id = p_node, claimed_at = v_now, fence = q.fence + 1, attempts = q.attempts + 1, reason = null
          from due where q.snapshot_id = due.snapshot_id and q.crawl_id = due.crawl_id
          returning q.snapshot_id
      )
      select array_agg(t.snapshot_id) into v_taken from taken t;
    end if;
    if v_taken is not null then
      v_ids := v_ids || v_taken;
      v_room := v_room - cardinality(v_taken);
      if v_host.min_delay > '0' then
        v_host.next_at := clock_timestamp() + v_host.min_delay;
        update holdfast.host set next_at = v_host.next_at where name = v_lane.host;
      end if;
    end if;
    select min(q.retry_at) into v_next from holdfast.snapshot_queue q
      where q.crawl_id = p_crawl and q.host = v_lane.host and q.owner_id is null and q.lane;
    -- A lane that was served goes behind those that were not. A full host is looked at again when one of its snapshots ends, and
    -- after a second at the latest.
    v_full := v_cap is not null and v_free - coalesce(cardinality(v_taken), 0) <= 0;
    update holdfast.crawl_lane
      set wants_room = v_full,
          next_at = case when v_next is null then
                           -- Whoever puts work back opens the lane. Should that ever fail, it waits a minute, not for ever.
                           case when exists (select from holdfast.snapshot_queue q where q.host = v_lane.host and q.owner_id is not null and q.lane
                                               and q.crawl_id = p_crawl) then v_now + interval '1 minute' else 'infinity' end
                         when v_next = holdfast.retry_at_max() then 'infinity'
                         when v_full then greatest(v_next, v_now + interval '1 second')
                         else greatest(v_next, v_host.next_at, v_now) end
      where crawl_id = p_crawl and host = v_lane.host;
  end loop;
  return v_ids;
end $$;
comment on function holdfast.lane_claim(uuid, uuid, integer) is 'Takes due snapshots of a crawl whose hosts have limits.';

create or replace function holdfast.snapshot_claim(p_node uuid, p_room integer, p_near uuid[])
  returns table (snapshot_id uuid, crawl_id uuid, fence bigint, url text, host text, depth integer, title text, tags text[],
                 created_at timestamptz, attempts integer, owners_lost integer, plugins text[], options jsonb, persona text, max_depth integer)
  language plpgsql set plan_cache_mode = force_generic_plan as $$
-- Takes up to p_room due snapshots: in every other claim first of the crawls the node has open (p_near), then by walking all ready
-- crawls from a random place, a few rows from each, so that no crawl waits behind another however large. Seven claims of eight
-- walk crawls of higher priority first and those below 0 last; the eighth does not look at priority, so that nobody starves. Never
-- a scan over the queue: each probe is one index range. A crawl in which nothing is due is parked until something will be.
#variable_conflict use_column
declare
  v_now timestamptz := clock_timestamp();
  v_room integer := p_room;
  v_share integer;
  v_from double precision := random();
  v_near_only constant boolean := coalesce(current_setting('holdfast.claim_only_near', true) = 'on', false);
  v_near uuid[] := case when v_near_only or random() < coalesce(nullif(current_setting('holdfast.claim_near', true), '')::float, 0.5) then p_near else '{}' end;
  v_ranked constant boolean := random() < 0.875;
  v_limits boolean;
  v_order constant text := holdfast.snapshot_order_of_claims();
  v_pool constant integer := coalesce(nullif(current_setting('holdfast.claim_from_top_n', true), '')::integer, 0);
  v_in_order constant boolean := v_order = 'oldest' and v_pool <= p_room;
  v_crawl record;
  v_taken uuid[];
  v_limited uuid[];
  v_host text;
  v_count integer;
  v_found integer;
  v_ids uuid[] := '{}';
  v_next timestamptz;
begin
  if not holdfast.node_may_claim(p_node) then return; end if;
  if exists (select from holdfast.process where status = 'running' and lease_until <= v_now) then
    perform holdfast.lapse_nodes();
    v_now := clock_timestamp(); -- else what has just come back would not be due yet
  end if;

  for v_crawl in
    with walk as materialized (
      (select q.crawl_id, q.wakes, 0 as half, q.shuffle, q.priority, q.max_parallel from holdfast.crawl_queue q
         where q.shuffle >= v_from and q.ready_at <= v_now and (q.stop_at is null or q.stop_at > v_now) order by q.shuffle limit 100)
      union all
      (select q.crawl_id, q.wakes, 1, q.shuffle, q.priority, q.max_parallel from holdfast.crawl_queue q
         where q.shuffle < v_from and q.ready_at <= v_now and (q.stop_at is null or q.stop_at > v_now) order by q.shuffle limit 100)
    )
    select q.crawl_id, q.wakes, p_room as share, 0 as pass, 0 as rank, 0 as half, 0::double precision as shuffle, q.max_parallel
      from holdfast.crawl_queue q
      where q.crawl_id = any (v_near) and q.ready_at <= v_now and (q.stop_at is null or q.stop_at > v_now)
    union all
    (select q.crawl_id, q.wakes, greatest(1, p_room / 2), 1, -q.priority, (q.shuffle < v_from)::integer, q.shuffle, q.max_parallel
       from holdfast.crawl_queue q
       where v_ranked and q.priority > 0 and q.ready_at <= v_now and (q.stop_at is null or q.stop_at > v_now)
       order by q.priority desc limit 100)
    union all
    select w.crawl_id, w.wakes, greatest(1, p_room / 4), 2, case when v_ranked and w.priority < 0 then -w.priority else 0 end, w.half, w.shuffle,
           w.max_parallel from walk w
    union all
    select w.crawl_id, w.wakes, p_room, 3, case when v_ranked then -w.priority else 0 end, w.half, w.shuffle, w.max_parallel from walk w
    order by pass, rank, half, shuffle
  loop
    exit when v_room <= 0 or (v_crawl.pass > 0 and v_near_only);
    -- Asked after the crawls were read: whoever makes the first host does so together with lanes, and wakes their crawl. Asked before,
    -- it could be that the crawl is seen and its lanes are not, and the crawl would be parked as having nothing due.
    if v_limits is null then v_limits := exists (select from holdfast.host); end if;
    v_share := least(v_room, v_crawl.share);
    if v_crawl.max_parallel is not null then
      -- Locked until this claim is in, so the next one counts what it took. Ending one makes it ready again.
      perform from holdfast.crawl_queue c where c.crawl_id = v_crawl.crawl_id and c.ready_at is not null for update skip locked;
      continue when not found;
      select v_crawl.max_parallel - count(*) into v_count
        from holdfast.process p join holdfast.snapshot_queue q on q.owner_id = p.id
        where p.status = 'running' and q.crawl_id = v_crawl.crawl_id;
      if v_count <= 0 then
        update holdfast.crawl_queue set ready_at = v_now + interval '1 second' where crawl_id = v_crawl.crawl_id;
        continue;
      end if;
      v_share := least(v_share, v_count);
    end if;
    v_count := 0; -- taken of this crawl
    loop
      with first as materialized (
        select q.snapshot_id, q.crawl_id, v_limits and exists (select from holdfast.host h where h.name = q.host) as limited
          from holdfast.snapshot_queue q
          where v_in_order and q.crawl_id = v_crawl.crawl_id and q.owner_id is null and not q.lane and q.retry_at <= v_now
          order by q.retry_at limit v_share - v_count for update skip locked
      ), picked as materialized (
        select p.snapshot_id, p.crawl_id, v_limits and exists (select from holdfast.host h where h.name = p.host) as limited
          from (select where not v_in_order) o
          cross join lateral holdfast.snapshot_pick(v_crawl.crawl_id, v_now, v_share - v_count, v_order, v_pool) p
      ), due as (
        select * from first union all select * from picked
      ), taken as (
        update holdfast.snapshot_queue q
          set owner_id = p_node, claimed_at = v_now, fence = q.fence + 1, attempts = q.attempts + 1, reason = null
          from due where q.snapshot_id = due.snapshot_id and q.crawl_id = due.crawl_id and not due.limited
          returning q.snapshot_id
      )
      select array_agg(t.snapshot_id), (select array_agg(d.snapshot_id) from due d where d.limited), (select count(*) from due d)
        into v_taken, v_limited, v_found from taken t;
      if v_taken is not null then
        v_ids := v_ids || v_taken;
        v_count := v_count + cardinality(v_taken);
      end if;
      exit when v_limited is null;
      -- Their hosts were given limits after they were found: they move to lanes, each with others of its host. A lane that somebody
      -- has locked is left to the next claim.
      v_found := 0;
      for v_host in
        select distinct q.host from holdfast.snapshot_queue q where q.crawl_id = v_crawl.crawl_id and q.snapshot_id = any (v_limited) order by 1
      loop
        insert into holdfast.crawl_lane (crawl_id, host, next_at) values (v_crawl.crawl_id, v_host, v_now) on conflict do nothing;
        perform from holdfast.crawl_lane l where l.crawl_id = v_crawl.crawl_id and l.host = v_host for update skip locked;
        continue when not found;
        update holdfast.snapshot_queue q set lane = true
          from (select d.snapshot_id, d.crawl_id from holdfast.snapshot_queue d
                  where d.crawl_id = v_crawl.crawl_id and d.owner_id is null and not d.lane and d.retry_at <= v_now and d.host = v_host
                  order by d.retry_at limit 500 for update skip locked) d
          where q.snapshot_id = d.snapshot_id and q.crawl_id = d.crawl_id;
        update holdfast.crawl_lane set next_at = least(next_at, v_now) where crawl_lane.crawl_id = v_crawl.crawl_id and crawl_lane.host = v_host;
        v_found := v_found + 1;
      end loop;
      exit when v_found = 0;
      exit when v_count >= v_share;
    end loop;
    if v_count < v_share and v_limits then
      v_taken := holdfast.lane_claim(p_node, v_crawl.crawl_id, v_share - v_count);
      v_ids := v_ids || v_taken;
      v_count := v_count + cardinality(v_taken);
    end if;
    v_room := v_room - v_count;
    if v_count < v_share then
      -- Nothing more is due. Park the crawl until its next row or lane is, unless somebody woke it since we looked.
      select min(q.retry_at) into v_next from holdfast.snapshot_queue q
        where q.crawl_id = v_crawl.crawl_id and q.owner_id is null and not q.lane;
      if v_next is null or v_next > v_now then
        v_next := nullif(v_next, holdfast.retry_at_max());
        if v_limits then
          select least(v_next, min(l.next_at)) into v_next from holdfast.crawl_lane l
            where l.crawl_id = v_crawl.crawl_id and l.next_at < holdfast.retry_at_max();
        end if;
        -- A lane that is due and was not served is being served by another claim.
        if v_next <= v_now then v_next := v_now + interval '50 milliseconds'; end if;
        -- Whoever adds work or puts it back wakes the crawl. Should that ever fail, its work waits a minute, not for ever.
        v_next := least(coalesce(v_next, 'infinity'), v_now + interval '1 minute');
        update holdfast.crawl_queue set ready_at = v_next
          where crawl_id in (select c.crawl_id from holdfast.crawl_queue c
                               where c.crawl_id = v_crawl.crawl_id and c.wakes = v_crawl.wakes and c.ready_at is distinct from v_next
                               for update skip locked);
      end if;
    end if;
  end loop;

  return query
    select q.snapshot_id, q.crawl_id, q.fence, s.url, s.host, s.depth, s.title, s.tags, s.created_at, q.attempts, q.owners_lost,
           c.plugins, c.options, c.persona, c.max_depth
      from unnest(v_ids) i(id)
      join holdfast.snapshot_queue q on q.snapshot_id = i.id and q.owner_id = p_node
      join holdfast.snapshot s on s.id = q.snapshot_id and s.crawl_id = q.crawl_id
      join holdfast.crawl c on c.id = q.crawl_id;
end $$;
comment on function holdfast.snapshot_claim(uuid, integer, uuid[]) is 'Takes due snapshots for a node: FOR UPDATE SKIP LOCKED, fence + 1, owner recorded.';

create or replace function holdfast.claim_wait() returns interval language sql stable as $$
  -- How long until something that waits now will be due; NULL: nothing waits. Work that is due already may be locked by others.
  select greatest(least((select min(q.ready_at) from holdfast.crawl_queue q where q.ready_at is not null),
                        (select min(c.retry_at) from holdfast.crawl c where c.owner_id is null and c.retry_at is not null
                           and c.retry_at < holdfast.retry_at_max()))
                  - clock_timestamp(), interval '0')
$$;
comment on function holdfast.claim_wait() is 'How long a node that found nothing to claim may sleep.';

create or replace function holdfast.snapshot_start(p_node uuid, p_snapshot uuid, p_crawl uuid, p_fence bigint) returns void
  language plpgsql set enable_seqscan = off as $$
begin
  perform set_config('holdfast.event', 'start', true);
  update holdfast.snapshot_queue set status = 'started', started_at = clock_timestamp()
    where snapshot_id = p_snapshot and crawl_id = p_crawl and owner_id = p_node and fence = p_fence and status = 'queued';
  if found then return; end if;
  perform from holdfast.snapshot_queue
    where snapshot_id = p_snapshot and crawl_id = p_crawl and owner_id = p_node and fence = p_fence and status = 'started';
  if not found then
    raise exception 'snapshot % is no longer held with fence %', p_snapshot, p_fence using errcode = 'HF003';
  end if;
end $$;
comment on function holdfast.snapshot_start(uuid, uuid, uuid, bigint) is 'The owner is about to run the first hook. May be repeated.';

create or replace function holdfast.snapshot_release(p_node uuid, p_snapshot uuid, p_crawl uuid, p_fence bigint, p_ending text, p_delay interval,
    p_reason text, p_spend boolean) returns void language plpgsql set enable_seqscan = off as $$
-- Puts a snapshot back. p_spend false: the attempt is not counted (stopping is not failing). May be repeated.
declare
  v_due constant timestamptz := clock_timestamp() + p_delay;
  v_crawl holdfast.crawl;
  v_lane boolean;
  v_host text;
begin
  if p_ending not in ('released', 'interrupted', 'handed_back') then
    raise exception 'a snapshot is not put back by being "%"', p_ending using errcode = 'HF001';
  end if;
  -- A crawl that is being stopped takes nothing back; its row is locked first, as whenever a snapshot is sealed.
  select * into v_crawl from holdfast.crawl where id = p_crawl;
  if v_crawl.stopping_at is not null then perform from holdfast.crawl where id = p_crawl for no key update; end if;
  select q.lane, q.host into v_lane, v_host from holdfast.snapshot_queue q
    where q.snapshot_id = p_snapshot and q.crawl_id = p_crawl and q.owner_id = p_node and q.fence = p_fence for update;
  if not found then
    -- Only what this node put back itself is a repeat: what was taken from it is lost, and it must hear of that.
    if exists (select from holdfast.attempt where snapshot_id = p_snapshot and crawl_id = p_crawl and fence = p_fence
                 and process_id = p_node and ending = p_ending) then return; end if;
    raise exception 'snapshot % is no longer held with fence %', p_snapshot, p_fence using errcode = 'HF003';
  end if;
  perform holdfast.attempt_end(p_snapshot, p_crawl, p_ending, p_reason);
  perform holdfast.results_close(p_snapshot, p_crawl, p_fence, p_reason);
  if v_crawl.stopping_at is not null then
    perform holdfast.snapshot_finish(p_snapshot, p_crawl, 'cancelled', coalesce(v_crawl.reason, 'its crawl was stopped'), p_node, null, null, 0, 0, '', '{}');
    return;
  end if;
  perform set_config('holdfast.event', 'release', true);
  update holdfast.snapshot_queue set status = 'queued', owner_id = null, claimed_at = null, started_at = null,
      retry_at = v_due, reason = p_reason, attempts = attempts - (case when p_spend then 0 else 1 end)
    where snapshot_id = p_snapshot and crawl_id = p_crawl;
  perform holdfast.crawl_wake(p_crawl, v_due);
  if v_lane then perform holdfast.lane_open(p_crawl, array[v_host], v_due); end if;
end $$;
comment on function holdfast.snapshot_release(uuid, uuid, uuid, bigint, text, interval, text, boolean) is 'The owner puts a snapshot back into the queue.';

create or replace function holdfast.snapshot_seal(p_node uuid, p_snapshot uuid, p_crawl uuid, p_fence bigint, p_outcome text, p_reason text,
    p_directory text, p_manifest text, p_bytes bigint, p_files bigint, p_title text, p_tags text[],
    p_urls text[], p_hosts text[], p_titles text[]) returns table (children bigint, crawl_sealed boolean)
  language plpgsql set enable_seqscan = off as $$
-- The final commit, all in one: fence checked, results final, discovered URLs inserted (depth, cap, once per crawl), counters, the
-- sealed row, and the crawl too if that was the last. May be repeated with the same fence: the second time changes nothing.
-- children -1: the page would have taken its crawl over max_bytes. It is sealed as cancelled; its owner deletes the files.
declare
  v_queue holdfast.snapshot_queue;
  v_depth integer;
  v_crawl holdfast.crawl;
  v_children bigint := 0;
begin
  -- The crawl first: without this lock two last snapshots sealing at once would each see the other open.
  select * into v_crawl from holdfast.crawl where id = p_crawl for no key update;
  select * into v_queue from holdfast.snapshot_queue where snapshot_id = p_snapshot and crawl_id = p_crawl for update;
  if not found or v_queue.owner_id is distinct from p_node or v_queue.fence <> p_fence then
    -- A repeat is what this node has sealed itself; a quarantine bears the same owner and fence, but is not its seal.
    if exists (select from holdfast.attempt a where a.snapshot_id = p_snapshot and a.crawl_id = p_crawl
                 and a.fence = p_fence and a.process_id = p_node and a.ending = 'sealed') then
      return query select 0::bigint, v_crawl.status = 'sealed';
      return;
    end if;
    if exists (select from holdfast.attempt a where a.snapshot_id = p_snapshot and a.crawl_id = p_crawl and a.fence = p_fence
                 and a.process_id = p_node and a.ending = 'cancelled') then
      return query select -1::bigint, v_crawl.status = 'sealed';
      return;
    end if;
    raise exception 'snapshot % is no longer held with fence %', p_snapshot, p_fence using errcode = 'HF003';
  end if;
  if exists (select from holdfast.archive_result r where r.snapshot_id = p_snapshot and r.crawl_id = p_crawl and r.fence = p_fence
               and r.ended_at is null) then
    raise exception 'snapshot % cannot be sealed: a hook is still running', p_snapshot using errcode = 'HF001';
  end if;
  if v_crawl.max_bytes > 0 and v_crawl.bytes + p_bytes > v_crawl.max_bytes then
    perform holdfast.held_lock(holdfast.crawl_held(p_crawl));
    perform holdfast.attempt_end(p_snapshot, p_crawl, 'cancelled', 'max_bytes');
    perform holdfast.snapshot_finish(p_snapshot, p_crawl, 'cancelled', format('with its %s its crawl would hold more than max_bytes (%s)',
      pg_size_pretty(p_bytes), pg_size_pretty(v_crawl.max_bytes)), p_node, null, null, 0, 0, p_title, p_tags);
    perform holdfast.crawl_stop(p_crawl, 'max_bytes', '', format('it may hold no more than %s', pg_size_pretty(v_crawl.max_bytes)), 1000);
    return query select -1::bigint, c.status = 'sealed' from holdfast.crawl c where c.id = p_crawl;
    return;
  end if;
  -- Its owner sees to that; what it got wrong is not kept.
  if v_crawl.max_snapshot_bytes > 0 and v_crawl.max_snapshot_bytes < (select sum(r.output_bytes) from holdfast.archive_result r
      where r.snapshot_id = p_snapshot and r.crawl_id = p_crawl and r.fence = p_fence) then
    perform holdfast.attempt_end(p_snapshot, p_crawl, 'cancelled', 'max_snapshot_bytes');
    perform holdfast.snapshot_finish(p_snapshot, p_crawl, 'cancelled', format('its hooks left more than max_snapshot_bytes (%s)',
      pg_size_pretty(v_crawl.max_snapshot_bytes)), p_node, null, null, 0, 0, p_title, p_tags);
    return query select -1::bigint, c.status = 'sealed' from holdfast.crawl c where c.id = p_crawl;
    return;
  end if;
  select s.depth into strict v_depth from holdfast.snapshot s where s.id = p_snapshot and s.crawl_id = p_crawl;
  perform holdfast.attempt_end(p_snapshot, p_crawl, 'sealed', p_outcome);
  if cardinality(p_urls) > 0 and v_depth < v_crawl.max_depth then
    v_children := holdfast.snapshot_insert(p_crawl, p_snapshot, v_depth + 1, p_urls, p_hosts, p_titles, null);
  end if;
  return query select v_children, holdfast.snapshot_finish(p_snapshot, p_crawl, p_outcome, p_reason, p_node, p_directory, p_manifest,
    p_bytes, p_files, p_title, p_tags);
  if v_crawl.overwrite and p_outcome in ('succeeded', 'partial') then perform holdfast.snapshot_supersede(p_snapshot, p_crawl); end if;
end $$;
comment on function holdfast.snapshot_seal(uuid, uuid, uuid, bigint, text, text, text, text, bigint, bigint, text, text[], text[], text[], text[]) is 'Closes a snapshot for ever, with its discovered URLs.';
