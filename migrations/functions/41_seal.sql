-- The two ends of the work on a snapshot: seal_pages is the one function that writes sealed rows and counts,
-- release_pages the one that gives a snapshot back to the queue, or parks it. Each is one long statement,
-- because every further statement would cost every page. Rows are joined one by one (lateral, limit 1) or by
-- "= any": a plan made while the tables were small must not read, or compare with, all of a large one.

create or replace function holdfast.seal_pages(p_pages holdfast.finished_page[])
  returns uuid[] language plpgsql as $$
-- Seals the pages that have an outcome; the caller has locked their rows. The queue's rows become sealed
-- rows, the crawls count them and end with the last of them, and the room that they took is free again. A
-- page whose fence is not its row's is left alone. Returns the crawls that have ended.
declare
  v_done record;
begin
  with gone as (
    delete from holdfast.snapshot_queue q
      using unnest(p_pages) p
      where q.snapshot_id = any (array(select i.snapshot from unnest(p_pages) i))
        and q.snapshot_id = p.snapshot
        and q.crawl_id = p.crawl
        and q.fence = p.fence
        and p.outcome is not null
      returning p.snapshot, p.crawl, p.fence, p.outcome, p.reason, p.directory, p.manifest, p.bytes, p.files,
                p.title, p.tags, p.facts,
                p.outcome not in ('cancelled', 'quarantined') as kept,
                case when p.outcome not in ('succeeded', 'partial', 'failed') then p.snapshot end as one,
                q.status, q.owner_id, q.claimed_at, q.attempts, q.lapses, q.host, q.excluded
  ), closed as ( -- the sealed rows; a cancelled or quarantined page keeps no files
    insert into holdfast.snapshot_sealed (
        snapshot_id, crawl_id, outcome, reason, fence, owner_id,
        directory, manifest_sha256, bytes, files,
        title, facts, attempts, lapses, started_at)
      select g.snapshot, g.crawl, g.outcome, nullif(g.reason, ''), g.fence, g.owner_id,
             case when g.kept then nullif(g.directory, '') end,
             case when g.kept then nullif(g.manifest, '') end,
             case when g.kept then coalesce(g.bytes, 0) else 0 end,
             case when g.kept then coalesce(g.files, 0) else 0 end,
             coalesce(nullif(g.title, ''), (select s.title
                                              from holdfast.snapshot s
                                              where s.id = g.snapshot and s.crawl_id = g.crawl)),
             coalesce(g.facts, '{}'), g.attempts, g.lapses + (g.outcome = 'quarantined')::integer, g.claimed_at
        from gone g
  ), told as ( -- ordinary seals: one event for all of a crawl that this call seals
    insert into holdfast.event (
        lifecycle, object_id, objects, crawl_id,
        from_state, event, to_state, process_id, detail)
      select 'snapshot', g.one, case when g.one is null then array_agg(g.snapshot) end, g.crawl,
             g.status, holdfast.seal_event(g.outcome), 'sealed', g.owner_id,
             g.outcome || coalesce(': ' || nullif(g.reason, ''), '')
        from gone g
        group by g.crawl, g.one, g.status, g.owner_id, g.outcome, g.reason
  ), counted as ( -- the crawls' counters
    update holdfast.crawl c
      set snapshots_open = c.snapshots_open - n.ended,
          bytes = c.bytes + n.bytes,
          snapshots_succeeded = c.snapshots_succeeded + n.succeeded,
          snapshots_partial = c.snapshots_partial + n.partial,
          snapshots_cancelled = c.snapshots_cancelled + n.cancelled,
          snapshots_failed = c.snapshots_failed + n.ended - n.succeeded - n.partial - n.cancelled,
          snapshots_excluded = c.snapshots_excluded - n.excluded
      from (select g.crawl,
                   count(*) as ended,
                   count(*) filter (where g.outcome = 'succeeded') as succeeded,
                   count(*) filter (where g.outcome = 'partial') as partial,
                   count(*) filter (where g.outcome = 'cancelled') as cancelled,
                   count(*) filter (where g.excluded) as excluded,
                   coalesce(sum(g.bytes) filter (where g.kept), 0) as bytes
              from gone g
              group by g.crawl) n
      where c.id = n.crawl and c.id = any (array(select p.crawl from unnest(p_pages) p))
      returning c.id, c.seeds_left = 0 and c.snapshots_open <= c.snapshots_excluded as may_end,
                c.max_parallel is not null as capped, c.overwrite
  ), pages as (
    select bool_or(not g.kept and g.owner_id is not null) as cut, bool_or(g.tags <> '{}') as tagged,
           array_agg(distinct g.crawl || ' ' || g.host) filter (where g.owner_id is not null) as lanes
      from gone g
  ), crawls as (
    select array_agg(c.id order by c.id) filter (where c.may_end) as may_end,
           array_agg(c.id) filter (where c.capped) as capped, bool_or(c.overwrite) as overwrite
      from counted c
  )
  select * into v_done from pages cross join crawls;
  if v_done.cut then perform holdfast.attempts_cut(p_pages); end if;
  if v_done.tagged then perform holdfast.tags_found(p_pages); end if;
  if v_done.capped is not null or v_done.lanes is not null then
    perform holdfast.room_made(v_done.capped, v_done.lanes);
  end if;
  if v_done.overwrite then
    perform holdfast.snapshots_supersede(array(select p.snapshot from unnest(p_pages) p));
  end if;
  if v_done.may_end is null then return '{}'; end if;
  return array(select c.id from unnest(v_done.may_end) c(id) where holdfast.crawl_settle(c.id));
end $$;

create or replace function holdfast.attempts_cut(p_pages holdfast.finished_page[])
  returns void language sql as $$
  -- Records the attempts that were under way when these pages were cancelled or quarantined. An ordinary seal
  -- is its own record.
  insert into holdfast.attempt (snapshot_id, crawl_id, fence, process_id, claimed_at, ending, reason, hooks)
    select e.snapshot_id, e.crawl_id, e.fence, e.owner_id, e.started_at,
           case e.outcome when 'cancelled' then 'cancelled' else 'lapsed' end,
           case when p.ending in ('max_bytes', 'max_snapshot_bytes') then p.ending else p.reason end,
           holdfast.hooks_of(e.snapshot_id, e.fence)
      from unnest(p_pages) p
      cross join lateral (select *
                            from holdfast.snapshot_sealed o
                            where o.snapshot_id = p.snapshot and o.crawl_id = p.crawl
                            limit 1) e
      where e.fence = p.fence and e.owner_id is not null and p.outcome in ('cancelled', 'quarantined')
$$;

create or replace function holdfast.tags_found(p_pages holdfast.finished_page[])
  returns void language sql as $$
  -- Adds the tags that hooks have found to the snapshots of sealed pages.
  update holdfast.snapshot s
    set tags = holdfast.tags_of(s.tags, p.tags)
    from unnest(p_pages) p
    where s.id = any (array(select i.snapshot from unnest(p_pages) i))
      and s.id = p.snapshot
      and s.crawl_id = p.crawl
      and p.outcome is not null
      and not p.tags <@ s.tags
$$;

create or replace function holdfast.release_pages(
    p_pages holdfast.finished_page[], p_to text default 'queued')
  returns bigint language plpgsql as $$
-- Takes snapshots from their owners, if they have any, and puts them into the queue again, or parks them
-- (p_to: queued, paused, excluded). The caller has locked their rows. An attempt is counted only where the
-- page says "spend", or its worker lapsed. Without a delay a snapshot comes back to its old place, not
-- behind all that wait. Returns how many.
declare
  v_now constant timestamptz := clock_timestamp();
  v_ids constant uuid[] := array(select p.snapshot from unnest(p_pages) p);
  v_row record;
  v_done record;
begin
  with page as materialized ( -- those that change
    select p.*, q.status, q.owner_id, q.claimed_at, q.excluded, p.ending = 'lapsed' as lapsed,
           q.owner_id is not null and p.ending <> 'lapsed' and p.spend is not true as unspent
      from unnest(p_pages) p
      join holdfast.snapshot_queue q
        on q.snapshot_id = p.snapshot and q.crawl_id = p.crawl and q.fence = p.fence
      where q.snapshot_id = any (v_ids)
        and p.outcome is null
        and not (p_to = 'queued' and q.status = 'queued')
        and not (p_to = 'paused' and q.status = 'paused')
  ), cut as ( -- the attempts that end here
    insert into holdfast.attempt (snapshot_id, crawl_id, fence, process_id, claimed_at, ending, reason, hooks)
      select p.snapshot, p.crawl, p.fence, p.owner_id, p.claimed_at, p.ending, p.reason,
             case when p.lapsed then holdfast.hooks_of(p.snapshot, p.fence) else '{}' end
        from page p
        where p.owner_id is not null
  ), moved as (
    update holdfast.snapshot_queue q
      set owner_id = null, claimed_at = null, due_at = null, reason = p.reason, excluded = p_to = 'excluded',
          status = case p_to when 'queued' then 'queued' else 'paused' end,
          event = case
                    when p_to <> 'queued' then 'pause'
                    when p.status = 'paused' then 'resume'
                    when p.lapsed then 'lapse'
                    else 'release'
                  end,
          retry_at = case
                       when p_to <> 'queued' then holdfast.retry_at_max()
                       when p.status = 'paused'
                         then v_now + coalesce(p.delay_ms, 0) * interval '1 millisecond'
                       when p.delay_ms > 0 then v_now + p.delay_ms * interval '1 millisecond'
                       else least(q.due_at, v_now)
                     end,
          attempts = q.attempts - p.unspent::integer,
          lapses = q.lapses + p.lapsed::integer
      from page p
      where q.snapshot_id = any (v_ids) and q.snapshot_id = p.snapshot and q.crawl_id = p.crawl
      returning q.crawl_id, q.host, q.retry_at, p.owner_id, p.excluded
  ), counted as (
    update holdfast.crawl c
      set snapshots_excluded = c.snapshots_excluded + n.more
      from (select m.crawl_id, sum((p_to = 'excluded')::integer - m.excluded::integer) as more
              from moved m
              group by m.crawl_id) n
      where c.id = n.crawl_id
        and c.id = any (array(select p.crawl from unnest(p_pages) p))
        and n.more <> 0
  )
  select count(*) as count,
         array_agg(distinct m.crawl_id) filter (where m.owner_id is not null) as crawls,
         array_agg(distinct m.crawl_id || ' ' || m.host) filter (where m.owner_id is not null) as lanes,
         jsonb_agg(jsonb_build_object('crawl', m.crawl_id, 'host', m.host, 'at', m.retry_at))
           filter (where p_to = 'queued') as due
    into v_done
    from moved m;
  for v_row in
    select d.crawl, min(d.at) as at, array_agg(d.host) as hosts, array_agg(d.at) as due
      from jsonb_to_recordset(v_done.due) as d(crawl uuid, host text, at timestamptz)
      group by d.crawl
      order by d.crawl
  loop
    perform holdfast.crawl_wake(v_row.crawl, v_row.at);
    perform holdfast.lane_open(v_row.crawl, v_row.hosts, v_row.due);
  end loop;
  perform holdfast.room_made(v_done.crawls, v_done.lanes);
  return v_done.count;
end $$;
