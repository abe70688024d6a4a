-- Snapshots: claiming, starting, putting back, sealing. Every function that writes names (snapshot, fence); a stale fence
-- raises HF003 and changes nothing. What is told to plan without whole-table scans is told to do without jit too: a small table that has
-- no index then counts as dear enough to be worth compiling for, at some 20 ms a call.

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
  v_starts constant boolean := coalesce(current_setting('holdfast.claim_starts', true) = 'on', false);
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
          set owner_id = p_node, claimed_at = v_now, fence = q.fence + 1, attempts = q.attempts + 1, reason = null,
              status = case when v_starts then 'started' else q.status end, started_at = case when v_starts then v_now end
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

create or replace function holdfast.claim(p_node uuid, p_room integer, p_near uuid[]) returns uuid[]
  language plpgsql set enable_seqscan = off set jit = off set plan_cache_mode = force_generic_plan as $$
-- Takes up to p_room due snapshots: in every other claim first of the crawls the node has open (p_near), then by walking all ready
-- crawls from a random place, a few rows from each, so that no crawl waits behind another however large. Seven claims of eight
-- walk crawls of higher priority first and those below 0 last; the eighth does not look at priority, so that nobody starves. Never
-- a scan over the queue: each probe is one index range. A crawl in which nothing is due is parked until something will be.
-- With holdfast.claim_starts, what is taken is started in the same write.
-- What was taken leaves dead entries at the head of its crawl's range, which stay for as long as some transaction may still see them. So a
-- session remembers in holdfast.claim_floors how far it has come in each crawl and goes on from there, for a second at most: what comes
-- back to an old place is seen then, or before if the rest does not fill the claim.
#variable_conflict use_column
declare
  v_now timestamptz := clock_timestamp();
  v_may boolean;
  v_room integer := p_room;
  v_share integer;
  v_from double precision := random();
  v_floors jsonb := coalesce(nullif(current_setting('holdfast.claim_floors', true), ''), '{}')::jsonb;
  v_floor timestamptz;
  v_last timestamptz;
  v_starts constant boolean := coalesce(current_setting('holdfast.claim_starts', true) = 'on', false);
  v_near_only constant boolean := coalesce(current_setting('holdfast.claim_only_near', true) in ('on', 'true'), false);
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
  v_opens constant integer := coalesce(nullif(current_setting('holdfast.claim_opens', true), '')::integer, 0);
  v_opened uuid;
begin
  v_may := holdfast.node_may_claim(p_node);
  -- Also by who may not claim now: what a dead node held is to be seen and settled even where all is paused.
  if exists (select from holdfast.process where status = 'running' and lease_until <= v_now) then
    perform holdfast.lapse_nodes();
    v_now := clock_timestamp(); -- else what has just come back would not be due yet
  elsif v_may and v_opens > 0 and not v_near_only then -- never after a lapse, whose locks come later in everybody's order
    v_opened := holdfast.crawl_open_small(p_node, v_opens);
    v_now := clock_timestamp();
  end if;
  if not v_may then return '{}'; end if;
  if v_starts then perform set_config('holdfast.event', 'noted', true); end if; -- see below
  if (v_floors ->> 'until')::timestamptz > v_now is not true or (select count(*) from jsonb_object_keys(v_floors)) > 100 then
    v_floors := jsonb_build_object('until', v_now + interval '1 second');
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
    -- Lanes stay when their host is forgotten.
    if v_limits is null then v_limits := exists (select from holdfast.host) or exists (select from holdfast.crawl_lane); end if;
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
    v_floor := coalesce((v_floors ->> v_crawl.crawl_id::text)::timestamptz, '-infinity');
    loop
      with first as materialized (
        select q.snapshot_id, q.crawl_id, q.retry_at, v_limits and exists (select from holdfast.host h where h.name = q.host) as limited
          from holdfast.snapshot_queue q
          where v_in_order and q.crawl_id = v_crawl.crawl_id and q.owner_id is null and not q.lane and q.retry_at >= v_floor and q.retry_at <= v_now
          order by q.retry_at limit v_share - v_count for update skip locked
      ), picked as materialized (
        select p.snapshot_id, p.crawl_id, null::timestamptz, v_limits and exists (select from holdfast.host h where h.name = p.host) as limited
          from (select where not v_in_order) o
          cross join lateral holdfast.snapshot_pick(v_crawl.crawl_id, v_now, v_share - v_count, v_order, v_pool) p
      ), due as (
        select * from first union all select * from picked
      ), taken as (
        update holdfast.snapshot_queue q
          set owner_id = p_node, claimed_at = v_now, fence = q.fence + 1, attempts = q.attempts + 1, reason = null,
              status = case when v_starts then 'started' else q.status end, started_at = case when v_starts then v_now end
          from due where q.snapshot_id = due.snapshot_id and q.crawl_id = due.crawl_id and not due.limited
          returning q.snapshot_id
      )
      select array_agg(t.snapshot_id), (select array_agg(d.snapshot_id) from due d where d.limited), (select count(*) from due d),
             (select max(d.retry_at) from due d)
        into v_taken, v_limited, v_found, v_last from taken t;
      if v_last is not null then v_floors := v_floors || jsonb_build_object(v_crawl.crawl_id::text, v_last); end if;
      if v_taken is not null then
        v_ids := v_ids || v_taken;
        v_count := v_count + cardinality(v_taken);
      end if;
      if v_limited is null and v_count < v_share and v_floor > '-infinity' then
        v_floor := '-infinity';
        continue;
      end if;
      exit when v_limited is null;
      -- Their hosts were given limits after they were found: they move to lanes, each with others of its host. A lane that somebody
      -- has locked is left to the next claim.
      v_found := 0;
      for v_host in
        select distinct q.host from holdfast.snapshot_queue q where q.crawl_id = v_crawl.crawl_id and q.snapshot_id = any (v_limited) order by 1
      loop
        if not exists (select from holdfast.crawl_lane l where l.crawl_id = v_crawl.crawl_id and l.host = v_host) then
          -- Who puts work into the crawl may be making the same lane; he holds this row, and we must not wait for him.
          perform from holdfast.crawl_queue c where c.crawl_id = v_crawl.crawl_id for update skip locked;
          continue when not found;
          insert into holdfast.crawl_lane (crawl_id, host, next_at) values (v_crawl.crawl_id, v_host, v_now) on conflict do nothing;
        end if;
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
    if v_starts and v_count > 0 then
      insert into holdfast.event (lifecycle, objects, crawl_id, from_state, event, to_state, process_id)
        values ('snapshot', v_ids[cardinality(v_ids) - v_count + 1:], v_crawl.crawl_id, 'queued', 'start', 'started', p_node);
    end if;
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

  perform set_config('holdfast.claim_floors', v_floors::text, false);
  if v_starts then perform set_config('holdfast.event', '', true); end if;
  if v_opened is not null and exists (select from holdfast.snapshot_queue q where q.crawl_id = v_opened and q.owner_id is null) then
    perform holdfast.ring();
  end if;
  return v_ids;
end $$;
comment on function holdfast.claim(uuid, integer, uuid[]) is 'Takes due snapshots for a node: FOR UPDATE SKIP LOCKED, fence + 1, owner recorded.';

create or replace function holdfast.snapshot_claim(p_node uuid, p_room integer, p_near uuid[])
  returns table (snapshot_id uuid, crawl_id uuid, fence bigint, url text, host text, depth integer, title text, tags text[],
                 created_at timestamptz, attempts integer, owners_lost integer, plugins text[], options jsonb, persona text, max_depth integer)
  language plpgsql set enable_seqscan = off set jit = off set plan_cache_mode = force_generic_plan as $$
-- What was claimed, with what is known of it. Its owner starts it by snapshot_start.
#variable_conflict use_column
declare
  v_ids constant uuid[] := holdfast.claim(p_node, p_room, p_near);
begin
  return query
    select q.snapshot_id, q.crawl_id, q.fence, s.url, s.host, s.depth, s.title, s.tags, s.created_at, q.attempts, q.owners_lost,
           c.plugins, c.options, c.persona, c.max_depth
      from holdfast.snapshot_queue q
      join holdfast.snapshot s on s.id = q.snapshot_id and s.crawl_id = q.crawl_id
      join holdfast.crawl c on c.id = q.crawl_id
      where q.snapshot_id = any (v_ids) and q.owner_id = p_node;
end $$;
comment on function holdfast.snapshot_claim(uuid, integer, uuid[]) is 'Takes due snapshots for a node, which will start them.';

create or replace function holdfast.snapshot_take(p_node uuid, p_room integer, p_near uuid[], p_near_only boolean,
    p_order text default 'oldest', p_pool integer default 0)
  returns table (snapshot_id uuid, crawl_id uuid, fence bigint, url text, host text, depth integer, title text, tags text[],
                 created_at timestamptz, attempts integer, owners_lost integer, plugins text[], options jsonb, persona text, max_depth integer,
                 robots boolean, max_snapshot_bytes bigint, archived text[])
  language plpgsql set enable_seqscan = off set jit = off set plan_cache_mode = force_generic_plan as $$
-- snapshot_claim and snapshot_start in one write, with the terms on which each crawl wants it done. p_near_only: of these crawls alone, for a
-- node that has as many sessions open as it may. p_order, p_pool: as snapshot_order_of_claims; asked for with each claim, for behind PgBouncer
-- in transaction mode a session is not the node's own. archived: plugins that need not run, because the collection has their results.
#variable_conflict use_column
declare
  v_ids uuid[];
begin
  perform set_config('holdfast.claim_starts', 'on', true), set_config('holdfast.claim_only_near', p_near_only::text, true),
          set_config('holdfast.claim_order', p_order, true), set_config('holdfast.claim_from_top_n', p_pool::text, true);
  v_ids := holdfast.claim(p_node, p_room, p_near);
  perform set_config('holdfast.claim_starts', 'off', true), set_config('holdfast.claim_only_near', 'off', true),
          set_config('holdfast.claim_order', '', true), set_config('holdfast.claim_from_top_n', '', true);
  return query
    select q.snapshot_id, q.crawl_id, q.fence, s.url, s.host, s.depth, s.title, s.tags, s.created_at, q.attempts, q.owners_lost,
           c.plugins, c.options, c.persona, c.max_depth,
           c.robots, c.max_snapshot_bytes,
           case when c.only_complete then holdfast.archived_plugins(s.url_hash, c.id, c.only_new_age) else '{}' end
      from holdfast.snapshot_queue q
      join holdfast.snapshot s on s.id = q.snapshot_id and s.crawl_id = q.crawl_id
      join holdfast.crawl c on c.id = q.crawl_id
      where q.snapshot_id = any (v_ids) and q.owner_id = p_node;
end $$;
comment on function holdfast.snapshot_take(uuid, integer, uuid[], boolean, text, integer) is 'Takes due snapshots for a node and starts them; answers with what their crawls demand.';

create or replace function holdfast.claim_wait() returns interval language sql stable as $$
  -- How long until something that waits now will be due; NULL: nothing waits. Work that is due already may be locked by others.
  select greatest(least((select min(q.ready_at) from holdfast.crawl_queue q where q.ready_at is not null),
                        (select min(c.retry_at) from holdfast.crawl c where c.owner_id is null and c.retry_at is not null
                           and c.retry_at < holdfast.retry_at_max()))
                  - clock_timestamp(), interval '0')
$$;
comment on function holdfast.claim_wait() is 'How long a node that found nothing to claim may sleep.';

create or replace function holdfast.snapshot_start(p_node uuid, p_snapshot uuid, p_crawl uuid, p_fence bigint) returns void
  language plpgsql set enable_seqscan = off set jit = off as $$
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
comment on function holdfast.snapshot_start(uuid, uuid, uuid, bigint) is 'The owner of what was claimed by snapshot_claim is about to run the first hook. May be repeated.';

create or replace function holdfast.snapshot_release(p_node uuid, p_snapshot uuid, p_crawl uuid, p_fence bigint, p_ending text, p_delay interval,
    p_reason text, p_spend boolean) returns void language plpgsql set enable_seqscan = off set jit = off as $$
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

create or replace function holdfast.snapshot_seal_many(p_node uuid, p_snapshots uuid[], p_crawls uuid[], p_fences bigint[], p_outcomes text[], p_reasons text[],
    p_directories text[], p_manifests text[], p_bytes bigint[], p_files bigint[], p_titles text[], p_more jsonb)
  returns table (number bigint, answer text, children bigint, crawl_sealed boolean)
  language plpgsql set enable_seqscan = off set jit = off set plan_cache_mode = force_generic_plan as $$
-- The final commit of any number of snapshots, all in one: fences checked, results final, discovered URLs inserted (depth, cap, once per
-- crawl), the sealed rows, the counters of each crawl once, and the crawls too whose last snapshots these were. May be repeated with the
-- same fences: the second time changes nothing. One array for each column, all of one length; '' is as good as NULL. p_more: an array of objects, for
-- those items that have more to say; their keys: number, tags, urls, hosts, titles. The answers, by the number of the item from 1 on:
--   sealed     now, or before by this node; children: new snapshots among its URLs, the first time
--   cancelled  sealed as cancelled, now or before, because of a limit or an order: its owner deletes the files
--   lost       not held with this fence; nothing was changed
--   running    one of its hooks has not ended; nothing was changed
-- crawl_sealed: its crawl was sealed with it (of several in one call, with the last), or for what was sealed before: is sealed.
-- What breaks a constraint or is no edge of the lifecycle raises, and nothing of the call has happened.
--
-- Statements over sets, each of which finds its rows by "= any (ids)" on a primary key: then no plan, whatever the statistics were
-- when it was made, reads more than these rows.
#variable_conflict use_column
declare
  v_linked bigint[];          -- numbers of items with links
  v_numbers bigint[];         -- what is sealed now: its number, what becomes of it (fits, heavy, over), and what it is
  v_verdicts text[];
  v_taken uuid[];
  v_taken_crawls uuid[];
  v_running bigint[];
  v_over uuid[];              -- crawls that hold as much as they may
  v_queues uuid[];            -- crawls whose rows in crawl_queue are to be written
  v_lanes boolean;
  v_delayed text[];           -- their hosts with a delay, locked
  v_links boolean;
  v_parallel boolean;
  v_overwrites boolean;
  v_all boolean;              -- every item is ours, and fits
  v_grown bigint[] := '{}';   -- numbers of items whose links were taken, and how many of these are new
  v_children bigint[] := '{}';
  v_ends uuid[];
  v_row record;
begin
  if p_more <> '[]' then
    select array_agg(m.number) into v_linked from jsonb_to_recordset(p_more) as m(number bigint, urls jsonb) where jsonb_array_length(m.urls) > 0;
  end if;
  -- The crawls first: without these locks two last snapshots sealing at once would each see the other open.
  perform from holdfast.crawl c where c.id = any (p_crawls) order by c.id for no key update;
  perform from holdfast.snapshot_queue q where q.snapshot_id = any (p_snapshots) and q.crawl_id = any (p_crawls)
    order by q.crawl_id, q.snapshot_id for update;

  -- "asked": not ours, or named twice; its answer is looked up when all else is done. The first of a crawl's items that is one too many
  -- is "over"; with it the crawl is stopped, which takes the later ones.
  with item as materialized (
    select i.* from unnest(p_snapshots, p_crawls, p_fences, p_outcomes, p_bytes) with ordinality as i(snapshot, crawl, fence, outcome, bytes, number)
  ), queue as materialized (
    select q.snapshot_id, q.crawl_id, q.owner_id, q.fence, q.lane from holdfast.snapshot_queue q where q.snapshot_id = any (p_snapshots)
  ), unended as materialized ( -- coalesce: "is null" would let a plan walk the index of all that runs
    select r.snapshot_id, r.crawl_id, r.fence from holdfast.archive_result r
      where r.snapshot_id = any (p_snapshots) and coalesce(r.ended_at, 'infinity') = 'infinity'
  ), parent as materialized (
    select c.* from holdfast.crawl c where c.id = any (p_crawls)
  ), judged as (
    select i.number, i.snapshot, i.crawl, i.bytes, q.lane, c.bytes as held, c.max_bytes, c.max_parallel,
           coalesce(i.number = any (v_linked), false) as links, c.overwrite and i.outcome in ('succeeded', 'partial') as overwrites,
           case when q.owner_id is distinct from p_node or q.fence <> i.fence or array_position(p_snapshots, i.snapshot) < i.number then 'asked'
                when exists (select from unended r where r.snapshot_id = i.snapshot and r.crawl_id = i.crawl and r.fence = i.fence) then 'running'
                -- Its owner sees to that; what it got wrong is not kept.
                when c.max_snapshot_bytes > 0 and c.max_snapshot_bytes < (select sum(r.output_bytes) from holdfast.archive_result r
                  where r.snapshot_id = i.snapshot and r.crawl_id = i.crawl and r.fence = i.fence) then 'heavy'
                else 'fits' end as verdict
      from item i left join queue q on q.snapshot_id = i.snapshot and q.crawl_id = i.crawl left join parent c on c.id = i.crawl
  ), added as (
    select j.*, j.held + sum(j.bytes) filter (where j.verdict = 'fits') over (partition by j.crawl order by j.number) as total from judged j
  ), decided as (
    select a.number, a.snapshot, a.crawl, a.lane, a.max_parallel, a.links, a.overwrites,
           case when a.verdict = 'fits' and a.max_bytes > 0 and a.total > a.max_bytes
                then case when a.total - a.bytes <= a.max_bytes then 'over' else 'asked' end else a.verdict end as verdict
      from added a
  ), taken as (
    select d.* from decided d where d.verdict in ('fits', 'heavy', 'over')
  )
  select array_agg(t.number), array_agg(t.verdict), array_agg(t.snapshot), array_agg(t.crawl), array_agg(t.crawl) filter (where t.verdict = 'over'),
         array_agg(t.crawl) filter (where t.lane or t.max_parallel is not null or t.links or t.verdict = 'over'),
         coalesce(bool_or(t.lane), false), coalesce(bool_or(t.links and t.verdict = 'fits'), false),
         coalesce(bool_or(t.max_parallel is not null), false), coalesce(bool_or(t.overwrites and t.verdict = 'fits'), false),
         coalesce(bool_and(t.verdict = 'fits') and count(*) = cardinality(p_snapshots), false),
         (select array_agg(d.number) from decided d where d.verdict = 'running')
    into v_numbers, v_verdicts, v_taken, v_taken_crawls, v_over, v_queues, v_lanes, v_links, v_parallel, v_overwrites, v_all, v_running
    from taken t;

  if v_numbers is not null then
    -- The rest of the locks in everybody's order, before the first of these rows is written.
    if v_over is not null then
      perform holdfast.held_lock(v_taken || array(select unnest(holdfast.crawl_held(o)) from unnest(v_over) o));
    end if;
    if v_lanes then
      v_delayed := array(select h.name from holdfast.host h where h.min_delay > '0' and h.name in
          (select q.host from holdfast.snapshot_queue q where q.snapshot_id = any (v_taken) and q.lane)
        order by h.name for no key update);
    end if;
    if v_links then
      perform holdfast.hosts_enter(array_agg(i.crawl), array_agg(h.name))
        from jsonb_to_recordset(p_more) as m(number bigint, hosts text[]) join unnest(p_crawls) with ordinality i(crawl, number) on i.number = m.number
        cross join lateral unnest(m.hosts) h(name);
    end if;
    if v_queues is not null then
      perform from holdfast.crawl_queue c where c.crawl_id = any (v_queues) order by c.crawl_id for no key update;
    end if;

    -- The room that this makes in their crawls and at their hosts.
    if v_parallel then
      update holdfast.crawl_queue c set ready_at = least(coalesce(c.ready_at, clock_timestamp()), clock_timestamp()), wakes = c.wakes + 1
        where c.crawl_id = any (v_queues) and c.max_parallel is not null;
    end if;
    if v_lanes then
      perform holdfast.lane_end(l.crawl_id, l.host, l.host = any (v_delayed))
        from (select distinct q.crawl_id, q.host from holdfast.snapshot_queue q where q.snapshot_id = any (v_taken) and q.lane order by 1, 2) l;
    end if;

    if v_links then
      for v_row in
        select i.number, i.snapshot, i.crawl, s.depth, m.urls, m.hosts, m.titles
          from unnest(p_snapshots, p_crawls) with ordinality as i(snapshot, crawl, number)
          join jsonb_to_recordset(p_more) as m(number bigint, urls text[], hosts text[], titles text[]) on m.number = i.number
          join unnest(v_numbers, v_verdicts) t(number, verdict) on t.number = i.number and t.verdict = 'fits'
          join holdfast.snapshot s on s.id = i.snapshot and s.crawl_id = i.crawl
          join holdfast.crawl c on c.id = i.crawl and s.depth < c.max_depth
          where cardinality(m.urls) > 0 and s.id = any (v_taken) and c.id = any (p_crawls)
          order by i.number
      loop
        v_grown := v_grown || v_row.number;
        v_children := v_children || holdfast.snapshot_insert(v_row.crawl, v_row.snapshot, v_row.depth + 1, v_row.urls, v_row.hosts, v_row.titles, null);
      end loop;
    end if;

    -- What is sealed as its owner asked has its attempt in the sealed row; of the others it is said how they ended.
    if not v_all then
      insert into holdfast.attempt (snapshot_id, crawl_id, fence, process_id, claimed_at, started_at, ending, reason)
        select q.snapshot_id, q.crawl_id, q.fence, q.owner_id, q.claimed_at, q.started_at, 'cancelled', case t.verdict when 'heavy' then 'max_snapshot_bytes' else 'max_bytes' end
          from unnest(v_taken, v_taken_crawls, v_verdicts) t(snapshot, crawl, verdict)
          join holdfast.snapshot_queue q on q.snapshot_id = t.snapshot and q.crawl_id = t.crawl
          where t.verdict <> 'fits' and q.snapshot_id = any (v_taken)
        on conflict do nothing;
    end if;

    with item as materialized (
      select i.*, m.tags from unnest(p_snapshots, p_crawls, p_outcomes, p_reasons, p_directories, p_manifests, p_bytes, p_files, p_titles)
          with ordinality as i(snapshot, crawl, outcome, reason, directory, manifest, bytes, files, title, number)
        left join jsonb_to_recordset(p_more) as m(number bigint, tags text[]) on m.number = i.number
    ), queue as materialized (
      select q.* from holdfast.snapshot_queue q where q.snapshot_id = any (v_taken)
    ), cold as materialized (
      select s.id, s.crawl_id, s.title, s.tags from holdfast.snapshot s where s.id = any (v_taken)
    ), parent as materialized (
      select c.id, c.max_bytes, c.max_snapshot_bytes from holdfast.crawl c where c.id = any (p_crawls)
    ), final as materialized (
      select i.number, i.snapshot, i.crawl, i.title, i.tags, t.verdict, t.verdict = 'fits' as kept, case t.verdict when 'fits' then i.outcome else 'cancelled' end as outcome,
             case t.verdict when 'fits' then nullif(i.reason, '')
               when 'heavy' then format('its hooks left more than max_snapshot_bytes (%s)', pg_size_pretty(c.max_snapshot_bytes))
               else format('with its %s its crawl would hold more than max_bytes (%s)', pg_size_pretty(i.bytes), pg_size_pretty(c.max_bytes)) end as reason,
             nullif(i.directory, '') as directory, nullif(i.manifest, '') as manifest, case t.verdict when 'fits' then i.bytes else 0 end as bytes, case t.verdict when 'fits' then i.files else 0 end as files
        from unnest(v_numbers, v_verdicts) t(number, verdict) join item i on i.number = t.number join parent c on c.id = i.crawl
    ), closed as (
      insert into holdfast.snapshot_sealed (snapshot_id, crawl_id, outcome, reason, fence, owner_id, directory, manifest_sha256, bytes,
          files, title, tags, attempts, owners_lost, started_at)
        select f.snapshot, f.crawl, f.outcome, f.reason, q.fence, p_node, case when f.kept then f.directory end, case when f.kept then f.manifest end,
               f.bytes, f.files, coalesce(nullif(f.title, ''), s.title), case when s.tags = '{}' and cardinality(f.tags) > 0 is not true then '{}' else array(select distinct t from unnest(s.tags || f.tags) t order by t) end,
               q.attempts, q.owners_lost, q.started_at
          from final f join queue q on q.snapshot_id = f.snapshot and q.crawl_id = f.crawl join cold s on s.id = f.snapshot and s.crawl_id = f.crawl
          order by f.number
    ), counted as (
      update holdfast.crawl c set snapshots_open = c.snapshots_open - n.ended, bytes = c.bytes + n.bytes,
          snapshots_succeeded = c.snapshots_succeeded + n.succeeded, snapshots_partial = c.snapshots_partial + n.partial,
          snapshots_failed = c.snapshots_failed + n.ended - n.succeeded - n.partial, snapshots_cancelled = c.snapshots_cancelled + n.cancelled
        from (select f.crawl, count(*) as ended, sum(f.bytes) as bytes, count(*) filter (where f.outcome = 'succeeded') as succeeded,
                     count(*) filter (where f.outcome = 'partial') as partial, count(*) filter (where f.outcome = 'cancelled') as cancelled
                from final f group by f.crawl) n
        where c.id = n.crawl and c.id = any (p_crawls)
        returning c.id, c.seeds_left = 0 and c.snapshots_open <= c.snapshots_excluded as may_end
    )
    select array_agg(c.id) filter (where c.may_end) into v_ends from counted c;
    if v_ends is not null then perform holdfast.crawl_settle(e.id) from (select unnest(v_ends) order by 1) e(id); end if;

    if v_over is not null then
      perform holdfast.crawl_stop(o.id, 'max_bytes', '', format('it may hold no more than %s', pg_size_pretty(c.max_bytes)), 1000)
        from unnest(v_over) with ordinality o(id, place) join holdfast.crawl c on c.id = o.id;
    end if;
    if v_overwrites then perform holdfast.snapshots_supersede(v_taken); end if;
  end if;

  if v_all and v_ends is null then
    return query select u.number, 'sealed', coalesce(v_children[array_position(v_grown, u.number)], 0), false from unnest(v_numbers) u(number);
    return;
  end if;
  return query
    with item as materialized (
      select i.* from unnest(p_snapshots, p_crawls, p_fences) with ordinality as i(snapshot, crawl, fence, number)
    ), ended as materialized (
      select a.snapshot_id, a.crawl_id, a.fence, a.ending from holdfast.v_attempt a
        where a.snapshot_id = any (p_snapshots) and a.process_id = p_node and a.ending in ('sealed', 'cancelled')
    ), parent as materialized (
      select c.id, c.status from holdfast.crawl c where c.id = any (p_crawls)
    )
    -- A repeat is what this node has sealed itself; a quarantine bears the same owner and fence, but is not its seal.
    select i.number, case when e.ending is not null then e.ending when i.number = any (v_running) then 'running' else 'lost' end,
           coalesce(v_children[array_position(v_grown, i.number)], 0),
           coalesce(c.status = 'sealed', false) and (not i.number = any (v_numbers) is true
             or i.number = (select max(t.number) from unnest(v_numbers, v_taken_crawls) t(number, crawl) where t.crawl = i.crawl))
      from item i left join ended e on e.snapshot_id = i.snapshot and e.crawl_id = i.crawl and e.fence = i.fence left join parent c on c.id = i.crawl;
end $$;
comment on function holdfast.snapshot_seal_many(uuid, uuid[], uuid[], bigint[], text[], text[], text[], text[], bigint[], bigint[], text[], jsonb)
  is 'Closes snapshots for ever, with their discovered URLs; says of each what became of it.';

create or replace function holdfast.snapshot_seal(p_node uuid, p_snapshot uuid, p_crawl uuid, p_fence bigint, p_outcome text, p_reason text,
    p_directory text, p_manifest text, p_bytes bigint, p_files bigint, p_title text, p_tags text[],
    p_urls text[], p_hosts text[], p_titles text[]) returns table (children bigint, crawl_sealed boolean)
  language plpgsql as $$
-- snapshot_seal_many of one. children -1: it was sealed as cancelled; its owner deletes the files.
declare
  v_answer record;
begin
  select * into strict v_answer from holdfast.snapshot_seal_many(p_node, array[p_snapshot], array[p_crawl], array[p_fence], array[p_outcome], array[p_reason],
    array[p_directory], array[p_manifest], array[p_bytes], array[p_files], array[p_title],
    case when cardinality(p_urls) > 0 or cardinality(p_tags) > 0
         then jsonb_build_array(jsonb_build_object('number', 1, 'tags', p_tags, 'urls', p_urls, 'hosts', p_hosts, 'titles', p_titles)) else '[]' end);
  if v_answer.answer = 'lost' then
    raise exception 'snapshot % is no longer held with fence %', p_snapshot, p_fence using errcode = 'HF003';
  elsif v_answer.answer = 'running' then
    raise exception 'snapshot % cannot be sealed: a hook is still running', p_snapshot using errcode = 'HF001';
  end if;
  return query select case v_answer.answer when 'cancelled' then -1 else v_answer.children end, v_answer.crawl_sealed;
end $$;
comment on function holdfast.snapshot_seal(uuid, uuid, uuid, bigint, text, text, text, text, bigint, bigint, text, text[], text[], text[], text[]) is 'Closes a snapshot for ever, with its discovered URLs.';

-- As programs older than revision 19 ask: an object for each item.
create or replace function holdfast.snapshot_seal_many(p_node uuid, p_items jsonb)
  returns table (number bigint, answer text, children bigint, crawl_sealed boolean) language plpgsql as $$
begin
  return query select m.*
    from (select array_agg(i.snapshot) as snapshots, array_agg(i.crawl) as crawls, array_agg(i.fence) as fences, array_agg(i.outcome) as outcomes,
                 array_agg(i.reason) as reasons, array_agg(i.directory) as directories, array_agg(i.manifest) as manifests, array_agg(i.bytes) as bytes,
                 array_agg(i.files) as files, array_agg(i.title) as titles,
                 jsonb_agg(jsonb_build_object('number', i.number, 'tags', coalesce(i.tags, '[]'), 'urls', coalesce(i.urls, '[]'), 'hosts', i.hosts, 'titles', i.link_titles)) as more
            from rows from (jsonb_to_recordset(p_items) as (snapshot uuid, crawl uuid, fence bigint, outcome text, reason text, directory text, manifest text, bytes bigint,
                files bigint, title text, tags jsonb, urls jsonb, hosts jsonb, titles jsonb))
              with ordinality as i(snapshot, crawl, fence, outcome, reason, directory, manifest, bytes, files, title, tags, urls, hosts, link_titles, number)) a
    cross join lateral holdfast.snapshot_seal_many(p_node, a.snapshots, a.crawls, a.fences, a.outcomes, a.reasons, a.directories, a.manifests, a.bytes, a.files,
      a.titles, a.more) m;
end $$;
comment on function holdfast.snapshot_seal_many(uuid, jsonb) is 'Closes snapshots for ever; for programs older than revision 19.';
