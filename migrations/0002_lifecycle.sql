-- The legal edges, and the triggers that refuse every other change of state (SQLSTATE HF001), whoever asks.
-- lib/store/lifecycle.hpp holds the same rows; tests/store compares the two.

insert into holdfast.lifecycle_edge (lifecycle, from_state, event, to_state, why) values
  ('crawl', 'queued', 'start', 'started', 'its first seeds became snapshots'),
  ('crawl', 'queued', 'seal', 'sealed', 'none of its seeds gave a snapshot'),
  ('crawl', 'queued', 'pause', 'paused', 'somebody paused it'),
  ('crawl', 'queued', 'cancel', 'sealed', 'somebody cancelled it'),
  ('crawl', 'started', 'seal', 'sealed', 'its last snapshot was sealed'),
  ('crawl', 'started', 'pause', 'paused', 'somebody paused it'),
  ('crawl', 'started', 'cancel', 'sealed', 'somebody cancelled it'),
  ('crawl', 'paused', 'resume', 'queued', 'somebody resumed it'),
  ('crawl', 'paused', 'cancel', 'sealed', 'somebody cancelled it'),
  ('snapshot', 'queued', 'start', 'started', 'its owner is about to run its first hook'),
  ('snapshot', 'queued', 'pause', 'paused', 'it or its crawl was paused'),
  ('snapshot', 'queued', 'refuse', 'sealed', 'its URL is not allowed'),
  ('snapshot', 'queued', 'quarantine', 'sealed', 'its owners kept dying'),
  ('snapshot', 'queued', 'cancel', 'sealed', 'it or its crawl was cancelled'),
  ('snapshot', 'started', 'seal', 'sealed', 'every hook has ended and its files are published'),
  ('snapshot', 'started', 'release', 'queued', 'its owner put it back'),
  ('snapshot', 'started', 'lapse', 'queued', 'its owner was lost'),
  ('snapshot', 'started', 'pause', 'paused', 'it or its crawl was paused'),
  ('snapshot', 'started', 'refuse', 'sealed', 'its URL is not allowed'),
  ('snapshot', 'started', 'quarantine', 'sealed', 'its owners kept dying'),
  ('snapshot', 'started', 'cancel', 'sealed', 'it or its crawl was cancelled'),
  ('snapshot', 'paused', 'resume', 'queued', 'it or its crawl was resumed'),
  ('snapshot', 'paused', 'cancel', 'sealed', 'it or its crawl was cancelled'),
  ('archive_result', 'queued', 'start', 'started', 'its hook was started'),
  ('archive_result', 'queued', 'skip', 'skipped', 'its hook cannot run here'),
  ('archive_result', 'started', 'succeed', 'succeeded', 'its hook did what it is for'),
  ('archive_result', 'started', 'fail', 'failed', 'its hook failed'),
  ('archive_result', 'started', 'skip', 'skipped', 'its hook had nothing to run with'),
  ('archive_result', 'started', 'find_nothing', 'noresults', 'its hook found nothing'),
  ('binary', 'queued', 'install', 'installed', 'the program was found'),
  ('binary', 'installed', 'recheck', 'queued', 'the program is gone or has changed'),
  ('crawl_session', 'opening', 'open', 'ready', 'its crawl hooks are done or ready'),
  ('crawl_session', 'opening', 'fail', 'failed', 'a crawl hook failed'),
  ('crawl_session', 'opening', 'drain', 'draining', 'its node is leaving'),
  ('crawl_session', 'opening', 'lapse', 'closed', 'its node was given up'),
  ('crawl_session', 'ready', 'fail', 'failed', 'a crawl hook that should stay has ended'),
  ('crawl_session', 'ready', 'drain', 'draining', 'nobody needs it any more, or its node is leaving'),
  ('crawl_session', 'ready', 'lapse', 'closed', 'its node was given up'),
  ('crawl_session', 'draining', 'close', 'closed', 'its hooks have ended'),
  ('crawl_session', 'draining', 'lapse', 'closed', 'its node was given up'),
  ('process', 'running', 'exit', 'exited', 'it left, or its lease lapsed');

create function holdfast.lifecycle_guard() returns trigger language plpgsql as $$
-- Arguments: lifecycle, "log" or "quiet". The event is what the calling function announced in holdfast.event if that fits,
-- else the edge's own name if the states allow only one, else "direct".
declare
  v_lifecycle constant text := tg_argv[0];
  v_announced constant text := current_setting('holdfast.event', true);
  v_row constant jsonb := case when tg_argv[1] = 'log' then to_jsonb(new) end;
  v_event text;
  v_edges integer;
begin
  select count(*), coalesce(max(e.event) filter (where e.event = v_announced), case when count(*) = 1 then max(e.event) else 'direct' end)
    into v_edges, v_event
    from holdfast.lifecycle_edge e
    where e.lifecycle = v_lifecycle and e.from_state = old.status and e.to_state = new.status;
  if v_edges = 0 then
    raise exception 'illegal change of a %: % -> %', v_lifecycle, old.status, new.status
      using errcode = 'HF001', hint = 'The legal edges are in holdfast.lifecycle_edge.';
  end if;
  if tg_argv[1] = 'log' then
    insert into holdfast.event (lifecycle, object_id, crawl_id, from_state, event, to_state, process_id, detail)
      values (v_lifecycle,
        coalesce(v_row ->> 'snapshot_id', v_row ->> 'id')::uuid,
        case v_lifecycle when 'crawl' then (v_row ->> 'id')::uuid else (v_row ->> 'crawl_id')::uuid end,
        old.status, v_event, new.status,
        case v_lifecycle when 'process' then (v_row ->> 'id')::uuid
             else coalesce(v_row ->> 'owner_id', to_jsonb(old) ->> 'owner_id')::uuid end,
        coalesce(v_row ->> 'reason', v_row ->> 'stop_reason', v_row ->> 'exit_reason'));
  end if;
  return new;
end $$;
comment on function holdfast.lifecycle_guard is 'Refuses a change of status that is no edge, and records those that are.';

create trigger crawl_lifecycle before update of status on holdfast.crawl
  for each row when (old.status is distinct from new.status) execute function holdfast.lifecycle_guard('crawl', 'log');
create trigger snapshot_lifecycle before update of status on holdfast.snapshot_queue
  for each row when (old.status is distinct from new.status) execute function holdfast.lifecycle_guard('snapshot', 'log');
-- The rows of archive_result are their own record: they are never used twice.
create trigger archive_result_lifecycle before update of status on holdfast.archive_result
  for each row when (old.status is distinct from new.status) execute function holdfast.lifecycle_guard('archive_result', 'quiet');
create trigger binary_lifecycle before update of status on holdfast.binary
  for each row when (old.status is distinct from new.status) execute function holdfast.lifecycle_guard('binary', 'quiet');
create trigger process_lifecycle before update of status on holdfast.process
  for each row when (old.status is distinct from new.status) execute function holdfast.lifecycle_guard('process', 'log');

create function holdfast.snapshot_sealing() returns trigger language plpgsql as $$
-- Sealing is moving: whoever inserts the sealed row takes the open one away, in one step, or neither happens. The outcome says
-- which event it is: what was never started cannot have succeeded.
declare
  v_from text;
  v_owner uuid;
  v_event constant text := case new.outcome when 'refused' then 'refuse' when 'quarantined' then 'quarantine'
                                            when 'cancelled' then 'cancel' else 'seal' end;
begin
  delete from holdfast.snapshot_queue q
    where q.snapshot_id = new.snapshot_id and q.crawl_id = new.crawl_id
    returning q.status, q.owner_id into v_from, v_owner;
  if not exists (select from holdfast.lifecycle_edge e
                   where e.lifecycle = 'snapshot' and e.from_state = v_from and e.event = v_event and e.to_state = 'sealed') then
    raise exception 'illegal change of a snapshot: % -> sealed (%)', coalesce(v_from, 'sealed'), new.outcome
      using errcode = 'HF001', hint = 'The legal edges are in holdfast.lifecycle_edge.';
  end if;
  insert into holdfast.event (lifecycle, object_id, crawl_id, from_state, event, to_state, process_id, detail)
    values ('snapshot', new.snapshot_id, new.crawl_id, v_from, v_event, 'sealed', coalesce(new.owner_id, v_owner),
            new.outcome || coalesce(': ' || new.reason, ''));
  return new;
end $$;
comment on function holdfast.snapshot_sealing is 'Takes the open row of a snapshot away as its sealed row arrives; refuses if there is none.';
create trigger snapshot_sealing before insert on holdfast.snapshot_sealed
  for each row execute function holdfast.snapshot_sealing();

create function holdfast.snapshot_final() returns trigger language plpgsql as $$
-- Depth 1 is a statement of somebody's own; deeper is our sealing trigger, or the removal of the whole crawl.
begin
  if tg_op = 'DELETE' and pg_trigger_depth() > 1 then return old; end if;
  raise exception '% of % refused: %', lower(tg_op), tg_table_name,
    case tg_table_name when 'snapshot_sealed' then 'a sealed snapshot never changes' else 'a snapshot leaves the queue by being sealed' end
    using errcode = 'HF001';
end $$;
comment on function holdfast.snapshot_final is 'Sealed rows never change, and queue rows leave only by sealing or with their crawl.';
create trigger snapshot_sealed_is_final before update or delete on holdfast.snapshot_sealed
  for each row execute function holdfast.snapshot_final();
create trigger snapshot_queue_leaves_by_sealing before delete on holdfast.snapshot_queue
  for each row execute function holdfast.snapshot_final();
