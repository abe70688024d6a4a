-- After the server's clock has gone back (a wrong clock was set right, a standby with an earlier clock took
-- over), due times that were set before lie too far ahead: nothing would be claimed until the clock has come
-- there again. Each due time has a maximum, the furthest ahead of now that a function ever sets it. A row
-- beyond its maximum was written by an earlier clock and counts as due. What is parked (retry_at_max,
-- infinity) stays parked.
--
-- The runner's duty "clock" looks for such rows once a minute. Workers do so if no runner does. A step of
-- less than a minute is not looked for: it costs no more than that.

create or replace function holdfast.page_due_latest(p_snapshot uuid, p_crawl uuid, p_host text)
  returns timestamptz language sql stable as $$
  -- The furthest that the due time of a page can be ahead: after a failure, the longest delay with its
  -- jitter; or, if its host asked for a pause, the end of that; or what a person has said. A minute more,
  -- because the worker counts the delay.
  select greatest(clock_timestamp() + c.retry_max * 1.25 + interval '1 minute',
                  h.backoff_until + interval '1 minute', s.resume_at + interval '1 second')
    from holdfast.collection c
    left join holdfast.host h on h.name = p_host
    left join holdfast.snapshot s on s.id = p_snapshot and s.crawl_id = p_crawl
$$;
comment on function holdfast.page_due_latest(uuid, uuid, text) is
  'The furthest that the due time of a page of a host can be ahead; v_stuck reads it.';

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

create or replace function holdfast.clock_mend_leases(p_now timestamptz)
  returns bigint language plpgsql as $$
-- Leases, and the records of runners. A lease is not ended but begins again at p_now, so that no worker that
-- lives loses it.
declare
  v_count bigint;
begin
  update holdfast.process
    set lease_until = p_now + (lease_until - beat_at), beat_at = p_now
    where id in (select p.id
                   from holdfast.process p
                   where p.status = 'running' and p.beat_at > p_now + interval '1 minute'
                   order by p.id
                   for no key update skip locked);
  get diagnostics v_count = row_count;
  -- Earlier terms end where the next one begins; runs dated ahead have lost their order.
  update holdfast.runner_term t
    set began_at = least(t.began_at, n.at), valid_until = least(t.valid_until, n.at)
    from (select o.epoch, min(l.began_at) as at
            from holdfast.runner_term o
            join holdfast.runner_term l on l.epoch > o.epoch
            where o.valid_until > p_now + interval '1 minute' and o.ended_at is not null
            group by o.epoch) n
    where t.epoch = n.epoch;
  delete from holdfast.duty_run where began_at > p_now + interval '1 minute';
  return v_count;
end $$;

create or replace function holdfast.clock_mend_queue(p_now timestamptz)
  returns bigint language plpgsql as $$
-- Crawls, pages, hosts, and where claims look. In the order of locks; rows that others have locked wait for
-- the next call.
declare
  v_more bigint;
  v_count bigint := 0;
begin
  update holdfast.crawl c
    set deadline_at = p_now + c.max_time,
        retry_at = case when c.retry_at = c.deadline_at then p_now + c.max_time else c.retry_at end
    where c.id in (select o.id
                     from holdfast.crawl o
                     where o.status <> 'sealed' and o.deadline_at > p_now + o.max_time + interval '1 minute'
                     order by o.id
                     for no key update skip locked);
  get diagnostics v_more = row_count; v_count := v_count + v_more;
  update holdfast.crawl c
    set retry_at = p_now
    where c.id in (select o.id
                     from holdfast.crawl o
                     where o.status in ('queued', 'started')
                       and o.owner_id is null
                       and o.retry_at > p_now + interval '1 minute'
                       and o.retry_at is distinct from o.deadline_at
                       and o.retry_at is distinct from o.resume_at
                     order by o.id
                     for no key update skip locked);
  get diagnostics v_more = row_count; v_count := v_count + v_more;
  update holdfast.host h
    set last_at = case when h.last_at > p_now then p_now else h.last_at end,
        backoff_until = case when h.updated_at > p_now + interval '1 minute'
                               or h.backoff_until > p_now + interval '1 day 1 minute' then p_now
                             else h.backoff_until end,
        updated_at = least(h.updated_at, p_now)
    where h.name in (select o.name
                       from holdfast.host o
                       where o.last_at > p_now + interval '1 minute'
                          or o.updated_at > p_now + interval '1 minute'
                          or o.backoff_until > p_now + interval '1 day 1 minute'
                       order by o.name
                       for no key update skip locked);
  get diagnostics v_more = row_count; v_count := v_count + v_more;
  update holdfast.crawl_queue q
    set ready_at = case when q.ready_at > p_now then p_now else q.ready_at end,
        wakes = q.wakes + 1
    where q.crawl_id in (select o.crawl_id
                           from holdfast.crawl_queue o
                           where o.ready_at > p_now + interval '2 minutes'
                           order by o.crawl_id
                           for no key update skip locked);
  get diagnostics v_more = row_count; v_count := v_count + v_more;
  return v_count;
end $$;

create or replace function holdfast.clock_mend_pages(p_now timestamptz)
  returns bigint language plpgsql as $$
-- Pages that wait, then the lanes; after clock_mend_queue, because their maximum depends on their host.
declare
  v_more bigint;
  v_count bigint;
begin
  update holdfast.snapshot_queue q
    set retry_at = p_now
    from (select o.snapshot_id, o.crawl_id
            from holdfast.snapshot_queue o
            where o.status <> '' -- snapshot_queue_by_time
              and o.retry_at > p_now + (select c.retry_max from holdfast.collection c)
              and o.retry_at < holdfast.retry_at_max()
              and o.owner_id is null
              and o.retry_at > holdfast.page_due_latest(o.snapshot_id, o.crawl_id, o.host)
            order by o.crawl_id, o.snapshot_id
            limit 5000
            for update skip locked) o
    where q.snapshot_id = o.snapshot_id and q.crawl_id = o.crawl_id;
  get diagnostics v_count = row_count;
  update holdfast.crawl_lane l
    set next_at = p_now, low_at = '-infinity'
    from (select o.crawl_id, o.host
            from holdfast.crawl_lane o
            where (o.next_at > p_now + interval '1 minute'
                   and o.next_at < holdfast.retry_at_max()
                   and o.next_at > holdfast.lane_due_latest(o.crawl_id, o.host))
               or (o.low_at > p_now
                   and exists (select from holdfast.snapshot_queue q
                                 where q.crawl_id = o.crawl_id and q.host = o.host and q.owner_id is null
                                   and q.retry_at < o.low_at))
            order by o.crawl_id, o.host
            for update skip locked) o
    where l.crawl_id = o.crawl_id and l.host = o.host;
  get diagnostics v_more = row_count;
  return v_count + v_more;
end $$;

create or replace function holdfast.clock_mend_rest(p_now timestamptz)
  returns bigint language plpgsql as $$
-- robots.txt, binaries, schedules, webhooks.
declare
  v_more bigint;
  v_count bigint := 0;
begin
  update holdfast.robots r
    set fetch_until = case when r.fetch_until > p_now + interval '2 minutes' then p_now
                           else r.fetch_until end,
        expires_at = case when r.fetched_at > p_now + interval '1 minute' then p_now else r.expires_at end,
        fetched_at = case when r.fetched_at > p_now then p_now else r.fetched_at end
    where r.origin in (select o.origin
                         from holdfast.robots o
                         where o.fetched_at > p_now + interval '1 minute'
                            or o.fetch_until > p_now + interval '2 minutes'
                         order by o.origin
                         for no key update skip locked);
  get diagnostics v_more = row_count; v_count := v_count + v_more;
  update holdfast.binary b
    set retry_at = p_now
    where b.retry_at > p_now + interval '31 minutes';
  get diagnostics v_more = row_count; v_count := v_count + v_more;
  -- Only schedules that an earlier clock has run or made: the next run of each is computed again.
  update holdfast.schedule s
    set next_run_at = holdfast.schedule_next(s.every, s.time_zone, p_now),
        last_run_at = case when s.last_run_at > p_now then p_now else s.last_run_at end,
        created_at = least(s.created_at, p_now)
    where s.enabled and greatest(s.last_run_at, s.created_at) > p_now + interval '1 minute';
  get diagnostics v_more = row_count; v_count := v_count + v_more;
  update holdfast.webhook w
    set hold_until = p_now
    where w.hold_until > p_now + interval '6 minutes';
  get diagnostics v_more = row_count; v_count := v_count + v_more;
  update holdfast.delivery d
    set retry_at = p_now
    where d.status = 'waiting'
      and d.retry_at > p_now + greatest(holdfast.webhook_back_off(d.attempts) * 1.25, interval '6 minutes');
  get diagnostics v_more = row_count;
  return v_count + v_more;
end $$;

create or replace function holdfast.clock_went_back()
  returns bigint language plpgsql as $$
-- Makes due what lies further ahead than its maximum. May be called at any time. Leaves locked rows of the
-- queue to the next call. Returns how many rows it changed.
declare
  v_now constant timestamptz := clock_timestamp();
  v_count bigint;
begin
  v_count := holdfast.clock_mend_leases(v_now);
  v_count := v_count + holdfast.clock_mend_rest(v_now);
  v_count := v_count + holdfast.clock_mend_queue(v_now);
  v_count := v_count + holdfast.clock_mend_pages(v_now);
  if v_count > 0 then perform holdfast.ring(); end if;
  return v_count;
end $$;

create or replace function holdfast.duty_clock(p_duty holdfast.duty)
  returns bigint language plpgsql as $$
begin
  return holdfast.clock_went_back();
end $$;

create or replace function holdfast.clock_check()
  returns bigint language plpgsql as $$
-- For workers: does the duty "clock" if it is overdue by more than its interval, or its own due time lies too
-- far ahead. So it runs once in that time, however many workers there are.
declare
  v_now constant timestamptz := clock_timestamp();
begin
  update holdfast.duty
    set last_run_at = v_now, next_at = v_now + every, runs = runs + 1
    where name in (select d.name
                     from holdfast.duty d
                     where d.name = 'clock'
                       and d.enabled
                       and (d.next_at < v_now - d.every or d.next_at > v_now + d.every)
                     for update skip locked);
  if not found then return 0; end if;
  return holdfast.clock_went_back();
end $$;
comment on function holdfast.clock_check()
  is 'Does the duty "clock" if no runner has: mends due times after the clock has gone back.';
