-- The maintenance tasks, one function each: takes the task's row, changes at most one batch of things and
-- returns how many. A task may be repeated at any time and runs in the transaction of runner_maintenance().

create or replace function holdfast.maintenance_lapsed(p_task holdfast.maintenance_task)
  returns bigint language plpgsql as $$
-- One process per transaction, as in lapse_process. Claims do the same; this task covers runners, and times
-- without claims.
begin
  perform from holdfast.process
    where status = 'running' and lease_until <= clock_timestamp()
    order by lease_until limit 1 for update skip locked;
  if not found then return 0; end if;
  perform holdfast.lapse_process();
  return 1;
end $$;

create or replace function holdfast.maintenance_mend(p_task holdfast.maintenance_task)
  returns bigint language plpgsql as $$
-- Repairs rows that were changed by hand in psql so that no claim would visit a crawl again.
declare
  v_crawl record;
  v_count bigint := 0;
begin
  -- Crawls without open snapshots.
  for v_crawl in
    select c.id
      from holdfast.crawl c
      where c.status in ('queued', 'started') and c.owner_id is null
        and c.seeds_left = 0 and c.snapshots_open = 0 and not (c.status = 'queued' and c.retry_at is not null)
      order by c.id limit p_task.batch for update skip locked
  loop
    v_count := v_count + holdfast.crawl_settle(v_crawl.id)::integer;
  end loop;
  -- Seeds wait, but the crawl is never due.
  update holdfast.crawl
    set retry_at = clock_timestamp(), reason = 'it was never due'
    where id in (select c.id
                   from holdfast.crawl c
                   where c.status in ('queued', 'started') and c.owner_id is null and c.retry_at is null
                     and c.seeds_left > 0
                   order by c.id limit p_task.batch for update skip locked);
  if found then
    v_count := v_count + 1;
    perform holdfast.notify_workers();
  end if;
  insert into holdfast.crawl_queue (crawl_id, plugins, persona)
    select c.id, c.plugins, c.persona
      from holdfast.crawl c
      where c.status = 'started' and c.stopping_at is null and c.judged_to is null
        and not exists (select from holdfast.crawl_queue q where q.crawl_id = c.id)
      limit p_task.batch
    on conflict do nothing;
  -- Crawls with due snapshots that claims skip.
  for v_crawl in
    select q.crawl_id, d.due
      from holdfast.crawl_queue q
      join holdfast.crawl c on c.id = q.crawl_id and c.status = 'started'
      cross join lateral (select min(l.next_at) as due
                            from holdfast.crawl_lane l
                            where l.crawl_id = q.crawl_id) d
      where d.due <= clock_timestamp() and (q.ready_at is null or q.ready_at > clock_timestamp())
      order by q.crawl_id limit p_task.batch
  loop
    perform holdfast.crawl_wake(v_crawl.crawl_id, v_crawl.due);
    v_count := v_count + 1;
  end loop;
  return v_count;
end $$;

create or replace function holdfast.maintenance_hosts(p_task holdfast.maintenance_task)
  returns bigint language sql as $$
  -- Lowers the back-off of a host by one level for every ten minutes without a new complaint. updated_at says
  -- when it last changed, so repeating changes nothing.
  with changed as (
    update holdfast.host h
      set backoff_level = h.backoff_level - 1, updated_at = clock_timestamp(), updated_by = 'runner',
          backoff_until = case when h.backoff_level > 1 then h.backoff_until end,
          reason = case when h.backoff_level > 1 or h.paused then h.reason end
      where h.name in (select o.name
                         from holdfast.host o
                         where o.backoff_level > 0
                           and greatest(o.updated_at, o.backoff_until)
                             < clock_timestamp() - interval '10 minutes'
                         order by o.name limit (p_task).batch for update skip locked)
      returning 1
  )
  select count(*) from changed
$$;

create or replace function holdfast.maintenance_retention(p_task holdfast.maintenance_task)
  returns bigint language plpgsql as $$
-- Removes crawls past keep_until; if there are none, snapshots that newer ones have replaced.
declare
  v_count bigint;
begin
  perform holdfast.crawl_remove(c, 'retention') from holdfast.crawls_expired(p_task.batch) c;
  get diagnostics v_count = row_count;
  if v_count = 0 then v_count := least(holdfast.superseded_remove(50), p_task.batch); end if;
  return v_count;
end $$;

create or replace function holdfast.maintenance_trim_attempts(p_task holdfast.maintenance_task)
  returns bigint language plpgsql as $$
-- Keeps attempts of open snapshots: they are needed to answer a worker that repeats a call.
declare
  v_before constant text := holdfast.set_change_sealed('on');
  v_count bigint;
begin
  delete from holdfast.attempt a
    using (select o.snapshot_id, o.crawl_id, o.fence
             from holdfast.attempt o
             where o.ended_at < clock_timestamp() - p_task.keep
               and not exists (select
                                 from holdfast.snapshot_queue q
                                 where q.snapshot_id = o.snapshot_id and q.crawl_id = o.crawl_id)
             limit p_task.batch) o
    where a.snapshot_id = o.snapshot_id and a.crawl_id = o.crawl_id and a.fence = o.fence;
  get diagnostics v_count = row_count;
  perform holdfast.set_change_sealed(v_before);
  return v_count;
end $$;

create or replace function holdfast.trim_rules()
  returns table (task text, relation text, key text, at text, in_order_of text, may_go text)
  language sql immutable as $$
  -- in_order_of: a column with an index, in the order of "at". may_go: a condition on a row d.
  values
    ('trim_events', 'event', 'id', 'at', 'id', 'true'),
    -- A running worker uses it to identify its runner.
    ('trim_processes', 'process', 'id', 'ended_at', 'ended_at',
     $r$d.status = 'exited' and not exists (select from holdfast.process c
                                              where c.parent_id = d.id and c.status = 'running')$r$),
    ('trim_deliveries', 'delivery', 'id', 'ended_at', 'ended_at', $r$d.status <> 'waiting'$r$),
    ('trim_notices', 'notice', 'id', 'at', 'at', 'true'),
    ('trim_runs', 'maintenance_run', 'id', 'began_at', 'began_at', 'true'),
    -- The last terms stay, so that the next epoch is known.
    ('trim_runs', 'runner_term', 'epoch', 'ended_at', 'epoch',
     'd.epoch < (select max(epoch) - 100 from holdfast.runner_term)')
$$;

create or replace function holdfast.maintenance_trim(p_task holdfast.maintenance_task)
  returns bigint language plpgsql as $$
-- Removes records that are older than the task keeps them. Looks at the first batch in their order: if these
-- are not old, none is.
declare
  v_rule record;
  v_more bigint;
  v_count bigint := 0;
begin
  for v_rule in select * from holdfast.trim_rules() r where r.task = p_task.name loop
    execute format('delete from holdfast.%1$I where %2$I < $1 and %3$I in (select d.%3$I from holdfast.%1$I d '
                   'where %5$s order by d.%4$I limit $2)',
                   v_rule.relation, v_rule.at, v_rule.key, v_rule.in_order_of, v_rule.may_go)
      using clock_timestamp() - p_task.keep, p_task.batch;
    get diagnostics v_more = row_count;
    v_count := v_count + v_more;
  end loop;
  return v_count;
end $$;
