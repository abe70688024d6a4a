-- Numbers for Prometheus: one row a sample. Families whose name ends in _total are counters, others gauges.

create or replace function holdfast.queue_samples()
  returns table (name text, help text, labels jsonb, value double precision) language sql stable as $$
  -- Counts open work, and how long due work has waited.
  with due(kind, at) as (
    select 'crawl', min(c.retry_at)
      from holdfast.crawl c
      where c.owner_id is null and c.status in ('queued', 'started')
    union all
    select 'snapshot', min(n.due_at)
      from (select q.crawl_id
              from holdfast.crawl_queue q
              where q.ready_at <= statement_timestamp()
              order by q.ready_at limit 200) w
      cross join lateral holdfast.crawl_next(w.crawl_id) n
    union all
    select 'delivery', min(d.retry_at)
      from holdfast.webhook w
      cross join lateral (select o.retry_at
                            from holdfast.delivery o
                            where o.webhook = w.name and o.status = 'waiting'
                            order by o.retry_at limit 1) d
      where w.enabled
  ), open as (
    select count(*) as crawls, count(*) filter (where c.status = 'queued') as queued,
           count(*) filter (where c.status = 'started') as started,
           count(*) filter (where c.status = 'paused') as paused,
           coalesce(sum(c.snapshots_open), 0) as snapshots, coalesce(sum(c.seeds_left), 0) as seeds
      from holdfast.crawl c
      where c.status <> 'sealed'
  )
  select 'crawls', 'Open crawls by state.', jsonb_build_object('state', v.state), v.value
    from open o
    cross join lateral (values ('queued', o.queued), ('started', o.started), ('paused', o.paused))
      v(state, value)
  union all
  select 'queue_depth', 'What is not done yet, by kind.', jsonb_build_object('kind', v.kind),
         coalesce(v.value, 0)
    from open o
    cross join lateral (values
      ('crawl', o.crawls), ('snapshot', o.snapshots), ('seed', o.seeds),
      ('delivery', (select sum(w.waiting) from holdfast.v_webhook w))) v(kind, value)
  union all
  select 'queue_age_seconds', 'How long the oldest thing that is due has been due, by kind.',
         jsonb_build_object('kind', d.kind), greatest(extract(epoch from statement_timestamp() - d.at), 0)
    from due d
$$;

create or replace function holdfast.work_samples()
  returns table (name text, help text, labels jsonb, value double precision) language sql stable as $$
  -- Counts processes, and the outcomes of their work.
  select v.name, v.help, '{}'::jsonb, v.value
    from holdfast.v_status s
    cross join lateral (values
      ('workers', 'Workers with a valid lease.', s.workers),
      ('slots', 'Snapshots that these workers can work on at once.', s.slots),
      ('snapshots_held', 'Snapshots that workers have.', s.snapshots_held),
      ('hooks_running', 'Hooks that run now.', s.hooks_running),
      ('runner_leads', 'Whether a runner with a valid lease leads.', s.runners)) v(name, help, value)
  union all
  select 'deliveries_total', 'Deliveries to webhooks that have ended, by outcome.',
         jsonb_build_object('webhook', w.name, 'outcome', o.outcome), o.value
    from holdfast.webhook w
    cross join lateral (values ('delivered', w.delivered), ('given_up', w.given_up)) o(outcome, value)
  union all
  select t.name || '_total',
         case t.name when 'workers_lapsed' then 'Workers and runners whose lease has lapsed.'
                     else 'Snapshots that were taken over from lapsed workers.' end, '{}', t.value
    from holdfast.tally t
    where t.name not like 'bytes\_saved/%'
  union all
  select 'bytes_saved_total', 'Bytes of WARC records that revisit records did not repeat.', '{}', v.bytes_saved
    from holdfast.v_status v
  union all
  select v.name, v.help, jsonb_build_object('task', d.name), v.value
    from holdfast.maintenance_task d
    cross join lateral (values
      ('maintenance_runs_total', 'Runs of a task.', d.runs),
      ('maintenance_failing', 'Whether the last run of a task failed.', (d.error is not null)::integer))
      v(name, help, value)
  union all
  select 'recent_snapshots', 'Snapshots sealed in the last minute, by outcome.',
         jsonb_build_object('outcome', o.outcome), count(e.snapshot_id)
    from unnest('{succeeded,partial,failed,refused,quarantined,cancelled}'::text[]) o(outcome)
    left join holdfast.snapshot_sealed e
      on e.outcome = o.outcome and e.sealed_at > statement_timestamp() - interval '1 minute'
    group by o.outcome
  union all
  select 'recent_responses', 'Pages sealed in the last minute, by class of their HTTP status.',
         jsonb_build_object('class', c.class || 'xx'), count(e.snapshot_id)
    from unnest('{2,3,4,5}'::integer[]) c(class)
    left join holdfast.snapshot_sealed e
      on holdfast.fact_integer(e.facts, 'http_status') / 100 = c.class and e.sealed_at > statement_timestamp() - interval '1 minute'
    group by c.class
  union all
  select 'lock_waits', 'Sessions that wait for a lock of another session of the database.', '{}', sum(b.blocked)
    from holdfast.database_waits() b
    where b.kind = 'lock'
    having sum(b.blocked) > 0
  union all
  select 'hosts_held_back', 'Hosts that are paused or in back-off.', '{}', count(*)
    from holdfast.host h
    where h.paused or h.backoff_until > statement_timestamp()
$$;

create or replace function holdfast.metrics()
  returns table (name text, type text, help text, labels jsonb, value double precision)
  language sql stable as $$
  select 'holdfast_' || s.name, case when s.name like '%\_total' then 'counter' else 'gauge' end, s.help,
         s.labels, s.value
    from (select * from holdfast.queue_samples()
          union all
          select * from holdfast.work_samples()) s
$$;
comment on function holdfast.metrics is 'Numbers of the whole collection for Prometheus: one row a sample.';

create or replace function holdfast.worker_metrics(p_hostname text, p_pid integer)
  returns table (name text, type text, help text, labels jsonb, value double precision)
  language sql stable as $$
  with me as (
    select p.*, (select count(*) from holdfast.snapshot_queue q where q.owner_id = p.id) as held
      from holdfast.process p
      join holdfast.machine m on m.id = p.machine_id
      where p.status = 'running' and p.process_type = 'worker' and p.lease_until > statement_timestamp()
        and p.pid = p_pid and m.hostname = p_hostname
      order by p.started_at desc limit 1)
  select v.name, case when v.name like '%\_total' then 'counter' else 'gauge' end, v.help, v.labels, v.value
    from me
    cross join lateral (
      values
        ('holdfast_worker_lease_left_seconds', 'How long its lease lasts without another heartbeat.', '{}'::jsonb,
         extract(epoch from me.lease_until - statement_timestamp())),
        ('holdfast_worker_heartbeat_age_seconds', 'How long ago it last renewed its lease.', '{}',
         extract(epoch from statement_timestamp() - me.heartbeat_at)),
        ('holdfast_worker_slots', 'Snapshots it can work on at once.', '{}', me.slots),
        ('holdfast_worker_snapshots_held', 'Snapshots it has.', '{}', me.held),
        ('holdfast_worker_snapshots_sealed_total', 'Snapshots it has sealed since it joined.', '{}',
         coalesce((me.stats ->> 'sealed')::numeric, 0)),
        ('holdfast_worker_free_bytes', 'Space left in its work directory.', '{}',
         (me.stats ->> 'free_bytes')::numeric),
        ('holdfast_worker_claiming',
         'Whether it claims: 0 when it drains, is paused, or says why it does not.', '{}',
         (not me.draining
            and num_nonnulls(me.request, me.paused_at, me.stats ->> 'not_claiming') = 0)::integer)
      union all
      select 'holdfast_worker_hooks_running', 'Hooks that it runs, by plugin.',
             jsonb_build_object('plugin', r.plugin), count(*)
        from holdfast.v_running r
        where r.process_id = me.id
        group by r.plugin) v(name, help, labels, value)
    where v.value is not null
$$;
comment on function holdfast.worker_metrics is
  'Numbers of one worker for Prometheus, one row a sample; no row: no worker with this pid runs on that '
  'machine.';
