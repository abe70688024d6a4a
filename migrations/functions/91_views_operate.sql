-- First views for an operator. Names and columns are stable, as those of 90_views.sql.

create or replace function holdfast.stuck(p_each bigint)
  returns table (kind text, id uuid, name text, what text, since timestamptz, reason text, crawl_id uuid,
                 number bigint)
  language sql stable as $$
  -- Returns what has been due or running for much too long: of each problem the p_each oldest, and the
  -- number of all. A reason costs some milliseconds.
  with wait as materialized ( -- Without workers, waiting does not help.
    select case when w.runs then interval '2 minutes' else interval '10 seconds' end as most,
           case when w.runs then 'due, but no worker takes it' else 'no worker is running' end as what
      from (select exists (select
                             from holdfast.process p
                             where p.process_type = 'worker' and p.status = 'running'
                               and p.lease_until > statement_timestamp()) as runs) w
  ), late as (
    -- Crawls with due snapshots that no worker works on, each with the snapshot that has waited longest.
    (select 'snapshot' as kind, n.snapshot_id as id, w.crawl_id, n.due_at as since,
            (select what from wait) as what
       from (select q.crawl_id
               from holdfast.crawl_queue q
               where q.ready_at <= statement_timestamp()
               order by q.ready_at limit 30) w
       cross join lateral holdfast.crawl_next(w.crawl_id) n
       where n.due_at < statement_timestamp() - (select most from wait)
         and not exists (select
                           from holdfast.process p
                           join holdfast.snapshot_queue h on h.owner_id = p.id
                           where p.status = 'running' and h.crawl_id = w.crawl_id))
    union all
    (select 'crawl', w.crawl_id, w.crawl_id, w.ready_at, 'no running worker can take it' -- waiting does not help
       from (select q.crawl_id, q.ready_at, q.plugins, q.persona
               from holdfast.crawl_queue q
               where q.ready_at <= statement_timestamp()
               order by q.ready_at limit 30) w
       where (select bool_and(not holdfast.can_run(p.capabilities, w.plugins)
                              or holdfast.persona_lacks(w.persona, p.capabilities) is not null)
                from holdfast.process p
                where p.process_type = 'worker' and p.status = 'running'
                  and p.lease_until > statement_timestamp()))
    union all
    (select 'crawl', c.id, c.id, c.retry_at, (select what from wait)
       from holdfast.crawl c
       where c.owner_id is null and c.retry_at < statement_timestamp() - (select most from wait)
         and c.status in ('queued', 'started')
       order by c.retry_at limit 100)
    union all
    (select 'snapshot', r.snapshot_id, r.crawl_id, r.started_at,
            'hook ' || r.plugin || '/' || r.hook_name || ' is past its timeout'
       from holdfast.v_running r
       where not r.background and r.running_for > r.timeout + interval '1 minute'
       limit 100)
    union all
    (select 'snapshot', q.snapshot_id, q.crawl_id, q.claimed_at, 'running for very long'
       from holdfast.snapshot_queue q
       where q.owner_id is not null and q.claimed_at < statement_timestamp() - interval '1 hour'
       order by q.claimed_at limit 100)
    union all
    (select 'process', p.id, null, p.heartbeat_at,
            case holdfast.process_state(p) when 'lapsed' then 'its lease has expired' else 'sends no heartbeats' end
       from holdfast.process p
       where p.status = 'running' and holdfast.process_state(p) in ('lapsed', 'no heartbeat')
       limit 100)
    union all
    (select 'process', p.id, null, p.heartbeat_at, 'claims nothing'
       from holdfast.process p
       where p.process_type = 'worker' and p.status = 'running' and p.lease_until > statement_timestamp()
         and num_nonnulls(p.request, p.paused_at) = 0 and not p.draining
         and p.stats ->> 'not_claiming' <> ''
       limit 100)
    union all
    (select 'crawl', s.crawl_id, s.crawl_id, s.opened_at, 'its crawl hooks do not get ready'
       from holdfast.session s
       where s.status = 'opening' and s.opened_at < statement_timestamp() - interval '5 minutes'
       limit 100)
    union all
    -- For due times left by a clock that was set back, until the task "clock" has corrected them.
    (select 'snapshot', q.snapshot_id, q.crawl_id, statement_timestamp(),
            'its due time lies further ahead than a delay can be: the clock has gone back'
       from holdfast.snapshot_queue q
       where q.status <> ''
         and q.owner_id is null
         and q.retry_at < holdfast.retry_at_max()
         and q.retry_at > statement_timestamp() + (select c.retry_max from holdfast.collection c)
         and q.retry_at > holdfast.page_due_latest(q.snapshot_id, q.crawl_id, q.host)
       limit 100)
    union all
    (select 'crawl', q.crawl_id, q.crawl_id, statement_timestamp(),
            'no claim looks at it for more than a minute: the clock has gone back'
       from holdfast.crawl_queue q
       where q.ready_at > statement_timestamp() + interval '2 minutes'
       limit 100)
    union all
    (select 'runner', null, null, min(p.started_at), 'no runner leads'
       from holdfast.process p
       where p.status = 'running' and p.process_type = 'worker' and p.lease_until > statement_timestamp()
         and not exists (select
                           from holdfast.process r
                           where r.worker_type = 'worker_runner' and r.status = 'running')
         and (select coalesce(max(d.last_run_at), '-infinity') from holdfast.maintenance_task d)
             < statement_timestamp() - interval '15 minutes'
       having min(p.started_at) < statement_timestamp() - interval '15 minutes')
  )
  select l.kind, l.id, coalesce(sn.url, c.first_url, p.label, 'the runner'), l.what, l.since,
         case l.kind when 'runner' then
                       'No runner leads: schedules, retention and maintenance wait.'
                       || ' Start one with holdfast runner, or holdfast run --daemon.'
                     else w.reason end, l.crawl_id, l.number
    from (select a.*, count(*) over (partition by a.what) as number,
                 row_number() over (partition by a.what order by a.since) as place
            from late a) l
    left join holdfast.snapshot sn on l.kind = 'snapshot' and sn.id = l.id and sn.crawl_id = l.crawl_id
    left join holdfast.crawl c on l.kind = 'crawl' and c.id = l.id
    left join holdfast.process p on l.kind = 'process' and p.id = l.id
    cross join lateral holdfast.why_of(l.kind, l.id, l.crawl_id) w
    where l.place <= p_each
  union all
  select d.kind, null, 'the database', d.says, d.since, d.way_out || '.', null, 1
    from (select * from holdfast.database_waits()
          union all
          select * from holdfast.failing_calls()) d
  union all
  select 'archive', null, 'the archive', 'exceeds archive.max_bytes', a.since, a.reason, null, 1
    from holdfast.archive_full() a
    order by since
$$;
comment on function holdfast.stuck is
  'Returns what has been due or running for much too long: the oldest of each problem, and their number.';

create or replace view holdfast.v_stuck as
  select s.kind, s.id, s.name, s.what, s.since, statement_timestamp() - s.since as stuck_for, s.reason,
         s.crawl_id, s.number
    from holdfast.stuck(20) s
    order by s.since;
comment on view holdfast.v_stuck is
  'Objects that have been due or running for much too long, with the reason: the oldest of each problem.';
comment on column holdfast.v_stuck.kind is
  'crawl, snapshot, process or runner; at the database: lock, standby, notifications, read-only, connections; call '
  'for a call that fails in workers, login for a login that cannot work, restored if restored() was not called; '
  'archive if it exceeds archive.max_bytes.';
comment on column holdfast.v_stuck.id is 'Id of the object.';
comment on column holdfast.v_stuck.name is 'URL, or name of the process.';
comment on column holdfast.v_stuck.what is 'Problem of the object.';
comment on column holdfast.v_stuck.since is 'Start of the problem.';
comment on column holdfast.v_stuck.stuck_for is 'Duration of the problem.';
comment on column holdfast.v_stuck.reason is 'See holdfast.why(); at the database: the way out.';
comment on column holdfast.v_stuck.crawl_id is 'Crawl to which the object belongs.';
comment on column holdfast.v_stuck.number is 'Number of objects with this problem; the view has the 20 oldest.';

create or replace view holdfast.v_process as
  -- Ids are in the order of time; '3' puts processes after the hooks of their parent.
  -- A runner that rejoins has another id, but is the same process of its system.
  with recursive child as materialized (
    select p.id, n.id as parent
      from holdfast.process p
      join holdfast.process o on o.id = p.parent_id
      cross join lateral (
        select x.id
          from holdfast.process x
          where (x.machine_id, x.boot_id, x.pid, x.start_ticks, x.process_type)
                = (o.machine_id, o.boot_id, o.pid, o.start_ticks, o.process_type)
            and x.status = 'running' and x.id <> p.id
          order by x.id = o.id desc, x.started_at desc limit 1) n
      where p.status = 'running'
  ), tree as (
    select p as process, m.hostname, array[m.hostname, p.id::text] as path, 0 as depth
      from holdfast.process p
      join holdfast.machine m on m.id = p.machine_id
      where p.status = 'running'
        and not exists (select from child c where c.id = p.id)
    union all
    select p, t.hostname, t.path || array['3', p.id::text], t.depth + 1
      from tree t
      join child c on c.parent = (t.process).id
      join holdfast.process p on p.id = c.id
      where t.depth < 8
  ), line as (
    select t.path, t.depth, coalesce(nullif(p.label, ''), p.process_type) as name,
           holdfast.process_state(p) as state, t.hostname, p.pid, statement_timestamp() - p.started_at as age,
           p.lease_until - statement_timestamp() as lease_left, p.id as process_id,
           null::uuid as snapshot_id, null::uuid as crawl_id
      from tree t
      cross join lateral (select (t.process).*) p
    union all
    select t.path || array['1', h.hook_name], t.depth + 1,
           h.plugin || '/' || h.hook_name || ' for all of crawl ' || right(s.crawl_id::text, 8), 'crawl hook',
           t.hostname, h.pid, statement_timestamp() - h.started_at, null, s.process_id, null, s.crawl_id
      from tree t
      join holdfast.session s on s.process_id = (t.process).id and s.ended_at is null
      join holdfast.session_hook h on h.session_id = s.id and h.ended_at is null
    union all
    select t.path || array['2', r.snapshot_id::text, r.started_at::text], t.depth + 1,
           r.plugin || '/' || r.hook_name || ' on ' || r.url,
           case when r.background then 'background' else 'hook' end, t.hostname, r.pid, r.running_for, null,
           r.process_id, r.snapshot_id, r.crawl_id
      from tree t
      join holdfast.v_running r on r.process_id = (t.process).id
  )
  select repeat('   ', l.depth) || l.name as tree, l.state, l.hostname, l.pid, l.age, l.lease_left,
         l.process_id, l.snapshot_id, l.crawl_id
    from line l
    order by l.path;
comment on view holdfast.v_process is
  'Running processes as a tree: the processes of each machine, below the one that started them, and the hooks of '
  'each worker.';
comment on column holdfast.v_process.tree is 'Name, indented below its parent.';
comment on column holdfast.v_process.state is
  'State of the process, see process_state(); for hooks: hook, background or crawl hook.';
comment on column holdfast.v_process.pid is 'Process id on the machine.';
comment on column holdfast.v_process.age is 'Duration so far.';
comment on column holdfast.v_process.lease_left is 'Time until the lease expires without another heartbeat.';
comment on column holdfast.v_process.snapshot_id is 'Snapshot of a hook.';
comment on column holdfast.v_process.process_id is 'Worker or runner; for a hook, the worker that runs it.';

create or replace view holdfast.v_throughput as
  select date_trunc('minute', e.sealed_at) as minute, count(*) as sealed,
         count(*) filter (where e.outcome = 'succeeded') as succeeded,
         count(*) filter (where e.outcome = 'partial') as partial,
         count(*) filter (where e.outcome not in ('succeeded', 'partial')) as failed,
         coalesce(sum(e.bytes), 0) as bytes
    from holdfast.snapshot_sealed e
    where e.sealed_at > statement_timestamp() - interval '15 minutes'
    group by 1
    order by 1 desc;
comment on view holdfast.v_throughput is 'Snapshots sealed in each of the last fifteen minutes.';
comment on column holdfast.v_throughput.minute is 'The minute.';
comment on column holdfast.v_throughput.sealed is 'Snapshots sealed in this minute.';
comment on column holdfast.v_throughput.succeeded is 'Sealed snapshots with the outcome succeeded.';
comment on column holdfast.v_throughput.partial is 'With outcome partial.';
comment on column holdfast.v_throughput.failed is 'With any other outcome.';
