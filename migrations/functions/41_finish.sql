-- How the work on a snapshot ends: it is sealed, or it is released. Every way there (a worker that has
-- finished, a worker that lapsed, a command) builds an array of holdfast.finished_page and goes through the
-- same functions: lock_for takes all locks, in the one order; judge_pages decides what becomes of each page,
-- by the limits of its crawl and the rules of the collection; end_pages seals pages with an outcome and
-- releases those without (41_seal.sql).

create or replace function holdfast.lock_for(
    p_crawls uuid[], p_snapshots uuid[], p_pages holdfast.finished_page[] default null)
  returns void language plpgsql as $$
-- The one order of locks: crawls, snapshots, hosts, crawl_queue; all of one kind, in the order of their keys,
-- before the first of the next; fingerprints after all of them. A lane is locked after its crawl's row in
-- crawl_queue; a worker's own row comes before all of them. p_pages: their links may lead to hosts that get
-- their row now.
begin
  perform from holdfast.crawl
    where id = any (p_crawls)
    order by id
    for no key update;
  perform from holdfast.snapshot_queue
    where snapshot_id = any (p_snapshots) and crawl_id = any (p_crawls)
    order by crawl_id, snapshot_id
    for update;
  -- Only a host where a delay is kept is written when one of its snapshots ends (lane_end).
  perform from holdfast.host h
    where (h.last_at is not null or greatest(h.min_delay, h.robots_delay) > '0')
      and h.name = any (array(select q.host from holdfast.snapshot_queue q
                                where q.snapshot_id = any (p_snapshots)))
    order by h.name
    for no key update;
  if p_pages is not null then
    perform holdfast.hosts_enter(array_agg(p.crawl), array_agg(holdfast.host_of(l.link ->> 'url')))
      from unnest(p_pages) p
      cross join lateral jsonb_array_elements(p.links) l(link);
  end if;
  perform from holdfast.crawl_queue c
    where c.crawl_id = any (p_crawls)
    order by c.crawl_id
    for no key update;
end $$;

create or replace function holdfast.lock_held(p_snapshots uuid[])
  returns uuid[] language plpgsql as $$
-- Calls lock_for for those of these snapshots that a worker has, and returns them. A snapshot that was
-- claimed while this waited for a lock is not among them, because its crawl may not be locked; its worker
-- loses it with the next heartbeat (control_apply).
declare
  v_crawls constant uuid[] := array(select distinct q.crawl_id
                                      from holdfast.snapshot_queue q
                                      where q.snapshot_id = any (p_snapshots) and q.owner_id is not null);
begin
  perform holdfast.lock_for(v_crawls, p_snapshots);
  return array(select q.snapshot_id
                 from holdfast.snapshot_queue q
                 where q.snapshot_id = any (p_snapshots)
                   and q.crawl_id = any (v_crawls)
                   and q.owner_id is not null);
end $$;

create or replace function holdfast.pages_of(p_snapshots uuid[], p_ending text, p_outcome text, p_reason text)
  returns holdfast.finished_page[] language sql stable as $$
  -- Open snapshots as pages that end without results or files.
  select coalesce(
           array_agg(
             jsonb_populate_record(null::holdfast.finished_page, jsonb_build_object(
               'snapshot', q.snapshot_id, 'crawl', q.crawl_id, 'fence', q.fence,
               'ending', p_ending, 'outcome', p_outcome, 'reason', p_reason))
             order by q.crawl_id, q.snapshot_id),
           '{}')
    from holdfast.snapshot_queue q
    where q.snapshot_id = any (p_snapshots)
$$;

create or replace function holdfast.judge_pages(p_pages holdfast.finished_page[], p_owner uuid)
  returns holdfast.finished_page[] language plpgsql as $$
-- Returns the pages that p_owner holds with the fence it names, each once and in their order, with what
-- becomes of them.
declare
  v_held record;
begin
  select coalesce(array_agg(h.page order by h.n), '{}') as pages,
         bool_or(h.outcome is null) as released, bool_or(h.limited) as limited
    into v_held
    from (select distinct on (p.snapshot)
                 p.page, p.outcome, p.n, c.max_bytes > 0 or c.max_snapshot_bytes > 0 as limited
            from (select u as page, u.snapshot, u.crawl, u.fence, u.outcome, row_number() over () as n
                    from unnest(p_pages) u) p
            cross join lateral (select o.fence, o.owner_id
                                  from holdfast.snapshot_queue o
                                  where o.snapshot_id = p.snapshot and o.crawl_id = p.crawl
                                  limit 1) q
            cross join lateral (select o.max_bytes, o.max_snapshot_bytes
                                  from holdfast.crawl o
                                  where o.id = p.crawl
                                  limit 1) c
            where q.fence = p.fence and q.owner_id = p_owner
            order by p.snapshot, p.n) h;
  if v_held.limited then v_held.pages := holdfast.judge_bytes(v_held.pages); end if;
  if v_held.released then v_held.pages := holdfast.judge_released(v_held.pages); end if;
  return v_held.pages;
end $$;

create or replace function holdfast.judge_bytes(p_pages holdfast.finished_page[])
  returns holdfast.finished_page[] language plpgsql as $$
-- Cancels a page with more bytes than max_snapshot_bytes, or with which its crawl would hold more than
-- max_bytes; "ending" names the limit.
declare
  v_page holdfast.finished_page;
  v_crawl record;
  v_weight numeric;
  v_bytes bigint;
  v_totals jsonb := '{}'; -- by crawl: its bytes with the pages so far
  v_judged holdfast.finished_page[] := '{}';
begin
  foreach v_page in array p_pages
  loop
    if v_page.outcome is not null then
      select c.bytes, c.max_bytes, c.max_snapshot_bytes
        into strict v_crawl
        from holdfast.crawl c
        where c.id = v_page.crawl;
      select sum((r ->> 'output_bytes')::numeric) into v_weight from jsonb_array_elements(v_page.results) r;
      if v_crawl.max_snapshot_bytes > 0 and v_weight > v_crawl.max_snapshot_bytes then
        v_page.outcome := 'cancelled';
        v_page.ending := 'max_snapshot_bytes';
        v_page.reason := format('its hooks left more than max_snapshot_bytes (%s)',
                                pg_size_pretty(v_crawl.max_snapshot_bytes));
      elsif v_page.bytes > 0 then
        v_bytes := coalesce((v_totals ->> v_page.crawl::text)::bigint, v_crawl.bytes) + v_page.bytes;
        v_totals := v_totals || jsonb_build_object(v_page.crawl, v_bytes);
        if v_crawl.max_bytes > 0 and v_bytes > v_crawl.max_bytes then
          v_page.outcome := 'cancelled';
          v_page.ending := 'max_bytes';
          v_page.reason := format('with its %s its crawl would hold more than max_bytes (%s)',
                                  pg_size_pretty(v_page.bytes), pg_size_pretty(v_crawl.max_bytes));
        end if;
      end if;
    end if;
    v_judged := array_append(v_judged, v_page);
  end loop;
  return v_judged;
end $$;

create or replace function holdfast.judge_released(p_pages holdfast.finished_page[])
  returns holdfast.finished_page[] language plpgsql as $$
-- Decides about pages without an outcome:
--   its crawl is being stopped: cancelled
--   lapsed, and so did max_lapses workers by now: quarantined
--   failed by itself (released, spend, no delay): tried again, later each time, until it has failed
--     max_attempts times
--   worker_error: tried again, later each time, until that has happened max_worker_errors times
declare
  v_page holdfast.finished_page;
  v_now record;
  v_worker_errors bigint;
  v_judged holdfast.finished_page[] := '{}';
begin
  foreach v_page in array p_pages
  loop
    if v_page.outcome is null then
      select q.attempts, q.lapses + 1 as lapses, a.max_attempts, a.max_lapses, a.max_worker_errors,
             c.stopping_at,
             coalesce(c.reason, 'its crawl was stopped') as why_stopped,
             least(a.retry_base * 2 ^ least(q.attempts, 20), a.retry_max) as backoff,
             extract(epoch from a.retry_max) * 1000 as longest_ms
        into strict v_now
        from holdfast.snapshot_queue q
        join holdfast.crawl c on c.id = q.crawl_id
        cross join holdfast.collection a
        where q.snapshot_id = v_page.snapshot and q.crawl_id = v_page.crawl;
      if v_now.stopping_at is not null then
        v_page.outcome := 'cancelled';
        v_page.reason := v_now.why_stopped;
      elsif v_page.ending = 'lapsed' and v_now.lapses >= v_now.max_lapses then
        v_page.outcome := 'quarantined';
        v_page.reason := format('its worker died, %s times over; the last: %s', v_now.lapses, v_page.reason);
      elsif v_page.ending = 'released' and v_page.spend and v_page.delay_ms is null then
        if v_now.attempts >= v_now.max_attempts then v_page.outcome := 'failed'; end if;
        v_page.delay_ms := extract(epoch from v_now.backoff) * 1000 * (0.75 + random() / 2);
      elsif v_page.ending = 'worker_error' then
        v_worker_errors := 1 + (select count(*)
                             from holdfast.attempt o
                             where o.snapshot_id = v_page.snapshot
                               and o.crawl_id = v_page.crawl
                               and o.ending = 'worker_error');
        if v_worker_errors >= v_now.max_worker_errors then
          v_page.outcome := 'failed';
          v_page.reason := format('released %s times because of worker errors; the last: %s',
                                  v_worker_errors, v_page.reason);
        end if;
        v_page.delay_ms := greatest(v_page.delay_ms, least(
          v_page.delay_ms * 2 ^ least(v_worker_errors - 1, 20), v_now.longest_ms));
      end if;
    end if;
    v_judged := array_append(v_judged, v_page);
  end loop;
  return v_judged;
end $$;

create or replace function holdfast.keep_results(p_worker uuid, p_pages holdfast.finished_page[])
  returns void language plpgsql as $$
-- Stores what the hooks of these attempts did, also of attempts that are released. A worker says how long ago
-- a hook ended and how long it took: only the server's clock tells the time.
declare
  v_now constant timestamptz := clock_timestamp();
begin
  insert into holdfast.archive_result (
      snapshot_id, crawl_id, fence, plugin, hook_name, status, process_id, pid, background,
      started_at, ended_at,
      output, error, output_json, output_files, output_bytes,
      exit_code, exit_signal, wall_ms, user_ms, system_ms, peak_memory_bytes, read_bytes, written_bytes,
      started_with)
    select p.snapshot, p.crawl, p.fence, r.plugin, r.hook, r.status, p_worker, r.pid,
           coalesce(r.background, false),
           t.ended_at - coalesce(r.wall_ms, 0) * interval '1 millisecond', t.ended_at,
           coalesce(r.output, ''), coalesce(r.error, ''), r.output_json, coalesce(r.output_files, '[]'),
           coalesce(r.output_bytes, 0),
           r.exit_code, r.exit_signal, r.wall_ms, r.user_ms, r.system_ms, r.peak_memory_bytes, r.read_bytes,
           r.written_bytes, r.started_with
      from unnest(p_pages) p
      cross join lateral jsonb_to_recordset(p.results) as r(
        plugin text, hook text, status text, pid integer, background boolean, ended_ago_ms bigint,
        output text, error text, output_json jsonb, output_files jsonb, output_bytes bigint,
        exit_code integer, exit_signal integer, wall_ms bigint, user_ms bigint, system_ms bigint,
        peak_memory_bytes bigint, read_bytes bigint, written_bytes bigint, started_with jsonb)
      cross join lateral (
        select v_now - greatest(r.ended_ago_ms, 0) * interval '1 millisecond' as ended_at) t;
end $$;

create or replace function holdfast.follow_links(p_pages holdfast.finished_page[])
  returns jsonb language plpgsql as $$
-- The URLs found on sealed pages become snapshots. Returns how many are new, by snapshot.
declare
  v_page record;
  v_new jsonb := '{}';
begin
  for v_page in
    select p.snapshot, p.crawl, s.depth + 1 as depth, l.urls, l.titles, l.tags, l.bookmarked
      from unnest(p_pages) with ordinality p
      cross join lateral (select o.depth
                            from holdfast.snapshot o
                            where o.id = p.snapshot and o.crawl_id = p.crawl
                            limit 1) s
      cross join lateral (select o.max_depth from holdfast.crawl o where o.id = p.crawl limit 1) c
      cross join lateral (select array_agg(u.link ->> 'url' order by u.n) as urls,
                                 array_agg(u.link ->> 'title' order by u.n) as titles,
                                 case when bool_or(u.link ? 'tags')
                                        then jsonb_agg(coalesce(u.link -> 'tags', '[]') order by u.n)
                                 end as tags,
                                 case when bool_or(u.link ? 'bookmarked_at')
                                        then array_agg((u.link ->> 'bookmarked_at')::timestamptz order by u.n)
                                 end as bookmarked
                            from jsonb_array_elements(p.links) with ordinality u(link, n)) l
      where p.outcome in ('succeeded', 'partial', 'failed')
        and l.urls is not null
        and s.depth < c.max_depth
      order by p.ordinality
  loop
    v_new := v_new || jsonb_build_object(
      v_page.snapshot::text,
      holdfast.snapshots_add(v_page.crawl, v_page.snapshot, v_page.depth, v_page.urls, v_page.titles,
                             v_page.tags, v_page.bookmarked));
  end loop;
  return v_new;
end $$;

create or replace function holdfast.end_pages(p_pages holdfast.finished_page[])
  returns uuid[] language plpgsql as $$
-- Seals and releases judged pages; a crawl that would hold more than it may is stopped. Returns the crawls
-- that have ended.
declare
  v_ended constant uuid[] := holdfast.seal_pages(p_pages);
  v_page holdfast.finished_page;
  v_released boolean := false;
  v_full uuid[] := '{}';
begin
  foreach v_page in array p_pages
  loop
    v_released := v_released or v_page.outcome is null;
    if v_page.ending = 'max_bytes' then v_full := v_full || v_page.crawl; end if;
  end loop;
  if v_released then perform holdfast.release_pages(p_pages); end if;
  if v_full = '{}' then return v_ended; end if;
  perform holdfast.crawl_stop(
      c.id, 'max_bytes', '', format('it may hold no more than %s', pg_size_pretty(c.max_bytes)), 1000, false)
    from holdfast.crawl c
    where c.id = any (v_full);
  return v_ended || array(select c.id from holdfast.crawl c where c.id = any (v_full) and c.status = 'sealed');
end $$;

create or replace function holdfast.finish(p_worker uuid, p_pages jsonb)
  returns table (
    snapshot_id uuid, crawl_id uuid, fence bigint, answer text, children bigint, crawl_sealed boolean)
  language plpgsql as $$
-- Called by worker_turn. A worker has finished with any number of snapshots: [{snapshot, crawl, fence, ...}],
-- keys as the fields of holdfast.finished_page. All in one transaction, which may be repeated. The answers,
-- in the order of the pages:
--   sealed     now, or before by this worker; children: new snapshots among its links
--   failed     it was released once too often, and is sealed as failed
--   cancelled  sealed as cancelled, because of a limit or a command: the worker deletes the files
--   released   it is in the queue again
--   lost       not held with this fence: nothing was changed
-- crawl_sealed: the crawl has ended (of several of its pages in one call, with the last).
-- A worker cannot itself declare a page lost, quarantined or cancelled.
declare
  v_asked record;
  v_held holdfast.finished_page[];
  v_children jsonb := '{}';
  v_ended uuid[];
begin
  perform holdfast.mine(p_worker);
  select array_agg(p) as pages,
         array_agg(distinct p.crawl) as crawls,
         array_agg(p.snapshot) as ids,
         bool_or(p.links <> '[]') as links,
         bool_or(p.captures <> '[]') as captures,
         bool_or(p.originals <> '[]') as originals,
         bool_or(p.facts ? 'bytes_saved') as saved,
         bool_or(p.fingerprint is not null) as compared,
         min(format('ending %s, outcome %s', p.ending, p.outcome)) filter (
           where case
                   when p.outcome is null
                     then coalesce(p.ending not in ('released', 'worker_error', 'interrupted', 'declined'), true)
                   else coalesce(p.ending, 'sealed') <> 'sealed'
                        or p.outcome not in ('succeeded', 'partial', 'failed', 'refused')
                 end) as wrong
    into v_asked
    from jsonb_populate_recordset(null::holdfast.finished_page, p_pages) p;
  if v_asked.wrong is not null then
    raise exception 'unknown ending of a page: %', v_asked.wrong using errcode = 'HF001';
  end if;
  perform holdfast.lock_for(v_asked.crawls, v_asked.ids, case when v_asked.links then v_asked.pages end);
  v_held := holdfast.judge_pages(v_asked.pages, p_worker);
  perform holdfast.keep_results(p_worker, v_held);
  if v_asked.links then v_children := holdfast.follow_links(v_held); end if;
  if v_asked.compared then v_held := holdfast.changes_settle(v_held); end if;
  v_ended := holdfast.end_pages(v_held);
  if v_asked.originals then perform holdfast.originals_hold(v_held); end if;
  if v_asked.captures then perform holdfast.keep_captures(v_held); end if;
  if v_asked.saved then perform holdfast.count_saved(v_held); end if;
  if cardinality(v_held) = cardinality(v_asked.ids) and v_ended = '{}' then
    return query
      select h.snapshot, h.crawl, h.fence, holdfast.finish_answer(h),
             coalesce((v_children ->> h.snapshot::text)::bigint, 0), false
        from unnest(v_held) h;
  else
    return query select * from holdfast.finish_answers(p_worker, v_asked.pages, v_held, v_children);
  end if;
end $$;

create or replace function holdfast.finish_answer(p_page holdfast.finished_page)
  returns text language sql immutable as $$
  -- Returns the end of a page that the worker held: a judged page.
  select case
           when (p_page).outcome is null then 'released'
           when (p_page).outcome in ('cancelled', 'quarantined') then 'cancelled'
           when (p_page).ending in ('released', 'worker_error') then 'failed'
           else 'sealed'
         end
$$;

create or replace function holdfast.finish_answers(
    p_worker uuid, p_pages holdfast.finished_page[], p_held holdfast.finished_page[], p_children jsonb)
  returns table (
    snapshot_id uuid, crawl_id uuid, fence bigint, answer text, children bigint, crawl_sealed boolean)
  language sql stable as $$
  -- The answers of finish where some pages were not held, or a crawl has ended.
  select p.snapshot, p.crawl, p.fence,
         case when h.snapshot is null then coalesce(r.answer, 'lost') else holdfast.finish_answer(h) end,
         coalesce((p_children ->> h.snapshot::text)::bigint, 0),
         p.ordinality = max(p.ordinality) over (partition by p.crawl) and coalesce(c.status = 'sealed', false)
    from unnest(p_pages) with ordinality p
    left join unnest(p_held) h on h.snapshot = p.snapshot and h.fence = p.fence
    left join lateral (select o.status from holdfast.crawl o where o.id = p.crawl limit 1) c on true
    -- Without an owner: a repeat, if this worker ended this attempt in this way before.
    left join lateral (
      select case
               when e.outcome = 'cancelled' then 'cancelled'
               when p.outcome is null then 'failed'
               else 'sealed'
             end as answer
        from holdfast.snapshot_sealed e
        where h.snapshot is null
          and e.snapshot_id = p.snapshot
          and e.crawl_id = p.crawl
          and e.fence = p.fence
          and e.owner_id = p_worker
          and e.outcome <> 'quarantined'
      union all
      select 'released'
        from holdfast.attempt a
        where h.snapshot is null
          and p.outcome is null
          and a.snapshot_id = p.snapshot
          and a.crawl_id = p.crawl
          and a.fence = p.fence
          and a.process_id = p_worker
          and a.ending = p.ending
      limit 1) r on true
    order by p.ordinality
$$;

create or replace function holdfast.worker_turn(
    p_worker uuid, p_pages jsonb, p_room integer, p_open uuid[], p_open_only boolean, p_newest boolean,
    p_top_n integer, p_seeds integer, p_only uuid[] default null)
  returns table (
    what text, snapshot_id uuid, crawl_id uuid, fence bigint, children bigint, crawl_sealed boolean,
    detail text, claim jsonb)
  language plpgsql as $$
-- Transfers the whole report of a worker about its pages in one transaction: pages finished since the last
-- turn, then a claim into its free slots. See finish and claim. Returns a row for each page (what: as finish)
-- and one for each claimed snapshot (what: claimed). Where less was claimed than requested, one more row has
-- the milliseconds until a waiting page is due (what: wait; no row: nothing waits).
#variable_conflict use_column
declare
  v_finished constant boolean := p_pages <> '[]';
  v_claimed bigint;
begin
  if v_finished then
    -- The order of locks: the worker before the crawls of its pages. After these the turn may wait for no
    -- other crawl, so its claim neither releases the work of dead workers nor opens crawls.
    perform from holdfast.process where id = p_worker for key share;
    return query
      select f.answer, f.snapshot_id, f.crawl_id, f.fence, f.children, f.crawl_sealed, null::text, null::jsonb
        from holdfast.finish(p_worker, p_pages) f;
  end if;
  if p_room <= 0 then return; end if;
  return query
    select 'claimed', c.snapshot_id, c.crawl_id, c.fence, null::bigint, null::boolean, null::text,
           jsonb_strip_nulls(to_jsonb(c))
      from holdfast.claim(p_worker, p_room, p_open, p_open_only, p_newest, p_top_n, p_seeds, v_finished,
                          p_only) c;
  get diagnostics v_claimed = row_count;
  if v_claimed < p_room then
    return query
      select 'wait', null::uuid, null::uuid, null::bigint, null::bigint, null::boolean, w.ms::text,
             null::jsonb
        from (select ceil(extract(epoch from holdfast.claim_wait(p_worker)) * 1000)::bigint as ms) w
        where w.ms is not null;
  end if;
end $$;
comment on function holdfast.worker_turn is
  'Finishes snapshots and claims others: the whole report of a worker on its pages, in one commit.';
