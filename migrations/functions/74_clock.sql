-- After the server's clock was set back (a wrong clock was corrected, a standby with an earlier clock took
-- over), due times that were set before lie too far ahead: nothing would be claimed until the clock has come
-- there again. Each due time has a maximum, the furthest ahead of now that a function ever sets it. A row
-- beyond its maximum was written by an earlier clock and counts as due. Parked rows (retry_at_max, infinity)
-- stay parked.
--
-- The runner's task "clock" looks for such rows once a minute. Workers do so if no runner does. A step of
-- less than a minute is ignored: it costs no more than that.

create or replace function holdfast.page_due_latest(p_snapshot uuid, p_crawl uuid, p_host text)
  returns timestamptz language sql stable as $$
  -- Returns the furthest that the due time of a page can be ahead: after a failure, the longest delay with
  -- its jitter; or, if its host requested a pause, the end of that; or the time that a user set. A minute
  -- more, because the worker counts the delay.
  select greatest(clock_timestamp() + c.retry_max * 1.25 + interval '1 minute',
                  h.backoff_until + interval '1 minute', s.resume_at + interval '1 second')
    from holdfast.collection c
    left join holdfast.host h on h.name = p_host
    left join holdfast.snapshot s on s.id = p_snapshot and s.crawl_id = p_crawl
$$;
comment on function holdfast.page_due_latest is
  'Returns the furthest that the due time of a page of a host can be ahead, for v_stuck.';

create or replace function holdfast.lane_due_latest(p_crawl uuid, p_host text)
  returns timestamptz language sql stable as $$
  -- The furthest that a lane can be ahead: a minute, or until its host or the first of its pages is due.
  select greatest(clock_timestamp() + interval '1 minute',
                  h.last_at + holdfast.host_delay(h, c), h.backoff_until,
                  (select min(q.retry_at)
                     from holdfast.snapshot_queue q
                     where q.crawl_id = p_crawl and q.host = p_host and q.owner_id is null))
    from (values (1)) one
    left join holdfast.host h on h.name = p_host
    left join holdfast.crawl c on c.id = p_crawl
$$;

create or replace function holdfast.clock_rules()
  returns table (relation text, key text, late text, mended text) language sql immutable as $$
  -- In the order of locks. late: a row lies beyond its maximum; $1: now.
  values
    -- A lease begins again instead of ending, so that no live worker loses it.
    ('process', 'id', $r$status = 'running' and heartbeat_at > $1 + interval '1 minute'$r$,
     'lease_until = $1 + (lease_until - heartbeat_at), heartbeat_at = $1'),
    ('robots', 'origin',
     $r$fetched_at > $1 + interval '1 minute' or fetch_until > $1 + interval '2 minutes'$r$,
     $r$fetch_until = case when fetch_until > $1 + interval '2 minutes' then $1 else fetch_until end,
        expires_at = case when fetched_at > $1 + interval '1 minute' then $1 else expires_at end,
        fetched_at = case when fetched_at > $1 then $1 else fetched_at end$r$),
    ('binary', 'machine_id, name', $r$retry_at > $1 + interval '31 minutes'$r$, 'retry_at = $1'),
    -- Only schedules that an earlier clock has run or made: the next run of each is computed again.
    ('schedule', 'id', $r$enabled and greatest(last_run_at, created_at) > $1 + interval '1 minute'$r$,
     $r$next_run_at = holdfast.schedule_next(every, time_zone, $1),
        last_run_at = case when last_run_at > $1 then $1 else last_run_at end,
        created_at = least(created_at, $1)$r$),
    ('webhook', 'name', $r$hold_until > $1 + interval '6 minutes'$r$, 'hold_until = $1'),
    ('delivery', 'id',
     $r$status = 'waiting'
        and retry_at > $1 + greatest(holdfast.webhook_back_off(attempts) * 1.25, interval '6 minutes')$r$,
     'retry_at = $1'),
    ('crawl', 'id', $r$status <> 'sealed' and deadline_at > $1 + max_time + interval '1 minute'$r$,
     $r$deadline_at = $1 + max_time,
        retry_at = case when retry_at = deadline_at then $1 + max_time else retry_at end$r$),
    ('crawl', 'id',
     $r$status in ('queued', 'started') and owner_id is null and retry_at > $1 + interval '1 minute'
        and retry_at is distinct from deadline_at and retry_at is distinct from resume_at$r$,
     'retry_at = $1'),
    ('host', 'name',
     $r$last_at > $1 + interval '1 minute' or updated_at > $1 + interval '1 minute'
        or backoff_until > $1 + interval '1 day 1 minute'$r$,
     $r$last_at = case when last_at > $1 then $1 else last_at end,
        backoff_until = case when updated_at > $1 + interval '1 minute'
                               or backoff_until > $1 + interval '1 day 1 minute' then $1
                             else backoff_until end,
        updated_at = least(updated_at, $1)$r$),
    ('crawl_queue', 'crawl_id', $r$ready_at > $1 + interval '2 minutes'$r$,
     'ready_at = $1, wakes = wakes + 1'),
    -- After the hosts, on which the maximum of pages and lanes depends. status: snapshot_queue_by_time
    ('snapshot_queue', 'crawl_id, snapshot_id',
     $r$status <> '' and retry_at > $1 + (select c.retry_max from holdfast.collection c)
        and retry_at < holdfast.retry_at_max() and owner_id is null
        and retry_at > holdfast.page_due_latest(snapshot_id, crawl_id, host)$r$,
     'retry_at = $1'),
    ('crawl_lane', 'crawl_id, host',
     $r$(next_at > $1 + interval '1 minute' and next_at < holdfast.retry_at_max()
           and next_at > holdfast.lane_due_latest(crawl_id, host))
        or (low_at > $1
            and exists (select from holdfast.snapshot_queue q
                          where q.crawl_id = crawl_lane.crawl_id and q.host = crawl_lane.host
                            and q.owner_id is null and q.retry_at < crawl_lane.low_at))$r$,
     $r$next_at = $1, low_at = '-infinity'$r$)
$$;

create or replace function holdfast.clock_went_back()
  returns bigint language plpgsql as $$
-- Makes due what lies further ahead than its maximum. May be called at any time. Leaves rows that others have
-- locked, and what is more than a batch, to the next call. Returns how many rows it changed.
declare
  c_now constant timestamptz := clock_timestamp();
  v_rule record;
  v_more bigint;
  v_count bigint := 0;
begin
  -- Earlier terms end where the next one begins; runs dated ahead have lost their order.
  update holdfast.runner_term t
    set began_at = least(t.began_at, n.at), valid_until = least(t.valid_until, n.at)
    from (select o.epoch, min(l.began_at) as at
            from holdfast.runner_term o
            join holdfast.runner_term l on l.epoch > o.epoch
            where o.valid_until > c_now + interval '1 minute' and o.ended_at is not null
            group by o.epoch) n
    where t.epoch = n.epoch;
  delete from holdfast.maintenance_run where began_at > c_now + interval '1 minute';
  for v_rule in select * from holdfast.clock_rules() loop
    execute format('update holdfast.%1$I set %4$s where (%2$s) in ('
                   'select %2$s from holdfast.%1$I where %3$s order by %2$s limit 5000 '
                   'for no key update skip locked)',
                   v_rule.relation, v_rule.key, v_rule.late, v_rule.mended)
      using c_now;
    get diagnostics v_more = row_count;
    v_count := v_count + v_more;
  end loop;
  if v_count > 0 then perform holdfast.notify_workers(); end if;
  return v_count;
end $$;

create or replace function holdfast.maintenance_clock(p_task holdfast.maintenance_task)
  returns bigint language plpgsql as $$
begin
  return holdfast.clock_went_back();
end $$;

create or replace function holdfast.clock_check()
  returns bigint language plpgsql as $$
-- For workers: runs the task "clock" if it is overdue by more than its interval, or its own due time lies too
-- far ahead. So it runs once in that time, however many workers there are.
declare
  v_now constant timestamptz := clock_timestamp();
begin
  update holdfast.maintenance_task
    set last_run_at = v_now, next_at = v_now + every, runs = runs + 1
    where name in (select d.name
                     from holdfast.maintenance_task d
                     where d.name = 'clock'
                       and d.enabled
                       and (d.next_at < v_now - d.every or d.next_at > v_now + d.every)
                     for update skip locked);
  if not found then return 0; end if;
  return holdfast.clock_went_back();
end $$;
comment on function holdfast.clock_check is
  'Runs the task "clock" if no runner has: corrects due times after the clock was set back.';
