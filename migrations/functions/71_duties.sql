-- The duties, one function each: takes the duty's row, returns how many things it changed. Each does at most one batch, may be
-- repeated at any time, and runs in the transaction of runner_duty(), which holds the gate.

create or replace function holdfast.duty_lapsed(p_duty holdfast.duty) returns bigint language plpgsql as $$
-- One process a transaction: see lapse_nodes. Claims do the same; this is for when nobody claims, and for runners' own rows.
declare
  v_event bigint;
begin
  if not exists (select from holdfast.process where status = 'running' and lease_until <= clock_timestamp()) then return 0; end if;
  select coalesce(max(id), 0) into v_event from holdfast.event;
  perform holdfast.lapse_nodes();
  return (select least(count(*), 1) from holdfast.event where id > v_event and lifecycle = 'process' and to_state = 'exited');
end $$;
comment on function holdfast.duty_lapsed(holdfast.duty) is 'Gives up one process whose lease has run out.';

create or replace function holdfast.duty_mend(p_duty holdfast.duty) returns bigint language plpgsql as $$
-- psql may be used to steer, so rows may be left in a state that no function of ours leaves them in: a crawl that nothing will
-- ever look at again. Sealing and claiming settle everything else themselves.
declare
  v_crawl record;
  v_count bigint := 0;
begin
  for v_crawl in
    select c.id from holdfast.crawl c
      where c.status in ('queued', 'started') and c.owner_id is null and c.seeds_left = 0 and c.snapshots_open = 0
        and not (c.status = 'queued' and c.retry_at is not null)
      order by c.id limit p_duty.batch for update skip locked
  loop
    if holdfast.crawl_settle(v_crawl.id) then v_count := v_count + 1; end if;
  end loop;
  -- Seeds wait, but it is due for nobody.
  update holdfast.crawl set retry_at = clock_timestamp(), reason = 'nobody looked at it any more'
    where id in (select c.id from holdfast.crawl c
                   where c.status in ('queued', 'started') and c.owner_id is null and c.retry_at is null and c.seeds_left > 0
                   order by c.id limit p_duty.batch for update skip locked);
  if found then
    v_count := v_count + 1;
    perform holdfast.ring();
  end if;
  insert into holdfast.crawl_queue (crawl_id)
    select c.id from holdfast.crawl c
      where c.status = 'started' and c.stopping_at is null and c.judged_to is null and not exists (select from holdfast.crawl_queue q where q.crawl_id = c.id) limit p_duty.batch
    on conflict do nothing;
  for v_crawl in
    select q.crawl_id, d.due from holdfast.crawl_queue q
      join holdfast.crawl c on c.id = q.crawl_id and c.status = 'started'
      cross join lateral (select min(s.retry_at) as due from holdfast.snapshot_queue s where s.crawl_id = q.crawl_id and s.owner_id is null and not s.lane) d
      where (q.ready_at is null or q.ready_at > clock_timestamp()) and d.due <= clock_timestamp()
      order by q.crawl_id limit p_duty.batch
  loop
    perform holdfast.crawl_wake(v_crawl.crawl_id, v_crawl.due);
    v_count := v_count + 1;
  end loop;
  return v_count;
end $$;
comment on function holdfast.duty_mend(holdfast.duty) is 'Wakes or seals crawls that nothing would ever look at again.';

create or replace function holdfast.duty_hosts(p_duty holdfast.duty) returns bigint language plpgsql as $$
-- One level for every ten minutes without a new complaint. updated_at says when it last changed, so repeating changes nothing.
declare
  v_count bigint;
begin
  update holdfast.host h
    set backoff_level = greatest(0, h.backoff_level - 1), updated_at = clock_timestamp(), updated_by = 'runner',
        backoff_until = case when h.backoff_level > 1 then h.backoff_until end,
        reason = case when h.backoff_level > 1 or h.paused then h.reason end
    where h.name in (select o.name from holdfast.host o
                       where o.backoff_level > 0 and greatest(o.updated_at, o.backoff_until) < clock_timestamp() - interval '10 minutes'
                       order by o.name limit p_duty.batch for update skip locked);
  get diagnostics v_count = row_count;
  return v_count;
end $$;
comment on function holdfast.duty_hosts(holdfast.duty) is 'Forgives web sites step by step.';

create or replace function holdfast.duty_retention(p_duty holdfast.duty) returns bigint language plpgsql as $$
-- The rows go here; the directories are listed in purge by the same transaction, and deleted by whoever has the archive.
declare
  v_crawl uuid;
  v_count bigint := 0;
begin
  for v_crawl in select * from holdfast.crawls_expired(p_duty.batch) loop
    perform holdfast.crawl_remove(v_crawl, 'retention');
    v_count := v_count + 1;
  end loop;
  if v_count = 0 then v_count := least(holdfast.superseded_remove(50), p_duty.batch); end if;
  return v_count;
end $$;
comment on function holdfast.duty_retention(holdfast.duty) is 'Removes crawls that were to be kept until now, and snapshots that newer ones take the place of.';

create or replace function holdfast.duty_trim_events(p_duty holdfast.duty) returns bigint language plpgsql as $$
declare
  v_count bigint;
begin
  -- They are recorded in the order of time: if the first ones are not old, none is.
  delete from holdfast.event where id in (select e.id from holdfast.event e order by e.id limit p_duty.batch) and at < clock_timestamp() - p_duty.keep;
  get diagnostics v_count = row_count;
  return v_count;
end $$;
comment on function holdfast.duty_trim_events(holdfast.duty) is 'Deletes events older than keep.';

create or replace function holdfast.duty_trim_attempts(p_duty holdfast.duty) returns bigint language plpgsql as $$
-- Not those of open snapshots, which still answer for what a node may repeat.
declare
  v_count bigint;
begin
  delete from holdfast.attempt a using (
    select o.snapshot_id, o.crawl_id, o.fence from holdfast.attempt o
      where o.ended_at < clock_timestamp() - p_duty.keep
        and not exists (select from holdfast.snapshot_queue q where q.snapshot_id = o.snapshot_id and q.crawl_id = o.crawl_id)
      limit p_duty.batch) old
    where a.snapshot_id = old.snapshot_id and a.crawl_id = old.crawl_id and a.fence = old.fence;
  get diagnostics v_count = row_count;
  return v_count;
end $$;
comment on function holdfast.duty_trim_attempts(holdfast.duty) is 'Deletes attempts at sealed snapshots older than keep.';

create or replace function holdfast.duty_trim_processes(p_duty holdfast.duty) returns bigint language plpgsql as $$
declare
  v_count bigint;
begin
  delete from holdfast.process where id in
    (select p.id from holdfast.process p where p.status = 'exited' and p.ended_at < clock_timestamp() - p_duty.keep
       order by p.ended_at limit p_duty.batch for update skip locked);
  get diagnostics v_count = row_count;
  return v_count;
end $$;
comment on function holdfast.duty_trim_processes(holdfast.duty) is 'Deletes processes that ended longer ago than keep.';

create or replace function holdfast.duty_trim_runs(p_duty holdfast.duty) returns bigint language plpgsql as $$
declare
  v_count bigint;
begin
  delete from holdfast.duty_run where id in
    (select r.id from holdfast.duty_run r where r.began_at < clock_timestamp() - p_duty.keep order by r.began_at limit p_duty.batch);
  get diagnostics v_count = row_count;
  -- The last leads stay, so that the next epoch is known.
  delete from holdfast.runner_term t
    where t.ended_at < clock_timestamp() - p_duty.keep and t.epoch < (select max(epoch) - 100 from holdfast.runner_term);
  return v_count;
end $$;
comment on function holdfast.duty_trim_runs(holdfast.duty) is 'Deletes runs of duties older than keep.';
