-- Results of hooks. Only the current owner of a snapshot may write them; the shared lock on its row keeps a takeover waiting until they
-- are in. The functions for many take one array for each column, all of one length, and lock these rows in everybody's order; they find all
-- rows by "= any (ids)" on a primary key (see snapshot_seal_many); planned for one row of each, they would be joined by comparing each with
-- each, so that is forbidden. Numbers count from 1.

create or replace function holdfast.result_start_many(p_node uuid, p_snapshots uuid[], p_crawls uuid[], p_fences bigint[], p_plugins text[], p_hooks text[],
    p_pids integer[], p_start_ticks bigint[], p_timeouts_ms bigint[], p_background boolean[]) returns bigint[]
  language plpgsql set enable_seqscan = off set enable_nestloop = off set jit = off set plan_cache_mode = force_generic_plan as $$
-- Hooks were started. May be repeated. Returns the numbers of those whose snapshot is not held: nothing was written for them.
declare
  v_held bigint[];
begin
  with queue as materialized (
    select q.snapshot_id, q.crawl_id, q.fence from holdfast.snapshot_queue q where q.snapshot_id = any (p_snapshots) and q.owner_id = p_node
      order by q.crawl_id, q.snapshot_id for share
  ), held as materialized (
    select i.* from unnest(p_snapshots, p_crawls, p_fences, p_plugins, p_hooks, p_pids, p_start_ticks, p_timeouts_ms, p_background)
        with ordinality i(snapshot, crawl, fence, plugin, hook, pid, start_ticks, timeout_ms, background, number)
      join queue q on q.snapshot_id = i.snapshot and q.crawl_id = i.crawl and q.fence = i.fence
  ), begun as (
    insert into holdfast.archive_result (snapshot_id, crawl_id, fence, plugin, hook_name, process_id, pid, start_ticks, timeout_ms, background)
      select h.snapshot, h.crawl, h.fence, h.plugin, h.hook, p_node, h.pid, h.start_ticks, h.timeout_ms, coalesce(h.background, false) from held h
      on conflict do nothing
  )
  select array_agg(h.number) into v_held from held h;
  if cardinality(v_held) = cardinality(p_snapshots) then return '{}'; end if;
  return array(select n from generate_series(1, cardinality(p_snapshots)) n where n = any (v_held) is not true);
end $$;
comment on function holdfast.result_start_many(uuid, uuid[], uuid[], bigint[], text[], text[], integer[], bigint[], bigint[], boolean[])
  is 'Records that hooks run now; says whose snapshots are no longer held.';

create or replace function holdfast.result_start(p_node uuid, p_snapshot uuid, p_crawl uuid, p_fence bigint, p_plugin text, p_hook text,
    p_pid integer, p_start_ticks bigint, p_timeout_ms bigint, p_background boolean) returns void language plpgsql as $$
begin
  if holdfast.result_start_many(p_node, array[p_snapshot], array[p_crawl], array[p_fence], array[p_plugin], array[p_hook], array[p_pid], array[p_start_ticks],
       array[p_timeout_ms], array[p_background]) <> '{}' then
    raise exception 'snapshot % is no longer held with fence %', p_snapshot, p_fence using errcode = 'HF003';
  end if;
end $$;
comment on function holdfast.result_start(uuid, uuid, uuid, bigint, text, text, integer, bigint, bigint, boolean) is 'Records that a hook runs now.';

create or replace function holdfast.result_finish_many(p_node uuid, p_snapshots uuid[], p_crawls uuid[], p_fences bigint[], p_plugins text[], p_hooks text[],
    p_statuses text[], p_results jsonb, out lost bigint[], out unknown bigint[])
  language plpgsql set enable_seqscan = off set enable_nestloop = off set jit = off set plan_cache_mode = force_generic_plan as $$
-- Hooks have ended. May be repeated. p_results: an array of objects whose keys are columns of archive_result. Returns the numbers of those whose
-- snapshot is not held, and of those that were never started; nothing was written for them.
declare
  v_ended bigint[];
begin
  lost := '{}';
  unknown := '{}';
  with queue as materialized (
    select q.snapshot_id, q.crawl_id, q.fence from holdfast.snapshot_queue q where q.snapshot_id = any (p_snapshots) and q.owner_id = p_node
      order by q.crawl_id, q.snapshot_id for share
  ), held as materialized (
    select i.* from rows from (unnest(p_snapshots, p_crawls, p_fences, p_plugins, p_hooks, p_statuses),
        jsonb_to_recordset(p_results) as (output text, error text, output_json jsonb, output_files jsonb, output_bytes bigint, exit_code integer, exit_signal integer,
          wall_ms bigint, user_ms bigint, system_ms bigint, peak_memory_bytes bigint, read_bytes bigint, written_bytes bigint))
        with ordinality i(snapshot, crawl, fence, plugin, hook, status, output, error, output_json, output_files, output_bytes, exit_code, exit_signal,
          wall_ms, user_ms, system_ms, peak_memory_bytes, read_bytes, written_bytes, number)
      join queue q on q.snapshot_id = i.snapshot and q.crawl_id = i.crawl and q.fence = i.fence
  ), ended as (
    update holdfast.archive_result r set status = h.status, ended_at = clock_timestamp(), output = coalesce(h.output, ''), error = coalesce(h.error, ''),
        output_json = h.output_json, output_files = coalesce(h.output_files, '[]'), output_bytes = coalesce(h.output_bytes, 0),
        exit_code = h.exit_code, exit_signal = h.exit_signal, wall_ms = h.wall_ms, user_ms = h.user_ms, system_ms = h.system_ms,
        peak_memory_bytes = h.peak_memory_bytes, read_bytes = h.read_bytes, written_bytes = h.written_bytes
      from held h
      where r.snapshot_id = any (p_snapshots) and r.snapshot_id = h.snapshot and r.crawl_id = h.crawl and r.fence = h.fence
        and r.plugin = h.plugin and r.hook_name = h.hook
        and coalesce(r.ended_at, 'infinity') = 'infinity' -- not "is null": no plan may walk the index of all that runs
      returning h.number
  )
  select array_agg(e.number) into v_ended from ended e;
  if cardinality(v_ended) = cardinality(p_snapshots) then return; end if;
  -- Not held, never started, or repeated. The locks are still ours: nothing of this has changed since.
  with item as materialized (
    select i.* from unnest(p_snapshots, p_crawls, p_fences, p_plugins, p_hooks) with ordinality i(snapshot, crawl, fence, plugin, hook, number)
  ), queue as materialized (
    select q.snapshot_id, q.crawl_id, q.fence from holdfast.snapshot_queue q where q.snapshot_id = any (p_snapshots) and q.owner_id = p_node
  ), known as materialized (
    select r.snapshot_id, r.crawl_id, r.fence, r.plugin, r.hook_name from holdfast.archive_result r where r.snapshot_id = any (p_snapshots)
  )
  select coalesce(array_agg(i.number) filter (where q.fence is null), '{}'), coalesce(array_agg(i.number) filter (where q.fence is not null and k.fence is null), '{}')
    into lost, unknown
    from item i
    left join queue q on q.snapshot_id = i.snapshot and q.crawl_id = i.crawl and q.fence = i.fence
    left join known k on k.snapshot_id = i.snapshot and k.crawl_id = i.crawl and k.fence = i.fence and k.plugin = i.plugin and k.hook_name = i.hook;
end $$;
comment on function holdfast.result_finish_many(uuid, uuid[], uuid[], bigint[], text[], text[], text[], jsonb)
  is 'Records what hooks did; says whose snapshots are no longer held, and what was never started.';

create or replace function holdfast.result_finish(p_node uuid, p_snapshot uuid, p_crawl uuid, p_fence bigint, p_plugin text, p_hook text,
    p_status text, p_result jsonb) returns void language plpgsql as $$
declare
  v_answer record;
begin
  v_answer := holdfast.result_finish_many(p_node, array[p_snapshot], array[p_crawl], array[p_fence], array[p_plugin], array[p_hook], array[p_status],
    jsonb_build_array(p_result));
  if v_answer.lost <> '{}' then
    raise exception 'snapshot % is no longer held with fence %', p_snapshot, p_fence using errcode = 'HF003';
  elsif v_answer.unknown <> '{}' then
    raise exception 'hook %/% of snapshot % was never started', p_plugin, p_hook, p_snapshot using errcode = 'HF001';
  end if;
end $$;
comment on function holdfast.result_finish(uuid, uuid, uuid, bigint, text, text, text, jsonb) is 'Records what a hook did.';

-- As programs older than revision 19 ask: an object for each item, an answer for each item.

create or replace function holdfast.result_start_many(p_node uuid, p_items jsonb) returns table (number bigint, answer text) language plpgsql as $$
declare
  v_lost bigint[];
begin
  select holdfast.result_start_many(p_node, array_agg(i.snapshot), array_agg(i.crawl), array_agg(i.fence), array_agg(i.plugin), array_agg(i.hook), array_agg(i.pid),
           array_agg(i.start_ticks), array_agg(i.timeout_ms), array_agg(i.background))
    into v_lost
    from jsonb_to_recordset(p_items) as i(snapshot uuid, crawl uuid, fence bigint, plugin text, hook text, pid integer, start_ticks bigint, timeout_ms bigint, background boolean);
  return query select n::bigint, case when n = any (v_lost) then 'lost' else 'started' end from generate_series(1, jsonb_array_length(p_items)) n;
end $$;
comment on function holdfast.result_start_many(uuid, jsonb) is 'Records that hooks run now; for programs older than revision 19.';

create or replace function holdfast.result_finish_many(p_node uuid, p_items jsonb) returns table (number bigint, answer text) language plpgsql as $$
declare
  v_answer record;
begin
  select m.* into v_answer
    from (select array_agg(i.snapshot) as snapshots, array_agg(i.crawl) as crawls, array_agg(i.fence) as fences, array_agg(i.plugin) as plugins,
                 array_agg(i.hook) as hooks, array_agg(i.status) as statuses, jsonb_agg(coalesce(i.result, '{}')) as results
            from jsonb_to_recordset(p_items) as i(snapshot uuid, crawl uuid, fence bigint, plugin text, hook text, status text, result jsonb)) a
    cross join lateral holdfast.result_finish_many(p_node, a.snapshots, a.crawls, a.fences, a.plugins, a.hooks, a.statuses, a.results) m;
  return query select n::bigint, case when n = any (v_answer.lost) then 'lost' when n = any (v_answer.unknown) then 'unknown' else 'finished' end
    from generate_series(1, jsonb_array_length(p_items)) n;
end $$;
comment on function holdfast.result_finish_many(uuid, jsonb) is 'Records what hooks did; for programs older than revision 19.';

create or replace function holdfast.result_amend(p_node uuid, p_snapshot uuid, p_crawl uuid, p_fence bigint, p_plugin text, p_hook text,
    p_result jsonb) returns void language plpgsql set enable_seqscan = off set jit = off as $$
-- Something else has changed what a hook had left, after it had ended: its row lists what is there now, and says so. May be repeated.
-- Keys of p_result: error, output_files, output_bytes.
begin
  perform from holdfast.snapshot_queue
    where snapshot_id = p_snapshot and crawl_id = p_crawl and owner_id = p_node and fence = p_fence for share;
  if not found then
    raise exception 'snapshot % is no longer held with fence %', p_snapshot, p_fence using errcode = 'HF003';
  end if;
  update holdfast.archive_result r set error = p_result ->> 'error', output_files = p_result -> 'output_files',
      output_bytes = (p_result ->> 'output_bytes')::bigint
    where r.snapshot_id = p_snapshot and r.crawl_id = p_crawl and r.fence = p_fence and r.plugin = p_plugin and r.hook_name = p_hook
      and r.ended_at is not null;
end $$;
comment on function holdfast.result_amend(uuid, uuid, uuid, bigint, text, text, jsonb) is 'Corrects what a hook is said to have left, after another has changed it.';
