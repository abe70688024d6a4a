-- Less to write for each snapshot, again: what every one of them does is recorded once for each call, not once for each snapshot.

-- The claim that starts a hundred snapshots of a crawl is one event, and so is the call that seals them.
alter table holdfast.event alter column object_id drop not null, add column objects uuid[],
  add constraint event_has_object check (num_nonnulls(object_id, objects) = 1);
comment on column holdfast.event.object_id is 'The crawl, snapshot, binary or process.';
comment on column holdfast.event.objects is 'Instead of object_id: all the snapshots of a crawl that one call started, or sealed. v_event has a row for each.';
-- The same, without those of many: what these did stands in their own rows (snapshot_events).
create index event_of_object on holdfast.event (object_id, id) where object_id is not null;
comment on index holdfast.event_of_object is 'What happened to one crawl, program or process, and what happened to one snapshot out of the ordinary.';
drop index holdfast.event_by_object;

-- A sealed row says who sealed which attempt and when; an attempt row beside it said the same.
comment on table holdfast.attempt is 'Append-only: every ownership of a snapshot that has ended otherwise than by sealing it, and how. v_attempt has the others too.';
comment on column holdfast.attempt.ending is 'released (put back with a back-off); interrupted (its node was leaving); lost (its node died); handed_back (the claim''s answer was lost); cancelled. sealed: written until revision 18.';

create or replace function holdfast.snapshots_sealing() returns trigger
  language plpgsql set enable_seqscan = off set jit = off set plan_cache_mode = force_generic_plan as $$
-- Sealing is moving: whoever inserts sealed rows takes the open ones away, in one step, or neither happens. The outcome says which
-- event it is: what was never started cannot have succeeded. What was sealed in the ordinary way is one event for each crawl and outcome.
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
    insert into holdfast.event (lifecycle, object_id, objects, crawl_id, from_state, event, to_state, process_id, detail)
      select 'snapshot', case when m.event <> 'seal' then m.snapshot_id end, case when m.event = 'seal' then array_agg(m.snapshot_id) end, m.crawl_id, m.from_state,
             m.event, 'sealed', m.process_id, m.outcome || coalesce(': ' || m.reason, '')
        from moved m
        group by m.crawl_id, m.from_state, m.event, m.process_id, m.outcome, m.reason, case when m.event <> 'seal' then m.snapshot_id end
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
