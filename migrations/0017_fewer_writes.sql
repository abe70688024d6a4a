-- Less to write for each snapshot: what every one of them does is checked and recorded by sets, and what a lock guards already is not looked up again.

-- Results, attempts and sealed rows are written by whoever holds the snapshot's row in snapshot_queue, which refers to the snapshot: a foreign
-- key of each of them looked the snapshot up again and locked it, three times for every seal. They still go with it.
alter table holdfast.archive_result drop constraint archive_result_snapshot;
alter table holdfast.attempt drop constraint attempt_snapshot;
alter table holdfast.snapshot_sealed drop constraint snapshot_sealed_snapshot;
create function holdfast.snapshots_go() returns trigger language plpgsql set enable_seqscan = off set jit = off set plan_cache_mode = force_generic_plan as $$
begin
  delete from holdfast.archive_result r using gone g
    where r.snapshot_id = any (array(select i.id from gone i)) and r.snapshot_id = g.id and r.crawl_id = g.crawl_id;
  delete from holdfast.attempt a using gone g
    where a.snapshot_id = any (array(select i.id from gone i)) and a.snapshot_id = g.id and a.crawl_id = g.crawl_id;
  delete from holdfast.snapshot_sealed e using gone g
    where e.snapshot_id = any (array(select i.id from gone i)) and e.snapshot_id = g.id and e.crawl_id = g.crawl_id;
  return null;
end $$;
comment on function holdfast.snapshots_go is 'Takes the results, attempts and sealed rows of removed snapshots away.';
create trigger snapshots_go after delete on holdfast.snapshot referencing old table as gone for each statement execute function holdfast.snapshots_go();

-- A claim holds its node's row already (node_may_claim), and a node that ends gives up all it has.
alter table holdfast.snapshot_queue drop constraint snapshot_queue_owner_id_fkey;
comment on column holdfast.snapshot_queue.owner_id is 'The node that works on it; NULL: nobody. No foreign key: a claim holds the node''s row already.';
comment on column holdfast.snapshot_queue.status is 'queued, started or paused. A claim by snapshot_take starts it; by snapshot_claim, an owner with status queued is getting ready.';
comment on column holdfast.snapshot_queue.started_at is 'When its owner began on it.';
comment on column holdfast.attempt.started_at is 'When its owner began on it; NULL if it never came to that.';

-- The guard is asked about what is out of the ordinary. "noted": the function that starts snapshots writes their events itself, all at once.
drop trigger snapshot_lifecycle on holdfast.snapshot_queue;
create trigger snapshot_lifecycle before update of status on holdfast.snapshot_queue
  for each row when (old.status is distinct from new.status
    and (old.status <> 'queued' or new.status <> 'started' or current_setting('holdfast.event', true) is distinct from 'noted'))
  execute function holdfast.lifecycle_guard('snapshot', 'log');
drop trigger archive_result_lifecycle on holdfast.archive_result;
create trigger archive_result_lifecycle before update of status on holdfast.archive_result
  for each row when (old.status is distinct from new.status
    and (old.status <> 'started' or new.status not in ('succeeded', 'failed', 'skipped', 'noresults')))
  execute function holdfast.lifecycle_guard('archive_result', 'quiet');

-- Events are read by object or in the order of recording, which is that of time.
drop index holdfast.event_by_time;
create index event_by_time on holdfast.event using brin (at);

-- Where whole-table scans are planned as impossible, a small table counts as dear enough for jit, at some 20 ms a call.
alter function holdfast.snapshots_sealing() set jit = off;

-- Called snapshot_set now.
drop function if exists holdfast.snapshot_take(uuid, uuid, text, text);
