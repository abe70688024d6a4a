-- Seals by sets: what a sealed row brings with it happens once for each statement, not once for each row.

drop trigger snapshot_sealing on holdfast.snapshot_sealed;
drop function holdfast.snapshot_sealing();


create function holdfast.snapshots_sealing() returns trigger language plpgsql set enable_seqscan = off set plan_cache_mode = force_generic_plan as $$
-- Sealing is moving: whoever inserts sealed rows takes the open ones away, in one step, or neither happens. The outcome says which
-- event it is: what was never started cannot have succeeded.
declare
  v_wrong record;
begin
  with gone as (
    delete from holdfast.snapshot_queue q using fresh f
      where q.snapshot_id = any (array(select i.snapshot_id from fresh i)) and q.snapshot_id = f.snapshot_id and q.crawl_id = f.crawl_id
      returning q.snapshot_id, q.crawl_id, q.status, q.owner_id
  ), moved as materialized (
    select f.snapshot_id, f.crawl_id, f.outcome, f.reason, coalesce(f.owner_id, g.owner_id) as process_id, g.status as from_state,
           case f.outcome when 'refused' then 'refuse' when 'quarantined' then 'quarantine' when 'cancelled' then 'cancel' else 'seal' end as event
      from fresh f left join gone g on g.snapshot_id = f.snapshot_id and g.crawl_id = f.crawl_id
  ), noted as (
    insert into holdfast.event (lifecycle, object_id, crawl_id, from_state, event, to_state, process_id, detail)
      select 'snapshot', m.snapshot_id, m.crawl_id, m.from_state, m.event, 'sealed', m.process_id, m.outcome || coalesce(': ' || m.reason, '') from moved m
  )
  select m.from_state, m.outcome into v_wrong from moved m
    where not exists (select from holdfast.lifecycle_edge e
                        where e.lifecycle = 'snapshot' and e.from_state = m.from_state and e.event = m.event and e.to_state = 'sealed')
    limit 1;
  if found then
    raise exception 'illegal change of a snapshot: % -> sealed (%)', coalesce(v_wrong.from_state, 'sealed'), v_wrong.outcome
      using errcode = 'HF001', hint = 'The legal edges are in holdfast.lifecycle_edge.';
  end if;
  return null;
end $$;
comment on function holdfast.snapshots_sealing is 'Takes the open rows of snapshots away as their sealed rows arrive; refuses if there is none.';
create trigger snapshot_sealing after insert on holdfast.snapshot_sealed referencing new table as fresh
  for each statement execute function holdfast.snapshots_sealing();

-- What is refused is a statement of somebody's own; asked before the function is called, for each of many rows.
drop trigger snapshot_queue_leaves_by_sealing on holdfast.snapshot_queue;
create trigger snapshot_queue_leaves_by_sealing before delete on holdfast.snapshot_queue
  for each row when (pg_trigger_depth() = 0) execute function holdfast.snapshot_final();
