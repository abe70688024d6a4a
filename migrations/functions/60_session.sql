-- Crawl sessions: the crawl hooks (a browser and its helpers) that one worker keeps running for one crawl.

create or replace function holdfast.session_open(
    p_worker uuid, p_session uuid, p_crawl uuid, p_directory text)
  returns void language plpgsql as $$
-- Called before the first hook starts. May be repeated.
begin
  perform holdfast.mine(p_worker);
  -- The worker's row first: the foreign keys would lock it after the crawl's.
  perform from holdfast.process where id = p_worker and status = 'running' for key share;
  if not found then raise exception 'worker % has lapsed', p_worker using errcode = 'HF002'; end if;
  insert into holdfast.session (id, crawl_id, process_id, directory)
    values (p_session, p_crawl, p_worker, p_directory)
    on conflict (id) do nothing;
end $$;
comment on function holdfast.session_open is 'Opens a session of a worker for a crawl.';

create or replace function holdfast.session_set(p_session uuid, p_status text, p_reason text, p_hooks jsonb)
  returns void language plpgsql as $$
-- p_hooks: [{plugin, hook_name, status, ...}], keys as the columns of session_hook. May be repeated. A
-- session that has ended (its worker lapsed) stays as it is.
declare
  v_now constant timestamptz := clock_timestamp();
  v_worker uuid;
begin
  select process_id into v_worker from holdfast.session where id = p_session and ended_at is null for update;
  if not found then return; end if;
  perform holdfast.mine(v_worker);
  insert into holdfast.session_hook as k (
      session_id, plugin, hook_name, status, background, pid, ended_at, output, error,
      exit_code, exit_signal, wall_ms, user_ms, system_ms, peak_memory_bytes, read_bytes, written_bytes, log,
      started_with)
    select p_session, h.plugin, h.hook_name, h.status, coalesce(h.background, false), h.pid,
           case when h.status <> 'started' then v_now end, coalesce(h.output, ''), coalesce(h.error, ''),
           h.exit_code, h.exit_signal, h.wall_ms, h.user_ms, h.system_ms, h.peak_memory_bytes, h.read_bytes,
           h.written_bytes, coalesce(h.log, ''), h.started_with
      from jsonb_populate_recordset(null::holdfast.session_hook, p_hooks) h
    on conflict (session_id, plugin, hook_name) do update
      set (status, ended_at, output, error, exit_code, exit_signal, wall_ms, user_ms, system_ms,
           peak_memory_bytes, read_bytes, written_bytes, log)
        = (excluded.status, excluded.ended_at, excluded.output, excluded.error, excluded.exit_code,
           excluded.exit_signal, excluded.wall_ms, excluded.user_ms, excluded.system_ms,
           excluded.peak_memory_bytes, excluded.read_bytes, excluded.written_bytes, excluded.log)
      where k.ended_at is null;
  update holdfast.session s
    set status = p_status,
        reason = coalesce(p_reason, s.reason),
        event = case p_status
                  when 'ready' then 'open'
                  when 'draining' then 'drain'
                  when 'failed' then 'fail'
                  else 'close'
                end,
        ready_at = case when p_status = 'ready' then v_now else s.ready_at end,
        draining_at = case when p_status = 'draining' then v_now else s.draining_at end,
        ended_at = case when p_status in ('closed', 'failed') then v_now end
    where s.id = p_session and s.status <> p_status;
end $$;
comment on function holdfast.session_set is 'Moves a session to a state and stores its hooks.';

create or replace function holdfast.session_lapse(p_worker uuid, p_reason text)
  returns void language sql as $$
  -- Closes the open sessions of a worker that leaves or lapses: their hooks ran in its process tree and end
  -- with it.
  update holdfast.session_hook h
    set status = 'failed', ended_at = clock_timestamp(), error = p_reason
    from holdfast.session s
    where s.process_id = p_worker
      and s.ended_at is null
      and h.session_id = s.id
      and h.ended_at is null;
  update holdfast.session
    set status = 'closed', event = 'lapse', ended_at = clock_timestamp(), reason = p_reason
    where process_id = p_worker and ended_at is null
$$;

create or replace view holdfast.v_session as
  select s.id, s.crawl_id, c.first_url, s.status, p.label as worker, m.hostname, s.directory,
         s.opened_at, s.ready_at, s.ended_at,
         coalesce(s.ended_at, statement_timestamp()) - s.opened_at as age, s.reason,
         (select count(*)
            from holdfast.snapshot_queue q
            where q.owner_id = s.process_id and q.crawl_id = s.crawl_id) as snapshots,
         (select string_agg(h.plugin || '/' || h.hook_name || coalesce(' pid ' || h.pid, ''), ', '
                            order by h.hook_name)
            from holdfast.session_hook h
            where h.session_id = s.id and h.ended_at is null) as running,
         s.process_id
    from holdfast.session s
    join holdfast.crawl c on c.id = s.crawl_id
    join holdfast.process p on p.id = s.process_id
    join holdfast.machine m on m.id = p.machine_id;
comment on view holdfast.v_session is 'Crawl sessions: which worker has a browser open for which crawl.';
comment on column holdfast.v_session.id is 'The session.';
comment on column holdfast.v_session.crawl_id is 'The crawl.';
comment on column holdfast.v_session.worker is 'The worker.';
comment on column holdfast.v_session.ended_at is 'End of the session; NULL: open.';
comment on column holdfast.v_session.age is 'Duration of the session so far, or in total.';
comment on column holdfast.v_session.snapshots is 'Snapshots of the crawl that the worker holds.';
comment on column holdfast.v_session.running is 'Crawl hooks that are running.';

create or replace view holdfast.v_session_log as
  select s.crawl_id, s.id as session_id, h.plugin, h.hook_name, h.status, h.error, h.log, h.ended_at,
         p.label as worker, h.started_with
    from holdfast.session_hook h
    join holdfast.session s on s.id = h.session_id
    join holdfast.process p on p.id = s.process_id
    where h.log <> '';
comment on view holdfast.v_session_log is 'Output of crawl hooks that failed.';
comment on column holdfast.v_session_log.worker is 'Worker of the session.';

create or replace function holdfast.hook_cost(p_crawl uuid)
  returns table (
    plugin text, hostname text, runs bigint, failed bigint,
    wall_ms_median bigint, wall_ms_p95 bigint, wall_ms_max bigint,
    cpu_ms_median bigint, cpu_ms_p95 bigint, cpu_ms_max bigint, cpu_ms_total numeric,
    peak_memory_median bigint, peak_memory_max bigint, io_bytes_total numeric, output_bytes_total numeric)
  language sql stable as $$
  -- Reads the latest 10,000 results of a crawl, or (NULL) of all; ids are in the order of time.
  with result as (
    (select *
       from holdfast.archive_result r
       where p_crawl is null
       order by r.snapshot_id desc
       limit 10000)
    union all
    (select r.*
       from (select s.id, s.crawl_id
               from holdfast.snapshot s
               where s.crawl_id = p_crawl
               order by s.id desc
               limit 10000) s
       join holdfast.archive_result r on r.snapshot_id = s.id and r.crawl_id = s.crawl_id
       limit 10000)
  ), hook as (
    select process_id, plugin, status, wall_ms, user_ms + system_ms as cpu_ms, peak_memory_bytes,
           read_bytes + written_bytes as io_bytes, output_bytes
      from result
    union all
    select s.process_id, h.plugin, h.status, h.wall_ms, h.user_ms + h.system_ms, h.peak_memory_bytes,
           h.read_bytes + h.written_bytes, 0
      from (select * from holdfast.session_hook order by session_id desc limit 10000) h
      join holdfast.session s on s.id = h.session_id and (p_crawl is null or s.crawl_id = p_crawl)
  )
  select h.plugin, m.hostname, count(*), count(*) filter (where h.status = 'failed'),
         percentile_disc(0.5) within group (order by h.wall_ms),
         percentile_disc(0.95) within group (order by h.wall_ms),
         max(h.wall_ms),
         percentile_disc(0.5) within group (order by h.cpu_ms),
         percentile_disc(0.95) within group (order by h.cpu_ms),
         max(h.cpu_ms),
         sum(h.cpu_ms),
         percentile_disc(0.5) within group (order by h.peak_memory_bytes),
         max(h.peak_memory_bytes),
         sum(h.io_bytes),
         sum(h.output_bytes)
    from hook h
    join holdfast.process p on p.id = h.process_id
    join holdfast.machine m on m.id = p.machine_id
    where h.status <> 'started' and h.wall_ms is not null
    group by h.plugin, m.hostname
$$;
comment on function holdfast.hook_cost is 'Returns the cost of each plugin on each machine, for one crawl.';

create or replace view holdfast.v_hook_cost as select * from holdfast.hook_cost(null);
comment on view holdfast.v_hook_cost is
  'Cost of each plugin on each machine, by the latest 10,000 results and as many crawl hooks. "order by cpu_ms_total '
  'desc" shows the most expensive first.';
comment on column holdfast.v_hook_cost.plugin is 'The plugin.';
comment on column holdfast.v_hook_cost.hostname is 'The machine.';
comment on column holdfast.v_hook_cost.runs is 'Results counted.';
comment on column holdfast.v_hook_cost.failed is 'Results that failed.';
comment on column holdfast.v_hook_cost.wall_ms_median is
  'Time a run took, in milliseconds: half took no longer.';
comment on column holdfast.v_hook_cost.wall_ms_p95 is 'Time that 95 of 100 runs did not exceed.';
comment on column holdfast.v_hook_cost.wall_ms_max is 'The longest time.';
comment on column holdfast.v_hook_cost.cpu_ms_median is
  'CPU time of a run, in milliseconds: half took no more.';
comment on column holdfast.v_hook_cost.cpu_ms_p95 is 'CPU time that 95 of 100 runs did not exceed.';
comment on column holdfast.v_hook_cost.cpu_ms_max is 'The most CPU time.';
comment on column holdfast.v_hook_cost.cpu_ms_total is 'CPU time of all these runs.';
comment on column holdfast.v_hook_cost.peak_memory_median is
  'Largest process of a run, in bytes: half were no larger.';
comment on column holdfast.v_hook_cost.peak_memory_max is 'Largest process of all runs.';
comment on column holdfast.v_hook_cost.io_bytes_total is 'Bytes read from and written to storage.';
comment on column holdfast.v_hook_cost.output_bytes_total is 'Bytes of the files they left.';
