-- Snapshots: claiming, starting, putting back, sealing. Every function that writes names (snapshot, fence); a stale fence
-- raises HF003 and changes nothing.

create or replace function holdfast.snapshot_claim(p_node uuid, p_room integer, p_near uuid[])
  returns table (snapshot_id uuid, crawl_id uuid, fence bigint, url text, host text, depth integer, title text, tags text[],
                 created_at timestamptz, attempts integer, owners_lost integer, plugins text[], options jsonb, persona text, max_depth integer)
  language plpgsql set plan_cache_mode = force_generic_plan as $$
-- Takes up to p_room due snapshots: first of the crawls the node has open (p_near), then by walking all ready crawls from a
-- random place, a few rows from each, so that no crawl waits behind another however large. Never a scan over the queue: each
-- probe is one index range. A crawl in which nothing is due is parked until something will be.
#variable_conflict use_column
declare
  v_now timestamptz := clock_timestamp();
  v_room integer := p_room;
  v_share integer;
  v_from double precision := random();
  v_crawl record;
  v_taken uuid[];
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
      (select q.crawl_id, q.wakes, 0 as half, q.shuffle from holdfast.crawl_queue q
         where q.shuffle >= v_from and q.ready_at <= v_now order by q.shuffle limit 100)
      union all
      (select q.crawl_id, q.wakes, 1, q.shuffle from holdfast.crawl_queue q
         where q.shuffle < v_from and q.ready_at <= v_now order by q.shuffle limit 100)
    )
    select q.crawl_id, q.wakes, p_room as share, 0 as pass, 0 as half, 0::double precision as shuffle
      from holdfast.crawl_queue q where q.crawl_id = any (p_near) and q.ready_at <= v_now
    union all
    select w.crawl_id, w.wakes, greatest(1, p_room / 4), 1, w.half, w.shuffle from walk w
    union all
    select w.crawl_id, w.wakes, p_room, 2, w.half, w.shuffle from walk w
    order by pass, half, shuffle
  loop
    exit when v_room <= 0;
    v_share := least(v_room, v_crawl.share);
    with due as (
      select q.snapshot_id, q.crawl_id from holdfast.snapshot_queue q
        where q.crawl_id = v_crawl.crawl_id and q.owner_id is null and q.retry_at <= v_now
        order by q.retry_at limit v_share for update skip locked
    ), taken as (
      update holdfast.snapshot_queue q
        set owner_id = p_node, claimed_at = v_now, fence = q.fence + 1, attempts = q.attempts + 1, reason = null
        from due where q.snapshot_id = due.snapshot_id and q.crawl_id = due.crawl_id
        returning q.snapshot_id
    )
    select array_agg(t.snapshot_id) into v_taken from taken t;
    if v_taken is not null then
      v_ids := v_ids || v_taken;
      v_room := v_room - cardinality(v_taken);
    end if;
    if coalesce(cardinality(v_taken), 0) < v_share then
      -- Nothing more is due. Park the crawl until its next row is, unless somebody woke it since we looked.
      select min(q.retry_at) into v_next from holdfast.snapshot_queue q where q.crawl_id = v_crawl.crawl_id and q.owner_id is null;
      if v_next is null or v_next > v_now then
        v_next := nullif(v_next, holdfast.retry_at_max());
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

create or replace function holdfast.snapshot_start(p_node uuid, p_snapshot uuid, p_crawl uuid, p_fence bigint) returns void language plpgsql as $$
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
    p_reason text, p_spend boolean) returns void language plpgsql as $$
-- Puts a snapshot back. p_spend false: the attempt is not counted (stopping is not failing). May be repeated.
declare
  v_due constant timestamptz := clock_timestamp() + p_delay;
begin
  if p_ending not in ('released', 'interrupted', 'handed_back') then
    raise exception 'a snapshot is not put back by being "%"', p_ending using errcode = 'HF001';
  end if;
  perform from holdfast.snapshot_queue
    where snapshot_id = p_snapshot and crawl_id = p_crawl and owner_id = p_node and fence = p_fence for update;
  if not found then
    -- Only what this node put back itself is a repeat: what was taken from it is lost, and it must hear of that.
    if exists (select from holdfast.attempt where snapshot_id = p_snapshot and crawl_id = p_crawl and fence = p_fence
                 and process_id = p_node and ending = p_ending) then return; end if;
    raise exception 'snapshot % is no longer held with fence %', p_snapshot, p_fence using errcode = 'HF003';
  end if;
  perform holdfast.attempt_end(p_snapshot, p_crawl, p_ending, p_reason);
  perform holdfast.results_close(p_snapshot, p_crawl, p_fence, p_reason);
  perform set_config('holdfast.event', 'release', true);
  update holdfast.snapshot_queue set status = 'queued', owner_id = null, claimed_at = null, started_at = null,
      retry_at = v_due, reason = p_reason, attempts = attempts - (case when p_spend then 0 else 1 end)
    where snapshot_id = p_snapshot and crawl_id = p_crawl;
  perform holdfast.crawl_wake(p_crawl, v_due);
end $$;
comment on function holdfast.snapshot_release(uuid, uuid, uuid, bigint, text, interval, text, boolean) is 'The owner puts a snapshot back into the queue.';

create or replace function holdfast.snapshot_seal(p_node uuid, p_snapshot uuid, p_crawl uuid, p_fence bigint, p_outcome text, p_reason text,
    p_directory text, p_manifest text, p_bytes bigint, p_files bigint, p_title text, p_tags text[],
    p_urls text[], p_hosts text[], p_titles text[]) returns table (children bigint, crawl_sealed boolean) language plpgsql as $$
-- The final commit, all in one: fence checked, results final, discovered URLs inserted (depth, cap, once per crawl), counters, the
-- sealed row, and the crawl too if that was the last. May be repeated with the same fence: the second time changes nothing.
declare
  v_queue holdfast.snapshot_queue;
  v_depth integer;
  v_crawl holdfast.crawl;
  v_children bigint := 0;
begin
  -- The crawl first: without this lock two last snapshots sealing at once would each see the other open.
  select * into v_crawl from holdfast.crawl where id = p_crawl for update;
  select * into v_queue from holdfast.snapshot_queue where snapshot_id = p_snapshot and crawl_id = p_crawl for update;
  if not found or v_queue.owner_id is distinct from p_node or v_queue.fence <> p_fence then
    -- A repeat is what this node has sealed itself; a quarantine bears the same owner and fence, but is not its seal.
    if exists (select from holdfast.attempt a where a.snapshot_id = p_snapshot and a.crawl_id = p_crawl
                 and a.fence = p_fence and a.process_id = p_node and a.ending = 'sealed') then
      return query select 0::bigint, v_crawl.status = 'sealed';
      return;
    end if;
    raise exception 'snapshot % is no longer held with fence %', p_snapshot, p_fence using errcode = 'HF003';
  end if;
  if exists (select from holdfast.archive_result r where r.snapshot_id = p_snapshot and r.crawl_id = p_crawl and r.fence = p_fence
               and r.ended_at is null) then
    raise exception 'snapshot % cannot be sealed: a hook is still running', p_snapshot using errcode = 'HF001';
  end if;
  select s.depth into strict v_depth from holdfast.snapshot s where s.id = p_snapshot and s.crawl_id = p_crawl;
  if cardinality(p_urls) > 0 and v_depth < v_crawl.max_depth then
    v_children := holdfast.snapshot_insert(p_crawl, p_snapshot, v_depth + 1, p_urls, p_hosts, p_titles, null);
  end if;
  perform holdfast.attempt_end(p_snapshot, p_crawl, 'sealed', p_outcome);
  return query select v_children, holdfast.snapshot_finish(p_snapshot, p_crawl, p_outcome, p_reason, p_node, p_directory, p_manifest,
    p_bytes, p_files, p_title, p_tags);
end $$;
comment on function holdfast.snapshot_seal(uuid, uuid, uuid, bigint, text, text, text, text, bigint, bigint, text, text[], text[], text[], text[]) is 'Closes a snapshot for ever, with its discovered URLs.';
