-- What people read. Names and columns of these views are stable between releases; new columns may come at the end.

create or replace view holdfast.v_crawl as
  select c.id, c.label, c.status, c.outcome, c.stop_reason, c.retry_at, c.reason,
         c.snapshots_total as total, c.snapshots_open as open, c.snapshots_succeeded as succeeded, c.snapshots_partial as partial,
         c.snapshots_failed - c.snapshots_cancelled as failed, c.seeds_left, c.bytes, c.max_depth, c.max_urls, c.tags, c.plugins, c.priority, c.created_by, c.created_at,
         c.started_at, c.sealed_at, coalesce(c.sealed_at, statement_timestamp()) - c.created_at as age,
         c.first_url, c.notes, c.max_bytes, c.max_time, c.max_parallel, c.deadline_at, c.scope, c.urls_refused as refused,
         c.snapshots_excluded as excluded, c.paused_at, c.stopping_at, c.changed_by, c.retry_of, c.keep_until,
         c.snapshots_cancelled as cancelled
    from holdfast.crawl c;
comment on view holdfast.v_crawl is 'Crawls with their counts. total = open + succeeded + partial + failed + cancelled, always.';
comment on column holdfast.v_crawl.open is 'Snapshots not yet sealed.';
comment on column holdfast.v_crawl.age is 'How long it took, or has taken so far.';
comment on column holdfast.v_crawl.first_url is 'Its first seed.';

create or replace view holdfast.v_snapshot as
  select s.id, s.crawl_id, s.url, s.host, s.depth, coalesce(q.status, 'sealed') as status, e.outcome,
         coalesce(nullif(e.title, ''), s.title) as title,
         case when q.owner_id is not null then p.lease_until else q.retry_at end as retry_at,
         coalesce(q.reason, e.reason) as reason, coalesce(q.fence, e.fence) as fence, coalesce(q.owner_id, e.owner_id) as owner_id,
         p.label as owner, q.claimed_at, coalesce(q.started_at, e.started_at) as started_at, e.sealed_at, e.directory, e.manifest_sha256,
         e.bytes, e.files, coalesce(q.attempts, e.attempts) as attempts, coalesce(q.owners_lost, e.owners_lost) as owners_lost,
         s.parent_id, coalesce(e.tags, s.tags) as tags, s.created_at, coalesce(u.url, s.found_on) as found_on
    from holdfast.snapshot s
    left join holdfast.snapshot u on u.id = s.parent_id and u.crawl_id = s.crawl_id
    left join holdfast.snapshot_queue q on q.snapshot_id = s.id and q.crawl_id = s.crawl_id
    left join holdfast.snapshot_sealed e on e.snapshot_id = s.id and e.crawl_id = s.crawl_id
    left join holdfast.process p on p.id = coalesce(q.owner_id, e.owner_id);
comment on view holdfast.v_snapshot is 'Snapshots, whole: what was asked, where it stands, how it ended.';
comment on column holdfast.v_snapshot.status is 'queued, started, paused or sealed.';
comment on column holdfast.v_snapshot.retry_at is 'Past: due. Future: scheduled, or owned until then. NULL: sealed. 9999-01-01: paused.';
comment on column holdfast.v_snapshot.fence is 'Attempt; its files are in <directory>, which ends in a<fence>.';
comment on column holdfast.v_snapshot.owner is 'The node that works on it, or sealed it.';

create or replace view holdfast.v_queue as
  select q.snapshot_id as id, q.crawl_id, s.url, q.status, q.retry_at,
         case when q.owner_id is not null then 'owned by ' || p.label
              when c.stopping_at is not null then 'about to be cancelled'
              when c.status = 'paused' then 'waits: its crawl is ' || coalesce(c.reason, 'paused')
              when a.paused_at is not null then 'waits: ' || coalesce(a.paused_by, 'everything is paused')
              when q.excluded then 'outside: ' || coalesce(q.reason, 'its crawl''s scope')
              when q.retry_at = holdfast.retry_at_max() then 'waits: ' || coalesce(q.reason, 'paused')
              when q.retry_at > statement_timestamp() then 'waits: ' || coalesce(q.reason, 'scheduled')
              when h.paused then 'waits: ' || coalesce(h.reason, 'its web site is paused')
              when h.backoff_until > statement_timestamp() then 'waits: ' || coalesce(h.reason, 'its web site asked for time')
              when h.next_at > statement_timestamp() then 'waits: its web site is left alone for ' || h.min_delay || ' between pages'
              else 'due' end as state,
         statement_timestamp() - q.retry_at as due_for, q.attempts, q.owners_lost, q.owner_id
    from holdfast.snapshot_queue q
    -- By its id alone, which says enough: of a join over two columns the planner expects next to nothing, and sorts the whole queue for its first rows.
    join holdfast.snapshot s on s.id = q.snapshot_id
    join holdfast.crawl c on c.id = q.crawl_id
    cross join holdfast.collection a
    left join holdfast.host h on h.name = q.host
    left join holdfast.process p on p.id = q.owner_id
    where q.status <> ''; -- always true: see snapshot_queue_by_time
comment on view holdfast.v_queue is 'Everything that is not sealed. Always use a limit on a large queue.';

create or replace view holdfast.v_running as
  select r.snapshot_id, r.crawl_id, s.url, r.plugin, r.hook_name, r.background, statement_timestamp() - r.started_at as running_for,
         r.timeout_ms * interval '1 millisecond' as timeout, p.label as node, r.pid, r.fence,
         n.since as no_progress_since
    from holdfast.archive_result r
    join holdfast.snapshot s on s.id = r.snapshot_id and s.crawl_id = r.crawl_id
    join holdfast.process p on p.id = r.process_id
    left join lateral holdfast.no_progress(p, r) n on true
    where r.ended_at is null;
comment on view holdfast.v_running is 'Hooks that run just now, and where.';

create or replace view holdfast.v_result as
  select r.snapshot_id, r.crawl_id, s.url, r.fence, r.plugin, r.hook_name, r.status, r.output, r.error, r.output_bytes,
         jsonb_array_length(r.output_files) as files, r.exit_code, r.exit_signal, r.wall_ms, r.user_ms + r.system_ms as cpu_ms, r.peak_memory_bytes,
         r.started_at, r.ended_at, r.output_files,
         (e.fence is null or e.fence = r.fence) as counts
    from holdfast.archive_result r
    join holdfast.snapshot s on s.id = r.snapshot_id and s.crawl_id = r.crawl_id
    left join holdfast.snapshot_sealed e on e.snapshot_id = r.snapshot_id and e.crawl_id = r.crawl_id;
comment on view holdfast.v_result is 'What each hook did. counts: false for attempts that were lost.';

create or replace view holdfast.v_failure as
  select r.ended_at, s.url, r.plugin, r.error, r.snapshot_id, r.crawl_id, r.hook_name, r.fence
    from holdfast.archive_result r
    join holdfast.snapshot s on s.id = r.snapshot_id and s.crawl_id = r.crawl_id
    where r.status = 'failed'
      and not exists (select from holdfast.attempt a where a.snapshot_id = r.snapshot_id and a.crawl_id = r.crawl_id and a.fence = r.fence
                        and a.ending in ('interrupted', 'cancelled'));
comment on view holdfast.v_failure is 'Hooks that failed, with the reason. Not those that were ended because somebody paused or cancelled, or a node left.';

create or replace view holdfast.v_node as
  select p.id, p.label, p.process_type, p.worker_type, m.hostname, p.pid, p.status, p.draining, p.slots,
         (select count(*) from holdfast.snapshot_queue q where q.owner_id = p.id) as held,
         p.beat_at, p.lease_until, p.lease_until - statement_timestamp() as lease_left, p.request, p.version, p.stats, p.started_at, p.ended_at,
         p.exit_code, p.exit_reason, p.revision, p.capabilities
    from holdfast.process p join holdfast.machine m on m.id = p.machine_id;
comment on view holdfast.v_node is 'Processes of Holdfast, running and past. held: snapshots it owns. revision: schema revision its program was made for.';

create or replace view holdfast.v_event as
  select e.at, e.lifecycle, o.object_id, e.crawl_id, e.from_state, e.event, e.to_state, p.label as process, e.detail, e.id
    from holdfast.event e cross join lateral unnest(coalesce(e.objects, array[e.object_id])) o(object_id) left join holdfast.process p on p.id = e.process_id;
comment on view holdfast.v_event is 'What happened, newest last when ordered by id. Of one snapshot: list_events(null, its id, 100), which need not read all.';

create or replace view holdfast.v_attempt as
  select a.snapshot_id, a.crawl_id, a.fence, a.process_id, a.claimed_at, a.started_at, a.ended_at, a.ending, a.reason
    from holdfast.attempt a where a.ending <> 'sealed' -- by revision 18 and before; the sealed row says it
  union all
  select e.snapshot_id, e.crawl_id, e.fence, e.owner_id, e.started_at, e.started_at, e.sealed_at, 'sealed', e.outcome
    from holdfast.snapshot_sealed e where e.outcome not in ('cancelled', 'quarantined');
comment on view holdfast.v_attempt is 'Every ownership of a snapshot that has ended, and how.';

create or replace view holdfast.v_host as
  select h.name, h.min_delay, h.max_parallel, h.next_at, h.backoff_until, h.backoff_level, h.paused, h.reason, h.updated_by, h.updated_at,
         (select count(*) from holdfast.snapshot_queue q where q.host = h.name and q.owner_id is not null and q.lane) as held
    from holdfast.host h;
comment on view holdfast.v_host is 'Web sites with limits of their own.';

create or replace function holdfast.check_invariants() returns table (invariant text, object_id uuid, detail text) language sql stable as $$
  -- Returns no row when all is well.
  select 'an owned snapshot has a live owner', q.snapshot_id, 'owner ' || q.owner_id || ' is ' || coalesce(p.status, 'gone')
    from holdfast.snapshot_queue q left join holdfast.process p on p.id = q.owner_id
    where q.owner_id is not null and p.status is distinct from 'running'
  union all
  select 'what is recorded of a snapshot belongs to one', r.snapshot_id, r.kind
    from (select snapshot_id, crawl_id, 'result' as kind from holdfast.archive_result
          union all select q.snapshot_id, q.crawl_id, 'queue' from holdfast.snapshot_queue q -- of a sealed crawl: told below
            where not exists (select from holdfast.crawl c where c.id = q.crawl_id and c.status = 'sealed')
          union all select snapshot_id, crawl_id, 'attempt' from holdfast.attempt
          union all select snapshot_id, crawl_id, 'sealed' from holdfast.snapshot_sealed) r
    where not exists (select from holdfast.snapshot s where s.id = r.snapshot_id and s.crawl_id = r.crawl_id)
  union all
  select 'a snapshot belongs to a crawl', s.id, 'crawl ' || s.crawl_id || ' is gone'
    from holdfast.snapshot s where not exists (select from holdfast.crawl c where c.id = s.crawl_id)
  union all
  select 'a seed belongs to a crawl', s.crawl_id, count(*) || ' seeds of a crawl that is gone'
    from holdfast.crawl_seed s where not exists (select from holdfast.crawl c where c.id = s.crawl_id) group by s.crawl_id
  union all
  select 'an owned crawl has a live owner', c.id, 'owner ' || c.owner_id || ' is ' || coalesce(p.status, 'gone')
    from holdfast.crawl c left join holdfast.process p on p.id = c.owner_id
    where c.owner_id is not null and p.status is distinct from 'running'
  union all
  select 'a running hook belongs to a held snapshot', r.snapshot_id, r.plugin || '/' || r.hook_name
    from holdfast.archive_result r
    where r.ended_at is null and not exists (select from holdfast.snapshot_queue q
      where q.snapshot_id = r.snapshot_id and q.crawl_id = r.crawl_id and q.fence = r.fence and q.owner_id is not null)
  union all
  select 'a snapshot is either open or sealed', s.id, case when q.snapshot_id is null then 'neither' else 'both' end
    from holdfast.snapshot s
    left join holdfast.snapshot_queue q on q.snapshot_id = s.id and q.crawl_id = s.crawl_id
    left join holdfast.snapshot_sealed e on e.snapshot_id = s.id and e.crawl_id = s.crawl_id
    where (q.snapshot_id is null) = (e.snapshot_id is null)
  union all
  select 'the page on which a URL was found is there', s.id, 'parent ' || s.parent_id || ' is gone'
    from holdfast.snapshot s
    where s.parent_id is not null and not exists (select from holdfast.snapshot u where u.id = s.parent_id and u.crawl_id = s.crawl_id)
  union all
  select 'a sealed crawl has nothing open', c.id, count(*) || ' open'
    from holdfast.crawl c join holdfast.snapshot_queue q on q.crawl_id = c.id where c.status = 'sealed' group by c.id
  union all
  select 'a started crawl has something open', c.id, 'nothing is'
    from holdfast.crawl c where c.status = 'started' and c.snapshots_open = 0 and c.seeds_left = 0
  union all
  select 'an open crawl is due, owned, parked or has open snapshots', c.id, c.status
    from holdfast.crawl c where c.status <> 'sealed' and c.retry_at is null and c.owner_id is null and c.snapshots_open = 0
  union all
  select 'counters equal counts', c.id,
         format('total %s/%s open %s/%s succeeded %s/%s partial %s/%s cancelled %s/%s', c.snapshots_total, n.total, c.snapshots_open, n.open,
                c.snapshots_succeeded, n.succeeded, c.snapshots_partial, n.partial, c.snapshots_cancelled, n.cancelled)
    from holdfast.crawl c
    cross join lateral (
      select count(*) as total, count(q.snapshot_id) as open, count(*) filter (where e.outcome = 'succeeded') as succeeded,
             count(*) filter (where e.outcome = 'partial') as partial, count(*) filter (where e.outcome = 'cancelled') as cancelled,
             coalesce(sum(e.bytes), 0) as bytes
        from holdfast.snapshot s
        left join holdfast.snapshot_queue q on q.snapshot_id = s.id and q.crawl_id = s.crawl_id
        left join holdfast.snapshot_sealed e on e.snapshot_id = s.id and e.crawl_id = s.crawl_id
        where s.crawl_id = c.id) n
    where (c.snapshots_total, c.snapshots_open, c.snapshots_succeeded, c.snapshots_partial, c.snapshots_cancelled, c.bytes)
          is distinct from (n.total, n.open, n.succeeded, n.partial, n.cancelled, n.bytes)
  union all
  select 'seeds left are counted', c.id, c.seeds_left || ' counted'
    from holdfast.crawl c where c.seeds_left <> (select count(*) from holdfast.crawl_seed s where s.crawl_id = c.id)
  union all
  select 'a due snapshot is in sight of claims', q.snapshot_id, 'its crawl is parked until ' || coalesce(cq.ready_at::text, 'woken')
    from holdfast.snapshot_queue q
    join holdfast.crawl c on c.id = q.crawl_id and c.status = 'started'
    left join holdfast.crawl_queue cq on cq.crawl_id = q.crawl_id
    where q.owner_id is null and q.status = 'queued' and q.retry_at <= statement_timestamp() and not q.lane
      and c.stopping_at is null and c.judged_to is null
      and (cq.ready_at is null or cq.ready_at > statement_timestamp() + case when cq.max_parallel is null then interval '0' else '1 second' end)
  union all
  select 'a due snapshot of a host with limits has a lane in sight', q.snapshot_id, q.host || coalesce(' is looked at ' || l.next_at, ' has none')
    from holdfast.snapshot_queue q
    join holdfast.crawl c on c.id = q.crawl_id and c.status = 'started' and c.stopping_at is null and c.judged_to is null
    left join holdfast.crawl_lane l on l.crawl_id = q.crawl_id and l.host = q.host
    left join holdfast.crawl_queue cq on cq.crawl_id = q.crawl_id
    left join holdfast.host h on h.name = q.host
    where q.owner_id is null and q.status = 'queued' and q.retry_at <= statement_timestamp() and q.lane and not coalesce(h.paused, false)
      and (coalesce(l.next_at, 'infinity') = 'infinity' or coalesce(cq.ready_at, 'infinity') > greatest(l.next_at, statement_timestamp()) + interval '1 second')
  union all
  select 'a crawl counts what its scope excludes', c.id, c.snapshots_excluded || ' counted'
    from holdfast.crawl c
    where c.snapshots_excluded <> (select count(*) from holdfast.snapshot_queue q where q.crawl_id = c.id and q.excluded)
  union all
  select 'a crawl in crawl_queue is started', q.crawl_id, c.status
    from holdfast.crawl_queue q join holdfast.crawl c on c.id = q.crawl_id
    where c.status <> 'started' or c.stopping_at is not null or c.judged_to is not null
  union all
  select 'a program that was found has been looked at, and will be again', b.id, b.name
    from holdfast.binary b where b.retry_at is null or b.status = 'installed' and b.checked_at is null
  union all
  select 'a live crawl session has a live node', s.id, 'node ' || s.process_id || ' is ' || p.status
    from holdfast.crawl_session s join holdfast.process p on p.id = s.process_id
    where s.ended_at is null and p.status <> 'running'
  union all
  select 'a hook that runs belongs to a live crawl session', s.id, h.plugin || '/' || h.hook_name
    from holdfast.crawl_session_hook h join holdfast.crawl_session s on s.id = h.session_id
    where h.ended_at is null and s.ended_at is not null
  union all
  select 'a webhook is told of what happened', c.id, d.event || ' ' || d.id
    from holdfast.delivery d join holdfast.crawl c on c.id = d.object_id where d.event = 'crawl.sealed' and c.status <> 'sealed'
  union all
  select 'what was sealed had an owner and was started', e.snapshot_id, e.outcome
    from holdfast.snapshot_sealed e where e.outcome not in ('cancelled', 'quarantined', 'refused') and (e.owner_id is null or e.started_at is null)
  union all
  select 'a page holds no more than its crawl allows', e.snapshot_id, format('%s bytes, max_snapshot_bytes is %s', n.bytes, c.max_snapshot_bytes)
    from holdfast.crawl c
    join holdfast.snapshot_sealed e on e.crawl_id = c.id and e.directory is not null
    cross join lateral (select sum(r.output_bytes) as bytes from holdfast.archive_result r
                          where r.snapshot_id = e.snapshot_id and r.crawl_id = e.crawl_id and r.fence = e.fence) n
    where c.max_snapshot_bytes > 0 and n.bytes > c.max_snapshot_bytes
  union all
  select 'one runner leads at a time', t.process_id, format('epoch %s began at %s, an earlier one was valid until %s', t.epoch, t.began_at, t.others_until)
    from (select r.*, max(r.valid_until) over (order by r.epoch rows between unbounded preceding and 1 preceding) as others_until from holdfast.runner_term r) t
    where t.others_until > t.began_at
  union all
  select 'the leader has the last epoch', p.id, 'it has ' || coalesce(p.epoch::text, 'none')
    from holdfast.process p
    where p.worker_type = 'worker_runner' and p.status = 'running' and p.epoch is distinct from (select max(epoch) from holdfast.runner_term)
  union all
  select 'no two duties overlap', d.process_id, format('%s began at %s, before an earlier one had ended at %s', d.duty, d.began_at, d.others_until)
    from (select r.*, max(r.ended_at) over (order by r.id rows between unbounded preceding and 1 preceding) as others_until from holdfast.duty_run r) d
    where d.others_until > d.began_at
  union all
  select 'a duty is done by the runner of its time', d.process_id, format('%s by epoch %s, after epoch %s', d.duty, d.epoch, d.before)
    from (select r.*, max(r.epoch) over (order by r.id rows between unbounded preceding and 1 preceding) as before from holdfast.duty_run r) d
    where d.before > d.epoch
$$;
comment on function holdfast.check_invariants() is 'Everything that must always hold; returns no row when all is well. Reads the whole collection: not for dashboards.';
