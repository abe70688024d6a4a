-- Claiming: due snapshots are taken and started in one write, by FOR UPDATE SKIP LOCKED; their fence grows
-- and their owner is recorded. A claim walks the ready crawls that its worker can take (claim_needs,
-- claim_round), takes from each (claim_from_crawl), and parks those in which nothing more is due
-- (claim_park). Rows that another transaction has locked are left to the next claim.
--
-- In spite of SKIP LOCKED, PostgreSQL can wait for a row version that was just updated. A turn that holds
-- locks could deadlock there and would stand still for a second (deadlock_timeout). So it fails after 50 ms
-- (lock_timeout of claim_round), and the worker repeats it.

create or replace view holdfast.claimed_snapshot as
  select q.snapshot_id, q.crawl_id, q.fence, s.url, s.host, s.depth, s.title, s.tags, s.created_at,
         s.bookmarked_at, q.attempts, q.lapses,
         c.plugins, c.options, coalesce(nullif(c.persona, 'none'), '') as persona,
         c.max_depth, c.robots, c."full", c.max_snapshot_bytes,
         -- Plugins that need not run, because the collection has their results.
         case when c.only_complete then holdfast.archived_plugins(s.url_hash, c.id, c.max_age)
              else '{}' end as archived
    from holdfast.snapshot_queue q
    -- Row by row: a merge or hash join, planned while the tables were small, would read all of them.
    cross join lateral (select o.*
                          from holdfast.snapshot o
                          where o.id = q.snapshot_id and o.crawl_id = q.crawl_id
                          limit 1) s
    cross join lateral (select o.* from holdfast.crawl o where o.id = q.crawl_id limit 1) c;
comment on view holdfast.claimed_snapshot is 'Columns of a snapshot that a claim returns to the worker.';

create or replace function holdfast.claim(
    p_worker uuid, p_room integer, p_open uuid[] default '{}', p_open_only boolean default false,
    p_newest boolean default false, p_top_n integer default 0, p_seeds integer default 0,
    p_finished boolean default false, p_only uuid[] default null)
  returns setof holdfast.claimed_snapshot language plpgsql as $$
-- Called by worker_turn. Takes up to p_room due snapshots for a worker and starts them; answers with what
-- their crawls demand.
--   p_open       crawls of which the worker has a session open: visited first in every other claim
--   p_open_only  visit no other crawls: the worker may open no more sessions
--   p_newest, p_top_n
--                see claim_pick
--   p_seeds      the claim itself opens a new crawl of at most so many seeds, so that a new URL waits for one
--                commit only
--   p_finished   this transaction has finished pages and holds the locks of their crawls, so it may wait for
--                no other crawl or host
--   p_only       take only these snapshots (`holdfast run --snapshot`); NULL: any
declare
  v_may constant boolean := holdfast.worker_may_claim(p_worker);
  v_needs bigint[];
  v_opened uuid;
  v_share integer;
  v_ids uuid[] := '{}';
begin
  -- Also called by a worker that may not claim now: the work of a dead worker is released even while
  -- everything is paused. A lapse takes locks that come after those of opening a crawl, so a claim does one
  -- or the other.
  if not p_finished then
    if holdfast.lapse_process() = 0 and v_may and p_room > 0 and p_seeds > 0 and not p_open_only then
      v_opened := holdfast.crawl_open_small(p_worker, p_seeds);
    end if;
  end if;
  if not v_may or p_room <= 0 then return; end if;
  v_needs := holdfast.claim_needs(p_worker);
  if p_open <> '{}' and (p_open_only or random() < 0.5) then
    v_ids := holdfast.claim_round(p_worker, v_needs, p_room, p_room, p_open, p_newest, p_top_n, p_only);
  end if;
  if not p_open_only then
    foreach v_share in array array[greatest(1, p_room / 4), p_room]
    loop
      exit when cardinality(v_ids) >= p_room;
      v_ids := v_ids || holdfast.claim_round(
        p_worker, v_needs, p_room - cardinality(v_ids), v_share, null, p_newest, p_top_n, p_only);
    end loop;
  end if;
  if v_opened is not null
     and exists (select from holdfast.snapshot_queue q
                   where q.crawl_id = v_opened and q.owner_id is null) then
    perform holdfast.notify_workers(); -- the rest is for other workers
  end if;
  return query select c.* from holdfast.claimed_snapshot c where c.snapshot_id = any (v_ids);
end $$;

create or replace function holdfast.claim_needs(p_worker uuid)
  returns bigint[] language plpgsql as $$
-- Returns the values of crawl_queue.needs that the worker meets. Walks from one value to the next by an
-- index, so crawls that the worker cannot take cost a claim nothing, however many they are.
declare
  v_can constant jsonb := coalesce((select w.capabilities from holdfast.process w where w.id = p_worker), '{}');
begin
  return array(
    with recursive need as (
      (select q.needs, q.plugins, q.persona
         from holdfast.crawl_queue q
         where q.ready_at is not null
         order by q.needs
         limit 1)
      union all
      select x.*
        from need n
        cross join lateral (select q.needs, q.plugins, q.persona
                              from holdfast.crawl_queue q
                              where q.ready_at is not null and q.needs > n.needs
                              order by q.needs
                              limit 1) x)
    select n.needs
      from need n
      where holdfast.can_run(v_can, n.plugins)
        and (n.persona = '' or holdfast.persona_lacks(n.persona, v_can) is null));
end $$;

create or replace function holdfast.claim_round(
    p_worker uuid, p_needs bigint[], p_room integer, p_share integer, p_crawls uuid[], p_newest boolean,
    p_top_n integer, p_only uuid[])
  returns uuid[] language plpgsql set lock_timeout = '50ms' as $$
-- Fairness: one walk around the ready crawls, taking at most p_share of each until p_room are taken. The
-- crawls lie on a ring in random places and each claim starts at a random place, so no crawl waits behind
-- another, however large. A claim walks twice: first with a quarter of its room for each crawl, then with all
-- that is left.
--
-- Seven walks of eight visit higher priorities first, and those below 0 in the second walk only. The eighth
-- does not look at priority, so no crawl starves. Bounded: a hundred crawls on either side of the starting
-- place, and the hundred of highest priority. p_crawls: just these crawls; p_only: just these snapshots.
declare
  v_now constant timestamptz := clock_timestamp();
  v_from constant double precision := random();
  v_ranked constant boolean := random() < 0.875;
  v_least constant integer := case when v_ranked and p_share < p_room then 0 else -2147483648 end;
  v_queue holdfast.crawl_queue;
  v_ids uuid[] := '{}';
begin
  for v_queue in
    (select q.*
       from holdfast.crawl_queue q
       where q.crawl_id = any (p_crawls) and q.ready_at <= v_now)
    union all
    (select q.*
       from unnest(p_needs) n(needs)
       cross join lateral (select c.*
                             from holdfast.crawl_queue c
                             where c.needs = n.needs and c.priority > 0 and c.ready_at <= v_now
                             order by c.priority desc
                             limit 100) q
       where p_crawls is null and v_ranked
       order by q.priority desc
       limit 100)
    union all
    (select q.*
       from unnest(p_needs) n(needs)
       cross join lateral (select c.*
                             from holdfast.crawl_queue c
                             where c.needs = n.needs and c.shuffle >= v_from and c.priority >= v_least
                               and c.ready_at <= v_now
                             order by c.shuffle
                             limit 100) q
       where p_crawls is null
       order by q.shuffle
       limit 100)
    union all
    (select q.*
       from unnest(p_needs) n(needs)
       cross join lateral (select c.*
                             from holdfast.crawl_queue c
                             where c.needs = n.needs and c.shuffle < v_from and c.priority >= v_least
                               and c.ready_at <= v_now
                             order by c.shuffle
                             limit 100) q
       where p_crawls is null
       order by q.shuffle
       limit 100)
  loop
    exit when cardinality(v_ids) >= p_room;
    continue when v_queue.stop_at <= v_now -- its time is over
      or v_queue.needs <> all (p_needs);
    v_ids := v_ids || holdfast.claim_from_crawl(
      p_worker, v_queue,
      least(case when v_ranked and v_queue.priority > 0 then greatest(p_share, p_room / 2) else p_share end,
            p_room - cardinality(v_ids)),
      p_newest, p_top_n, p_only);
  end loop;
  return v_ids;
end $$;

create or replace function holdfast.claim_from_crawl(
    p_worker uuid, p_queue holdfast.crawl_queue, p_share integer, p_newest boolean, p_top_n integer,
    p_only uuid[])
  returns uuid[] language plpgsql as $$
-- Takes up to p_share due snapshots of one crawl.
declare
  v_room integer := p_share;
  v_ids uuid[];
begin
  if p_queue.max_parallel is not null then
    v_room := least(v_room, holdfast.crawl_room(p_queue.crawl_id, p_queue.max_parallel));
    if v_room <= 0 then return '{}'; end if;
  end if;
  v_ids := holdfast.claim_lanes(p_worker, p_queue.crawl_id, v_room, p_newest, p_top_n, p_only);
  if v_ids <> '{}' then
    insert into holdfast.event (lifecycle, objects, crawl_id, from_state, event, to_state, process_id)
      values ('snapshot', v_ids, p_queue.crawl_id, 'queued', 'start', 'started', p_worker);
  end if;
  if cardinality(v_ids) < v_room then
    perform holdfast.claim_park(p_queue.crawl_id, p_queue.wakes);
  end if;
  return v_ids;
end $$;

create or replace function holdfast.crawl_room(p_crawl uuid, p_max_parallel integer)
  returns bigint language plpgsql as $$
-- Returns how many more snapshots of a crawl with max_parallel may start. Its row in crawl_queue stays locked
-- until the claim commits, so the next claim counts what this one took. A snapshot that ends makes a full
-- crawl ready again.
declare
  v_room bigint;
begin
  perform from holdfast.crawl_queue c
    where c.crawl_id = p_crawl and c.ready_at is not null
    for update skip locked;
  if not found then return 0; end if;
  select p_max_parallel - count(*)
    into v_room
    from holdfast.process p
    join holdfast.snapshot_queue q on q.owner_id = p.id
    where p.status = 'running' and q.crawl_id = p_crawl;
  if v_room <= 0 then
    update holdfast.crawl_queue
      set ready_at = clock_timestamp() + interval '1 second'
      where crawl_id = p_crawl;
  end if;
  return v_room;
end $$;

create or replace function holdfast.claim_due(
    p_crawl uuid, p_host text, p_low timestamptz, p_room integer)
  returns uuid[] language plpgsql as $$
-- Locks due snapshots of a lane, the earliest first.
begin
  return array(select q.snapshot_id
                 from holdfast.snapshot_queue q
                 where q.crawl_id = p_crawl
                   and q.host = p_host
                   and q.owner_id is null
                   and q.retry_at >= p_low
                   and q.retry_at <= clock_timestamp()
                 order by q.retry_at
                 limit p_room
                 for update skip locked);
end $$;

create or replace function holdfast.claim_pick(
    p_crawl uuid, p_host text, p_room integer, p_newest boolean, p_top_n integer, p_only uuid[])
  returns uuid[] language plpgsql as $$
-- Claims like claim_due, in another order: the newest first, or at random among the first p_top_n of either
-- order; or just those of p_only. Reads twice as many as needed: other claims will have locked some.
declare
  v_now constant timestamptz := clock_timestamp();
  v_some constant integer := greatest(p_top_n, 2 * p_room + 8);
  v_seen uuid[];
begin
  if p_only is not null then
    v_seen := p_only;
  elsif p_newest then
    v_seen := array(select q.snapshot_id
                      from holdfast.snapshot_queue q
                      where q.crawl_id = p_crawl
                        and q.host = p_host
                        and q.owner_id is null
                        and q.retry_at <= v_now
                      order by q.retry_at desc
                      limit v_some);
  else
    v_seen := array(select q.snapshot_id
                      from holdfast.snapshot_queue q
                      where q.crawl_id = p_crawl
                        and q.host = p_host
                        and q.owner_id is null
                        and q.retry_at <= v_now
                      order by q.retry_at
                      limit v_some);
  end if;
  if p_only is null and p_top_n > p_room then
    v_seen := array(select u.id
                      from unnest(v_seen[:p_top_n]) u(id)
                      order by random()
                      limit 2 * p_room + 8);
  end if;
  return array(select q.snapshot_id
                 from holdfast.snapshot_queue q
                 where q.snapshot_id = any (v_seen)
                   and q.crawl_id = p_crawl
                   and q.status = 'queued'
                   and q.host = p_host
                   and q.retry_at <= v_now
                 order by array_position(v_seen, q.snapshot_id)
                 limit p_room
                 for update skip locked);
end $$;

create or replace function holdfast.claim_take(
    p_worker uuid, p_crawl uuid, p_snapshots uuid[], p_at timestamptz)
  returns uuid[] language plpgsql as $$
-- Gives snapshots, which are due and locked by this claim, to the worker and starts them. The fence grows,
-- and retry_at moves to where the worker's lease ends; each heartbeat renews it. p_at: when the limits held.
declare
  v_floor constant bigint := holdfast.fence_floor();
  v_lease constant timestamptz := (select p.lease_until from holdfast.process p where p.id = p_worker);
begin
  update holdfast.snapshot_queue q
    set owner_id = p_worker, claimed_at = p_at, due_at = q.retry_at, retry_at = v_lease,
        status = 'started', event = 'start', fence = greatest(q.fence, v_floor) + 1, attempts = q.attempts + 1, reason = null
    where q.snapshot_id = any (p_snapshots) and q.crawl_id = p_crawl;
  return p_snapshots;
end $$;

create or replace function holdfast.claim_park(p_crawl uuid, p_wakes bigint)
  returns void language plpgsql as $$
-- Called if a claim found nothing more that is due: claims skip the crawl until a page is, unless the crawl
-- was woken since this claim read it. At most for a minute, so that a lost wake costs no more than that.
declare
  v_now constant timestamptz := clock_timestamp();
  v_next timestamptz;
begin
  select min(l.next_at)
    into v_next
    from holdfast.crawl_lane l
    where l.crawl_id = p_crawl and l.next_at < holdfast.retry_at_max();
  -- A lane that is due and was not served is being served by another claim.
  if v_next <= v_now then v_next := v_now + interval '10 milliseconds'; end if;
  v_next := least(v_next, v_now + interval '1 minute');
  update holdfast.crawl_queue
    set ready_at = v_next
    where crawl_id in (select c.crawl_id
                         from holdfast.crawl_queue c
                         where c.crawl_id = p_crawl
                           and c.wakes = p_wakes
                           and c.ready_at is distinct from v_next
                         for update skip locked);
end $$;

create or replace function holdfast.claim_wait(p_worker uuid)
  returns interval language sql stable as $$
  -- Returns the time until a waiting page is due for this worker, or the lease of a worker expires; NULL:
  -- neither. Work that is due already may be locked by others.
  select case when w.at is not null then greatest(w.at - clock_timestamp(), interval '0') end
    from (select least((select min(q.ready_at)
                          from unnest(holdfast.claim_needs(p_worker)) n(needs)
                          cross join lateral (select min(c.ready_at) as ready_at
                                                from holdfast.crawl_queue c
                                                where c.needs = n.needs and c.ready_at is not null) q),
                       (select min(c.retry_at)
                          from holdfast.crawl c
                          where c.owner_id is null
                            and c.retry_at is not null
                            and c.retry_at < holdfast.retry_at_max()),
                       (select min(p.lease_until)
                          from holdfast.process p
                          where p.status = 'running' and p.lease_until > clock_timestamp())) as at) w
$$;
