-- Everything that must always hold and that no constraint or foreign key guarantees. No row: all is well.
-- Reads the whole collection: for tests and for holdfast verify, not for dashboards.

create or replace function holdfast.check_snapshots()
  returns table (invariant text, object_id uuid, detail text) language sql stable as $$
  select 'a snapshot belongs to a crawl', s.id, 'crawl ' || s.crawl_id || ' is gone'
    from holdfast.snapshot s
    where not exists (select from holdfast.crawl c where c.id = s.crawl_id)
  union all
  select 'a queue row belongs to a snapshot', q.snapshot_id, 'the snapshot is gone'
    from holdfast.snapshot_queue q
    where not exists (select from holdfast.snapshot s where s.id = q.snapshot_id and s.crawl_id = q.crawl_id)
  union all
  select 'a snapshot is either open or sealed', s.id,
         case when q.snapshot_id is null then 'neither' else 'both' end
    from holdfast.snapshot s
    left join holdfast.snapshot_queue q on q.snapshot_id = s.id and q.crawl_id = s.crawl_id
    left join holdfast.snapshot_sealed e on e.snapshot_id = s.id and e.crawl_id = s.crawl_id
    where (q.snapshot_id is null) = (e.snapshot_id is null)
  union all
  select 'the page on which a URL was found is there', s.id, 'parent ' || s.parent_id || ' is gone'
    from holdfast.snapshot s
    where not exists (select from holdfast.snapshot u where u.id = s.parent_id and u.crawl_id = s.crawl_id)
      and s.parent_id is not null
  union all
  select 'search knows the text of a sealed snapshot', e.snapshot_id, 'holdfast search --rebuild adds it'
    from holdfast.snapshot_sealed e
    where e.directory is not null and e.sealed_at < clock_timestamp() - interval '1 day'
      and not exists (select
                        from holdfast.page_text t
                        where t.snapshot_id = e.snapshot_id and t.crawl_id = e.crawl_id)
      and exists (select from holdfast.page_text) -- texts are stored: search.text_limit
  union all
  select 'a sealed snapshot had an owner', e.snapshot_id, e.outcome
    from holdfast.snapshot_sealed e
    where e.outcome not in ('cancelled', 'quarantined', 'refused')
      and (e.owner_id is null or e.started_at is null)
  union all
  select 'a result belongs to an attempt that has ended', r.snapshot_id,
         'fence ' || r.fence || ', ' || r.hook_name
    from holdfast.archive_result r
    where not exists (select
                        from holdfast.snapshot_sealed e
                        where e.snapshot_id = r.snapshot_id and e.crawl_id = r.crawl_id and e.fence = r.fence)
      and not exists (select
                        from holdfast.attempt a
                        where a.snapshot_id = r.snapshot_id and a.crawl_id = r.crawl_id and a.fence = r.fence)
  union all
  select 'a page holds no more than its crawl allows', e.snapshot_id,
         n.bytes || ' bytes, not ' || c.max_snapshot_bytes
    from holdfast.crawl c
    join holdfast.snapshot_sealed e on e.crawl_id = c.id and e.directory is not null
    cross join lateral (select sum(r.output_bytes) as bytes
                          from holdfast.archive_result r
                          where r.snapshot_id = e.snapshot_id and r.crawl_id = e.crawl_id
                            and r.fence = e.fence) n
    where c.max_snapshot_bytes > 0 and n.bytes > c.max_snapshot_bytes
$$;

create or replace function holdfast.check_crawls()
  returns table (invariant text, object_id uuid, detail text) language sql stable as $$
  select 'a seed belongs to a crawl', s.crawl_id, 'seed ' || s.position || ' of a crawl that is gone'
    from holdfast.crawl_seed s
    where not exists (select from holdfast.crawl c where c.id = s.crawl_id)
  union all
  select 'a started crawl has something open', c.id, 'nothing is'
    from holdfast.crawl c
    where c.status = 'started' and c.snapshots_open = 0 and c.seeds_left = 0
  union all
  select 'an open crawl is due, owned, parked or has open snapshots', c.id, c.status
    from holdfast.crawl c
    where c.status <> 'sealed' and c.retry_at is null and c.owner_id is null and c.snapshots_open = 0
  union all
  select 'counters equal counts', c.id, format('counted %s, there are %s', o.counted, n.counts)
    from holdfast.crawl c
    cross join lateral (
      select count(*) as total, count(q.snapshot_id) as open, count(*) filter (where q.excluded) as excluded,
             count(*) filter (where e.outcome = 'succeeded') as succeeded,
             count(*) filter (where e.outcome = 'partial') as partial,
             count(*) filter (where e.outcome = 'cancelled') as cancelled, coalesce(sum(e.bytes), 0) as bytes,
             (select count(*) from holdfast.crawl_seed d where d.crawl_id = c.id) as seeds_left
        from holdfast.snapshot s
        left join holdfast.snapshot_queue q on q.snapshot_id = s.id and q.crawl_id = s.crawl_id
        left join holdfast.snapshot_sealed e on e.snapshot_id = s.id and e.crawl_id = s.crawl_id
        where s.crawl_id = c.id) r
    cross join lateral (select to_jsonb(r) as counts) n
    cross join lateral (
      select jsonb_build_object(
        'total', c.snapshots_total, 'open', c.snapshots_open, 'excluded', c.snapshots_excluded,
        'succeeded', c.snapshots_succeeded, 'partial', c.snapshots_partial,
        'cancelled', c.snapshots_cancelled, 'bytes', c.bytes, 'seeds_left', c.seeds_left) as counted) o
    where o.counted <> n.counts
  union all
  select 'webhooks are told only of what happened', c.id, d.event || ' ' || d.id
    from holdfast.delivery d
    join holdfast.crawl c on c.id = d.object_id
    where d.event = 'crawl.sealed' and c.status <> 'sealed'
$$;

create or replace function holdfast.check_claims()
  returns table (invariant text, object_id uuid, detail text) language sql stable as $$
  -- Claims see everything that is due.
  with waiting as (
    select q.snapshot_id, q.crawl_id, q.host, q.retry_at, coalesce(cq.ready_at, 'infinity') as ready_at,
           statement_timestamp()
             + case when cq.max_parallel is null then interval '0' else '1 second' end as soon
      from holdfast.snapshot_queue q
      join holdfast.crawl c on c.id = q.crawl_id
      left join holdfast.crawl_queue cq on cq.crawl_id = q.crawl_id
      where q.owner_id is null and q.status = 'queued' and q.retry_at <= statement_timestamp()
        and c.status = 'started' and num_nonnulls(c.stopping_at, c.judged_to) = 0
  )
  select 'a due snapshot is in sight of claims', w.snapshot_id,
         concat('its crawl is looked at ', w.ready_at, ', its lane ', coalesce(l.next_at::text, 'never'),
                ' from ', l.low_at)
    from waiting w
    left join holdfast.crawl_lane l on l.crawl_id = w.crawl_id and l.host = w.host
    left join holdfast.host h on h.name = w.host
    where not coalesce(h.paused, false)
      and (coalesce(l.next_at, 'infinity') = 'infinity' or w.retry_at < l.low_at
           or w.ready_at > greatest(l.next_at, w.soon) + interval '1 second')
  union all
  select 'a claimed snapshot is leased no longer than its worker', q.snapshot_id,
         'until ' || q.retry_at || ', its worker until ' || p.lease_until
    from holdfast.snapshot_queue q
    join holdfast.process p on p.id = q.owner_id
    where q.retry_at > p.lease_until and p.lease_until > statement_timestamp() -- not seen dead
  union all
  select 'a crawl in crawl_queue is started', q.crawl_id, c.status
    from holdfast.crawl_queue q
    join holdfast.crawl c on c.id = q.crawl_id
    where c.status <> 'started' or num_nonnulls(c.stopping_at, c.judged_to) > 0
$$;

create or replace function holdfast.check_processes()
  returns table (invariant text, object_id uuid, detail text) language sql stable as $$
  with owned(what, id, process_id) as (
    select 'an owned snapshot has a live owner', q.snapshot_id, q.owner_id
      from holdfast.snapshot_queue q
      where q.owner_id is not null
    union all
    select 'an owned crawl has a live owner', c.id, c.owner_id
      from holdfast.crawl c
      where c.owner_id is not null
    union all
    select 'a running hook has a live worker', r.snapshot_id, r.process_id
      from holdfast.running_hook r
    union all
    select 'a live crawl session has a live worker', s.id, s.process_id
      from holdfast.session s
      where s.ended_at is null
  ), run as (
    select r.*, max(r.ended_at) over earlier as others_until, max(r.epoch) over earlier as before
      from holdfast.maintenance_run r
      window earlier as (order by r.id rows between unbounded preceding and 1 preceding)
  ), term as (
    select t.*, max(t.valid_until) over earlier as others_until
      from holdfast.runner_term t
      window earlier as (order by t.epoch rows between unbounded preceding and 1 preceding)
  )
  select o.what, o.id, 'process ' || o.process_id || ' is ' || coalesce(p.status, 'gone')
    from owned o
    left join holdfast.process p on p.id = o.process_id
    where p.status is distinct from 'running'
  union all
  select 'a running crawl hook belongs to a live crawl session', s.id, h.plugin || '/' || h.hook_name
    from holdfast.session_hook h
    join holdfast.session s on s.id = h.session_id
    where h.ended_at is null and s.ended_at is not null
  union all
  select 'a binary that was found has been looked at, and will be again', b.id, b.name
    from holdfast.binary b
    where b.retry_at is null or b.status = 'installed' and b.checked_at is null
  union all
  select 'one runner leads at a time', t.process_id,
         format('epoch %s began at %s, an earlier one was valid until %s',
                t.epoch, t.began_at, t.others_until)
    from term t
    where t.others_until > t.began_at
  union all
  select 'the leading runner has the last epoch', p.id, 'it has ' || coalesce(p.epoch::text, 'none')
    from holdfast.process p
    where p.worker_type = 'worker_runner' and p.status = 'running'
      and p.epoch is distinct from (select max(t.epoch) from holdfast.runner_term t)
  union all
  select 'no two maintenance tasks overlap', r.process_id,
         format('%s began at %s, before an earlier one had ended at %s', r.task, r.began_at, r.others_until)
    from run r
    where r.others_until > r.began_at
  union all
  select 'a task is done by the runner of its time', r.process_id,
         format('%s by epoch %s, after epoch %s', r.task, r.epoch, r.before)
    from run r
    where r.before > r.epoch
$$;

create or replace function holdfast.check_invariants()
  returns table (invariant text, object_id uuid, detail text) language sql stable as $$
  select * from holdfast.check_snapshots()
  union all
  select * from holdfast.check_crawls()
  union all
  select * from holdfast.check_claims()
  union all
  select * from holdfast.check_processes()
$$;
comment on function holdfast.check_invariants is
  'Returns violated invariants; no row: all hold. Reads the whole collection: not for dashboards.';
