-- Crawl sessions. Written by the node that has them; ended by whoever gives that node up.

create or replace function holdfast.crawl_session_open(p_node uuid, p_session uuid, p_crawl uuid, p_directory text) returns void
  language plpgsql as $$
-- The first hook of a session is about to start. May be repeated.
begin
  -- The node's row first, as everywhere: the keys would lock it after the crawl's.
  perform from holdfast.process where id = p_node and status = 'running' for key share;
  if not found then
    raise exception 'node % has been given up: its lease lapsed', p_node using errcode = 'HF002';
  end if;
  insert into holdfast.crawl_session (id, crawl_id, process_id, directory) values (p_session, p_crawl, p_node, p_directory)
    on conflict (id) do nothing;
end $$;
comment on function holdfast.crawl_session_open(uuid, uuid, uuid, text) is 'A node opens a session for a crawl.';

create or replace function holdfast.crawl_session_set(p_session uuid, p_status text, p_reason text, p_hooks jsonb) returns void
  language plpgsql as $$
-- Where the session stands, and its hooks: [{plugin, hook_name, status, ...}], keys as the columns of crawl_session_hook. May be
-- repeated. A session that somebody else has ended (its node was given up) stays as it is.
declare
  v_now constant timestamptz := clock_timestamp();
begin
  perform from holdfast.crawl_session where id = p_session and ended_at is null for update;
  if not found then return; end if;
  insert into holdfast.crawl_session_hook as k (session_id, plugin, hook_name, status, background, pid, ended_at, output, error,
      exit_code, exit_signal, wall_ms, user_ms, system_ms, peak_memory_bytes, read_bytes, written_bytes, log)
    select p_session, h.plugin, h.hook_name, h.status, coalesce(h.background, false), h.pid,
           case when h.status <> 'started' then v_now end, coalesce(h.output, ''), coalesce(h.error, ''),
           h.exit_code, h.exit_signal, h.wall_ms, h.user_ms, h.system_ms, h.peak_memory_bytes, h.read_bytes, h.written_bytes, coalesce(h.log, '')
      from jsonb_to_recordset(p_hooks) as h(plugin text, hook_name text, status text, background boolean, pid integer,
        output text, error text, exit_code integer, exit_signal integer, wall_ms bigint, user_ms bigint, system_ms bigint,
        peak_memory_bytes bigint, read_bytes bigint, written_bytes bigint, log text)
    on conflict (session_id, plugin, hook_name) do update set status = excluded.status, ended_at = excluded.ended_at,
      output = excluded.output, error = excluded.error, exit_code = excluded.exit_code, exit_signal = excluded.exit_signal,
      wall_ms = excluded.wall_ms, user_ms = excluded.user_ms, system_ms = excluded.system_ms,
      peak_memory_bytes = excluded.peak_memory_bytes, read_bytes = excluded.read_bytes, written_bytes = excluded.written_bytes, log = excluded.log
      where k.ended_at is null;
  perform set_config('holdfast.event', case p_status when 'ready' then 'open' when 'draining' then 'drain' when 'failed' then 'fail'
    else 'close' end, true);
  update holdfast.crawl_session s set status = p_status, reason = coalesce(p_reason, s.reason),
      ready_at = case when p_status = 'ready' then v_now else s.ready_at end,
      draining_at = case when p_status = 'draining' then v_now else s.draining_at end,
      ended_at = case when p_status in ('closed', 'failed') then v_now end
    where s.id = p_session and s.status <> p_status;
end $$;
comment on function holdfast.crawl_session_set(uuid, text, text, jsonb) is 'Moves a session and writes down its hooks.';

create or replace function holdfast.crawl_session_lapse(p_node uuid, p_reason text) returns integer language plpgsql as $$
-- The node is gone or goes: whatever it still had open ran in its process tree, which does not outlive it.
declare
  v_count integer;
begin
  update holdfast.crawl_session_hook h set status = 'failed', ended_at = clock_timestamp(), error = p_reason
    from holdfast.crawl_session s
    where s.process_id = p_node and s.ended_at is null and h.session_id = s.id and h.ended_at is null;
  perform set_config('holdfast.event', 'lapse', true);
  update holdfast.crawl_session set status = 'closed', ended_at = clock_timestamp(), reason = p_reason
    where process_id = p_node and ended_at is null;
  get diagnostics v_count = row_count;
  return v_count;
end $$;
comment on function holdfast.crawl_session_lapse(uuid, text) is 'Closes the sessions of a node that is given up.';

create or replace function holdfast.snapshot_claim_open(p_node uuid, p_room integer, p_open uuid[])
  returns table (snapshot_id uuid, crawl_id uuid, fence bigint, url text, host text, depth integer, title text, tags text[],
                 created_at timestamptz, attempts integer, owners_lost integer, plugins text[], options jsonb, persona text, max_depth integer)
  language plpgsql as $$
-- As snapshot_claim, of the crawls named alone, for programs older than revision 17.
begin
  perform set_config('holdfast.claim_only_near', 'on', true);
  return query select * from holdfast.snapshot_claim(p_node, p_room, p_open);
  perform set_config('holdfast.claim_only_near', 'off', true);
end $$;
comment on function holdfast.snapshot_claim_open(uuid, integer, uuid[]) is 'Takes due snapshots of crawls that the node has open.';

create or replace view holdfast.v_session as
  select s.id, s.crawl_id, c.first_url, s.status, p.label as node, m.hostname, s.directory, s.opened_at, s.ready_at, s.ended_at,
         coalesce(s.ended_at, statement_timestamp()) - s.opened_at as age, s.reason,
         (select count(*) from holdfast.snapshot_queue q where q.owner_id = s.process_id and q.crawl_id = s.crawl_id) as snapshots,
         (select string_agg(h.plugin || '/' || h.hook_name || coalesce(' pid ' || h.pid, ''), ', ' order by h.hook_name)
            from holdfast.crawl_session_hook h where h.session_id = s.id and h.ended_at is null) as running,
         s.process_id
    from holdfast.crawl_session s
    join holdfast.crawl c on c.id = s.crawl_id
    join holdfast.process p on p.id = s.process_id
    join holdfast.machine m on m.id = p.machine_id;
comment on view holdfast.v_session is 'Crawl sessions: which node has a browser open for which crawl. Live ones have no ended_at.';
comment on column holdfast.v_session.snapshots is 'Snapshots of the crawl that the node works on.';
comment on column holdfast.v_session.running is 'Crawl hooks that run just now.';

create or replace function holdfast.hook_cost(p_crawl uuid)
  returns table (plugin text, hostname text, runs bigint, failed bigint, wall_ms_median bigint, wall_ms_p95 bigint, wall_ms_max bigint, cpu_ms_median bigint,
                 cpu_ms_p95 bigint, cpu_ms_max bigint, cpu_ms_total numeric, peak_memory_median bigint, peak_memory_max bigint, io_bytes_total numeric,
                 output_bytes_total numeric) language sql stable as $$
  -- By the latest 10,000 results, of a crawl or (NULL) of all; ids are in the order of time.
  with result as (
    (select * from holdfast.archive_result r where p_crawl is null order by r.snapshot_id desc limit 10000)
    union all
    (select r.* from (select s.id, s.crawl_id from holdfast.snapshot s where s.crawl_id = p_crawl order by s.id desc limit 10000) s
       cross join lateral (select * from holdfast.archive_result o where o.snapshot_id = s.id and o.crawl_id = s.crawl_id) r limit 10000)
  ), run as (
    select r.plugin, m.hostname, r.status, r.wall_ms, r.user_ms + r.system_ms as cpu_ms, r.peak_memory_bytes,
           r.read_bytes + r.written_bytes as io_bytes, r.output_bytes
      from result r
      join holdfast.process p on p.id = r.process_id
      join holdfast.machine m on m.id = p.machine_id
      where r.ended_at is not null and r.wall_ms is not null
    union all
    select h.plugin, m.hostname, h.status, h.wall_ms, h.user_ms + h.system_ms, h.peak_memory_bytes,
           h.read_bytes + h.written_bytes, 0
      from (select * from holdfast.crawl_session_hook order by session_id desc limit 10000) h
      join holdfast.crawl_session s on s.id = h.session_id and (p_crawl is null or s.crawl_id = p_crawl)
      join holdfast.process p on p.id = s.process_id
      join holdfast.machine m on m.id = p.machine_id
      where h.ended_at is not null and h.wall_ms is not null
  )
  select run.plugin, run.hostname, count(*), count(*) filter (where run.status = 'failed'),
         percentile_disc(0.5) within group (order by run.wall_ms), percentile_disc(0.95) within group (order by run.wall_ms), max(run.wall_ms),
         percentile_disc(0.5) within group (order by run.cpu_ms), percentile_disc(0.95) within group (order by run.cpu_ms), max(run.cpu_ms), sum(run.cpu_ms),
         percentile_disc(0.5) within group (order by run.peak_memory_bytes), max(run.peak_memory_bytes), sum(run.io_bytes), sum(run.output_bytes)
    from run group by run.plugin, run.hostname
$$;
comment on function holdfast.hook_cost(uuid) is 'What each plugin costs on each host, for one crawl: columns as v_hook_cost.';

create or replace view holdfast.v_hook_cost as select * from holdfast.hook_cost(null);
comment on view holdfast.v_hook_cost is 'What each plugin costs on each host, by its latest 10,000 results (and as many crawl hooks): time, CPU, memory, I/O; median, 95th percentile and the worst. order by cpu_ms_total desc shows who takes most.';
