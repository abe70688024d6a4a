-- Results of hooks.

create or replace function holdfast.result_start(p_node uuid, p_snapshot uuid, p_crawl uuid, p_fence bigint, p_plugin text, p_hook text,
    p_pid integer, p_start_ticks bigint, p_timeout_ms bigint, p_background boolean) returns void language plpgsql set enable_seqscan = off as $$
-- A hook was started. May be repeated. Only the current owner may; the shared row lock keeps a takeover waiting until this is in.
begin
  perform from holdfast.snapshot_queue
    where snapshot_id = p_snapshot and crawl_id = p_crawl and owner_id = p_node and fence = p_fence for share;
  if not found then
    raise exception 'snapshot % is no longer held with fence %', p_snapshot, p_fence using errcode = 'HF003';
  end if;
  insert into holdfast.archive_result (snapshot_id, crawl_id, fence, plugin, hook_name, process_id, pid, start_ticks, timeout_ms, background)
    values (p_snapshot, p_crawl, p_fence, p_plugin, p_hook, p_node, p_pid, p_start_ticks, p_timeout_ms, p_background)
    on conflict do nothing;
end $$;
comment on function holdfast.result_start(uuid, uuid, uuid, bigint, text, text, integer, bigint, bigint, boolean) is 'Records that a hook runs now.';

create or replace function holdfast.result_finish(p_node uuid, p_snapshot uuid, p_crawl uuid, p_fence bigint, p_plugin text, p_hook text,
    p_status text, p_result jsonb) returns void language plpgsql set enable_seqscan = off as $$
-- A hook has ended. May be repeated. Keys of p_result: the columns of archive_result with the same name.
begin
  perform from holdfast.snapshot_queue
    where snapshot_id = p_snapshot and crawl_id = p_crawl and owner_id = p_node and fence = p_fence for share;
  if not found then
    raise exception 'snapshot % is no longer held with fence %', p_snapshot, p_fence using errcode = 'HF003';
  end if;
  update holdfast.archive_result r set status = p_status, ended_at = clock_timestamp(),
      output = coalesce(p_result ->> 'output', ''), error = coalesce(p_result ->> 'error', ''),
      output_json = p_result -> 'output_json', output_files = coalesce(p_result -> 'output_files', '[]'),
      output_bytes = coalesce((p_result ->> 'output_bytes')::bigint, 0),
      exit_code = (p_result ->> 'exit_code')::integer, exit_signal = (p_result ->> 'exit_signal')::integer,
      wall_ms = (p_result ->> 'wall_ms')::bigint, user_ms = (p_result ->> 'user_ms')::bigint,
      system_ms = (p_result ->> 'system_ms')::bigint, peak_memory_bytes = (p_result ->> 'peak_memory_bytes')::bigint,
      read_bytes = (p_result ->> 'read_bytes')::bigint, written_bytes = (p_result ->> 'written_bytes')::bigint
    where r.snapshot_id = p_snapshot and r.crawl_id = p_crawl and r.fence = p_fence and r.plugin = p_plugin and r.hook_name = p_hook
      and r.ended_at is null;
  if not found and not exists (select from holdfast.archive_result r where r.snapshot_id = p_snapshot and r.crawl_id = p_crawl
                                 and r.fence = p_fence and r.plugin = p_plugin and r.hook_name = p_hook) then
    raise exception 'hook %/% of snapshot % was never started', p_plugin, p_hook, p_snapshot using errcode = 'HF001';
  end if;
end $$;
comment on function holdfast.result_finish(uuid, uuid, uuid, bigint, text, text, text, jsonb) is 'Records what a hook did.';

create or replace function holdfast.result_amend(p_node uuid, p_snapshot uuid, p_crawl uuid, p_fence bigint, p_plugin text, p_hook text,
    p_result jsonb) returns void language plpgsql set enable_seqscan = off as $$
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
