-- Results of hooks. Only the current owner of a snapshot may write them; the shared lock on its row keeps a takeover waiting until they
-- are in. The functions for many lock these rows in everybody's order, and find all rows by "= any (ids)" on a primary key (see
-- snapshot_seal_many); planned for one row of each, they would be joined by comparing each with each, so that is forbidden.

create or replace function holdfast.result_start_many(p_node uuid, p_items jsonb) returns table (number bigint, answer text)
  language plpgsql set enable_seqscan = off set enable_nestloop = off set jit = off set plan_cache_mode = force_generic_plan as $$
-- Hooks were started. May be repeated. Keys of an item: snapshot, crawl, fence, plugin, hook, pid, start_ticks, timeout_ms, background.
-- Answers, by the number of the item from 1 on: started, or lost (nothing was written).
#variable_conflict use_column
declare
  v_snapshots uuid[];
begin
  select array_agg(i.snapshot) into v_snapshots from jsonb_to_recordset(p_items) as i(snapshot uuid);
  perform from holdfast.snapshot_queue q where q.snapshot_id = any (v_snapshots) and q.owner_id = p_node
    order by q.crawl_id, q.snapshot_id for share;
  return query
    with item as materialized (
      select i.* from rows from (jsonb_to_recordset(p_items) as (snapshot uuid, crawl uuid, fence bigint, plugin text, hook text, pid integer,
          start_ticks bigint, timeout_ms bigint, background boolean))
        with ordinality as i(snapshot, crawl, fence, plugin, hook, pid, start_ticks, timeout_ms, background, number)
    ), queue as materialized (
      select q.snapshot_id, q.crawl_id, q.owner_id, q.fence from holdfast.snapshot_queue q where q.snapshot_id = any (v_snapshots)
    ), held as materialized (
      select i.* from item i join queue q on q.snapshot_id = i.snapshot and q.crawl_id = i.crawl and q.fence = i.fence and q.owner_id = p_node
    ), begun as (
      insert into holdfast.archive_result (snapshot_id, crawl_id, fence, plugin, hook_name, process_id, pid, start_ticks, timeout_ms, background)
        select h.snapshot, h.crawl, h.fence, h.plugin, h.hook, p_node, h.pid, h.start_ticks, h.timeout_ms, coalesce(h.background, false) from held h
        on conflict do nothing
    )
    select i.number, case when h.number is null then 'lost' else 'started' end from item i left join held h on h.number = i.number;
end $$;
comment on function holdfast.result_start_many(uuid, jsonb) is 'Records that hooks run now; says of each whether its snapshot is still held.';

create or replace function holdfast.result_start(p_node uuid, p_snapshot uuid, p_crawl uuid, p_fence bigint, p_plugin text, p_hook text,
    p_pid integer, p_start_ticks bigint, p_timeout_ms bigint, p_background boolean) returns void language plpgsql as $$
begin
  if (select m.answer from holdfast.result_start_many(p_node, jsonb_build_array(jsonb_build_object('snapshot', p_snapshot, 'crawl', p_crawl,
        'fence', p_fence, 'plugin', p_plugin, 'hook', p_hook, 'pid', p_pid, 'start_ticks', p_start_ticks, 'timeout_ms', p_timeout_ms,
        'background', p_background))) m) = 'lost' then
    raise exception 'snapshot % is no longer held with fence %', p_snapshot, p_fence using errcode = 'HF003';
  end if;
end $$;
comment on function holdfast.result_start(uuid, uuid, uuid, bigint, text, text, integer, bigint, bigint, boolean) is 'Records that a hook runs now.';

create or replace function holdfast.result_finish_many(p_node uuid, p_items jsonb) returns table (number bigint, answer text)
  language plpgsql set enable_seqscan = off set enable_nestloop = off set jit = off set plan_cache_mode = force_generic_plan as $$
-- Hooks have ended. May be repeated. Keys of an item: snapshot, crawl, fence, plugin, hook, status, and result: an object whose keys are
-- columns of archive_result. Answers, by the number of the item from 1 on: finished (now or before), lost, or unknown (never started).
#variable_conflict use_column
declare
  v_snapshots uuid[];
begin
  select array_agg(i.snapshot) into v_snapshots from jsonb_to_recordset(p_items) as i(snapshot uuid);
  perform from holdfast.snapshot_queue q where q.snapshot_id = any (v_snapshots) and q.owner_id = p_node
    order by q.crawl_id, q.snapshot_id for share;
  return query
    with item as materialized (
      select i.* from rows from (jsonb_to_recordset(p_items) as (snapshot uuid, crawl uuid, fence bigint, plugin text, hook text, status text, result jsonb))
        with ordinality as i(snapshot, crawl, fence, plugin, hook, status, result, number)
    ), queue as materialized (
      select q.snapshot_id, q.crawl_id, q.owner_id, q.fence from holdfast.snapshot_queue q where q.snapshot_id = any (v_snapshots)
    ), known as materialized (
      select r.snapshot_id, r.crawl_id, r.fence, r.plugin, r.hook_name from holdfast.archive_result r where r.snapshot_id = any (v_snapshots)
    ), held as materialized (
      select i.*, k.fence is not null as known
        from item i join queue q on q.snapshot_id = i.snapshot and q.crawl_id = i.crawl and q.fence = i.fence and q.owner_id = p_node
        left join known k on k.snapshot_id = i.snapshot and k.crawl_id = i.crawl and k.fence = i.fence and k.plugin = i.plugin and k.hook_name = i.hook
    ), ended as (
      update holdfast.archive_result r set status = h.status, ended_at = clock_timestamp(),
          output = coalesce(h.result ->> 'output', ''), error = coalesce(h.result ->> 'error', ''),
          output_json = h.result -> 'output_json', output_files = coalesce(h.result -> 'output_files', '[]'),
          output_bytes = coalesce((h.result ->> 'output_bytes')::bigint, 0),
          exit_code = (h.result ->> 'exit_code')::integer, exit_signal = (h.result ->> 'exit_signal')::integer,
          wall_ms = (h.result ->> 'wall_ms')::bigint, user_ms = (h.result ->> 'user_ms')::bigint,
          system_ms = (h.result ->> 'system_ms')::bigint, peak_memory_bytes = (h.result ->> 'peak_memory_bytes')::bigint,
          read_bytes = (h.result ->> 'read_bytes')::bigint, written_bytes = (h.result ->> 'written_bytes')::bigint
        from held h
        where r.snapshot_id = any (v_snapshots) and r.snapshot_id = h.snapshot and r.crawl_id = h.crawl and r.fence = h.fence
          and r.plugin = h.plugin and r.hook_name = h.hook
          and coalesce(r.ended_at, 'infinity') = 'infinity' -- not "is null": no plan may walk the index of all that runs
    )
    select i.number, case when h.number is null then 'lost' when h.known then 'finished' else 'unknown' end
      from item i left join held h on h.number = i.number;
end $$;
comment on function holdfast.result_finish_many(uuid, jsonb) is 'Records what hooks did; says of each whether its snapshot is still held.';

create or replace function holdfast.result_finish(p_node uuid, p_snapshot uuid, p_crawl uuid, p_fence bigint, p_plugin text, p_hook text,
    p_status text, p_result jsonb) returns void language plpgsql as $$
declare
  v_answer text;
begin
  select m.answer into v_answer from holdfast.result_finish_many(p_node, jsonb_build_array(jsonb_build_object('snapshot', p_snapshot, 'crawl', p_crawl,
    'fence', p_fence, 'plugin', p_plugin, 'hook', p_hook, 'status', p_status, 'result', p_result))) m;
  if v_answer = 'lost' then
    raise exception 'snapshot % is no longer held with fence %', p_snapshot, p_fence using errcode = 'HF003';
  elsif v_answer = 'unknown' then
    raise exception 'hook %/% of snapshot % was never started', p_plugin, p_hook, p_snapshot using errcode = 'HF001';
  end if;
end $$;
comment on function holdfast.result_finish(uuid, uuid, uuid, bigint, text, text, text, jsonb) is 'Records what a hook did.';

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
