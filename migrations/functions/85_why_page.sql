-- Why a page is in its state: one sentence for people, and the facts behind it. See 87_why.sql.

create or replace function holdfast.recapture_next(p_reuse jsonb)
  returns text language sql immutable as $$
  -- The rule itself is reuse_limit() in lib/change/reuse.cpp, which puts its answer into "next".
  select case when p_reuse ->> 'next' = '' then 'the next capture first asks the site for its files again'
              else 'hooks run at the next capture: ' || (p_reuse ->> 'next') end
$$;
comment on function holdfast.recapture_next is 'Returns what the next capture of a URL does, for why.';

create or replace function holdfast.why_sealed(p_snapshot uuid, p_crawl uuid,
    out reason text, out facts jsonb)
  language plpgsql stable as $$
declare
  v_end holdfast.snapshot_sealed;
  v_worker text;
  v_missing text;
  v_hooks record;
begin
  select * into v_end
    from holdfast.snapshot_sealed e
    where e.snapshot_id = p_snapshot and e.crawl_id = p_crawl;
  select p.label into v_worker from holdfast.process p where p.id = v_end.owner_id;
  select jsonb_agg(jsonb_build_object('plugin', r.plugin, 'hook', r.hook_name, 'status', r.status,
                                      'error', left(r.error, 300)) order by r.hook_name) as them,
         -- Not what the reason says already.
         string_agg(t.said, '; ' order by r.hook_name)
           filter (where r.status = 'failed'
                     and (r.error = '' or strpos(coalesce(v_end.reason, ''), t.error) = 0)) as failed,
         left(string_agg(t.said, '; ' order by r.hook_name)
                filter (where r.status = 'skipped' and r.error <> ''), 400) as skipped
    into v_hooks
    from holdfast.archive_result r
    cross join lateral (select e.error, r.plugin || ': ' || e.error as said
                          from left(split_part(r.error, E'\n', 1), 120) e(error)) t
    where r.snapshot_id = p_snapshot and r.crawl_id = p_crawl and r.fence = v_end.fence
      and r.status in ('failed', 'skipped');
  -- The most frequent reason stands for all.
  v_missing := concat(
    (select format('; resources missing: %s of %s (mostly %s)', v_end.facts -> 'resources_missing',
                   v_end.facts -> 'resources', m.reason)
       from jsonb_object_keys(v_end.facts -> 'missing_reasons') m(reason)
       order by holdfast.fact_integer(v_end.facts -> 'missing_reasons', m.reason) desc, m.reason
       limit 1),
    (select '; in no record: ' || string_agg(pg_size_pretty(u.bytes) || ' from ' || u.host, ', '
                                             order by u.bytes desc, u.host)
       from (select m.host, holdfast.fact_integer(v_end.facts -> 'unrecorded', m.host) as bytes
               from jsonb_object_keys(v_end.facts -> 'unrecorded') m(host)
               order by bytes desc, m.host
               limit 3) u),
    case when v_end.facts ? 'files_from' then
      '; no hook ran, because the site sent the same files as for ' || (v_end.facts ->> 'files_from') end,
    (select '; ' || holdfast.recapture_next(f.reuse)
       from holdfast.fingerprint f
       where f.snapshot_id = p_snapshot and f.reuse ->> 'from' <> ''
       limit 1),
    (select '; cut short: ' || string_agg(c.step #>> '{}', ', ')
       from jsonb_path_query(v_end.facts, '$.cut[*]') c(step)));
  reason := rtrim('Finished at ' || holdfast.people_time(v_end.sealed_at) || coalesce(' by ' || v_worker, '')
    || ' with outcome ' || v_end.outcome || coalesce(': ' || nullif(v_end.reason, ''), '')
    || coalesce(' (' || v_hooks.failed || ')', '')
    || v_missing
    || coalesce('; skipped: ' || v_hooks.skipped, ''), '. ') || '.';
  facts := v_end.facts || jsonb_strip_nulls(jsonb_build_object(
    'outcome', v_end.outcome, 'why', v_end.reason, 'worker', v_worker, 'sealed_at', v_end.sealed_at,
    'fence', v_end.fence, 'attempts', v_end.attempts, 'lapses', v_end.lapses,
    'directory', v_end.directory, 'files', v_end.files, 'bytes', v_end.bytes, 'hooks', v_hooks.them));
end $$;

create or replace function holdfast.why_lapsed(p_worker holdfast.process)
  returns text language sql stable as $$
  select 'Its worker ' || p_worker.label || ' sent its last heartbeat at '
    || holdfast.people_time(p_worker.heartbeat_at) || ' and its lease has expired: another worker will take over.'
$$;

create or replace function holdfast.why_held(p_queue holdfast.snapshot_queue,
    out reason text, out facts jsonb)
  language plpgsql stable as $$
-- A worker has it. If none of its hooks runs, it may wait for the hooks of its crawl.
declare
  v_worker holdfast.process;
  v_hook record;
  v_hooks jsonb;
  v_session record;
begin
  select * into v_worker from holdfast.process p where p.id = p_queue.owner_id;
  select * into v_hook
    from holdfast.v_running r
    where r.snapshot_id = p_queue.snapshot_id
    order by r.background, r.started_at desc limit 1;
  select jsonb_agg(jsonb_build_object('plugin', r.plugin, 'hook', r.hook_name, 'pid', r.pid,
                                      'timeout', r.timeout, 'started_at', r.started_at,
                                      'background', r.background) order by r.started_at)
    into v_hooks
    from holdfast.v_running r
    where r.snapshot_id = p_queue.snapshot_id;
  select s.status, s.opened_at, s.reason,
         (select string_agg(h.plugin, ', ' order by h.hook_name)
            from holdfast.session_hook h
            where h.session_id = s.id and h.ended_at is null) as hooks
    into v_session
    from holdfast.session s
    where s.crawl_id = p_queue.crawl_id and s.process_id = v_worker.id
    order by s.ended_at is null desc, s.opened_at desc limit 1;
  reason := 'It has been running on ' || v_worker.label || ' since '
    || holdfast.people_time(p_queue.claimed_at) || case
    when v_hook.plugin is not null then
      ', now in hook ' || v_hook.plugin || '/' || v_hook.hook_name || ' for '
      || holdfast.people_duration(v_hook.running_for)
      || coalesce(' (limit ' || holdfast.people_duration(v_hook.timeout) || ')', '')
      || coalesce(', which has shown no progress since '
                  || holdfast.people_time(v_hook.no_progress_since), '')
    when v_session.status = 'opening' then
      ' and waits for the hooks of its crawl there, starting since '
      || holdfast.people_time(v_session.opened_at) || coalesce(' (' || v_session.hooks || ')', '')
    when v_session.status = 'failed' then
      ', where the hooks of its crawl have failed: ' || v_session.reason
    when v_session.status = 'draining' then
      ', where the hooks of its crawl are being ended' || coalesce(': ' || v_session.reason, '')
    else ', with no hook running right now' end || '.'
    || case when holdfast.process_state(v_worker) like 'no %'
         then ' Its worker sent its last heartbeat at ' || holdfast.people_time(v_worker.heartbeat_at)
              || '; its lease holds for ' || holdfast.people_duration(v_worker.lease_until - clock_timestamp())
              || ', then another worker takes over.'
         else '' end;
  if v_worker.status <> 'running' or v_worker.lease_until <= clock_timestamp() then
    reason := holdfast.why_lapsed(v_worker);
  end if;
  facts := jsonb_strip_nulls(jsonb_build_object(
    'worker', v_worker.label, 'worker_id', v_worker.id, 'hooks', v_hooks, 'claimed_at', p_queue.claimed_at,
    'fence', p_queue.fence, 'lease_until', v_worker.lease_until, 'heartbeat_at', v_worker.heartbeat_at,
    'session', v_session.status, 'no_progress_since', v_hook.no_progress_since));
end $$;

create or replace function holdfast.why_clock(p_at timestamptz, p_latest timestamptz)
  returns text language sql stable as $$
  -- For a due time that lies further ahead than its maximum (see 74_clock.sql).
  select case when p_at > p_latest and p_at < holdfast.retry_at_max()
              then ', which lies further ahead than ' || holdfast.people_time(p_latest)
                || ', the latest that it can be: the clock has gone back'
              else '' end
$$;

create or replace function holdfast.why_not_looked_at(p_queue holdfast.snapshot_queue)
  returns text language sql stable as $$
  -- Returns the reason if claims skip a due page because its crawl or lane lies too far ahead. NULL: they do
  -- not.
  select ', but no claim looks at it before ' || holdfast.people_time(w.at)
         || holdfast.why_clock(w.at, w.latest)
    from (select c.ready_at as at, clock_timestamp() + interval '2 minutes' as latest
            from holdfast.crawl_queue c
            where c.crawl_id = p_queue.crawl_id
          union all
          select l.next_at, holdfast.lane_due_latest(l.crawl_id, l.host)
            from holdfast.crawl_lane l
            where l.crawl_id = p_queue.crawl_id and l.host = p_queue.host) w
    where w.at > w.latest and w.at < holdfast.retry_at_max()
    order by w.at desc
    limit 1
$$;

create or replace function holdfast.why_snapshot(p_snapshot uuid, p_crawl uuid,
    out reason text, out facts jsonb)
  language plpgsql stable as $$
declare
  v_queue holdfast.snapshot_queue;
  v_crawl holdfast.crawl;
  v_more record; -- what another question says
  v_unable record;
begin
  select * into v_queue
    from holdfast.snapshot_queue q
    where q.snapshot_id = p_snapshot and q.crawl_id = p_crawl;
  select * into v_crawl from holdfast.crawl c where c.id = p_crawl;
  if v_queue.snapshot_id is null then
    v_more := holdfast.why_sealed(p_snapshot, p_crawl);
    reason := v_more.reason;
  elsif v_queue.owner_id is not null then
    v_more := holdfast.why_held(v_queue);
    reason := v_more.reason;
  else
    v_more := holdfast.why_crawl_waits(v_crawl);
    reason := 'It waits: ' || v_more.reason || '.';
  end if;
  if reason is not null then -- said already
  elsif v_queue.excluded then
    reason := 'It is outside the scope of its crawl: it is queued again if the scope is widened,'
      || ' and cancelled once nothing else of the crawl is open.';
  elsif v_queue.status = 'paused' then
    reason := 'It is paused' || coalesce(' (' || v_queue.reason || ')', '') || ', while its crawl goes on.';
  elsif holdfast.crawl_due(v_crawl) > greatest(clock_timestamp(), v_queue.retry_at) then
    reason := 'It waits: ' || holdfast.page_waits(v_queue, v_crawl) || '.';
  elsif v_crawl.status = 'queued' then
    v_more := holdfast.why_not_claimed();
    reason := 'It waits for its crawl to be started' || v_more.reason || '.';
  elsif v_queue.retry_at > clock_timestamp() then
    reason := 'It waits until ' || holdfast.people_time(v_queue.retry_at)
      || coalesce(': ' || v_queue.reason, '')
      || coalesce(' (after ' || holdfast.people_count(nullif(v_queue.attempts, 0), 'attempt') || ')', '')
      || holdfast.why_clock(v_queue.retry_at, holdfast.page_due_latest(
           v_queue.snapshot_id, v_queue.crawl_id, v_queue.host)) || '.';
  else
    v_more := holdfast.why_host_waits(v_queue.host, v_crawl);
    reason := ', but ' || v_more.reason;
    if reason is null then
      v_more := holdfast.why_not_claimed();
      v_unable := holdfast.why_unable(v_crawl);
      reason := coalesce(holdfast.why_not_looked_at(v_queue), ', but ' || v_unable.reason,
                         v_more.reason || coalesce('; ' || v_unable.lacking, ''));
      v_more.facts := v_more.facts || jsonb_strip_nulls(jsonb_build_object('lacking', v_unable.lacking));
    end if;
    reason := 'It has been due since ' || holdfast.people_time(v_queue.retry_at) || reason || '.';
  end if;
  facts := jsonb_strip_nulls(jsonb_build_object(
    'url', (select s.url from holdfast.snapshot s where s.id = p_snapshot),
    'crawl_id', p_crawl, 'crawl_status', v_crawl.status,
    'status', holdfast.page_status(v_queue.status, v_crawl.status),
    'attempts', v_queue.attempts,
    'retry_at', case when v_queue.owner_id is null
                  then nullif(holdfast.page_due(v_queue, v_crawl), holdfast.retry_at_max()) end,
    'lapses', v_queue.lapses, 'last_reason', v_queue.reason)) || v_more.facts;
end $$;

create or replace function holdfast.crawl_next(p_crawl uuid)
  returns table (snapshot_id uuid, due_at timestamptz) language plpgsql stable rows 1 as $$
begin
  return query
    select q.snapshot_id, greatest(q.retry_at, l.next_at)
      from (select *
              from holdfast.crawl_lane c
              where c.crawl_id = p_crawl
              order by c.next_at limit 1) l
      cross join lateral (select *
                            from holdfast.snapshot_queue s
                            where s.crawl_id = p_crawl and s.host = l.host and s.owner_id is null
                            order by s.retry_at limit 1) q;
end $$;
comment on function holdfast.crawl_next is
  'The snapshot of a crawl that is due next, of those that no worker has, and when; no row: there is none.';

create or replace function holdfast.next_work()
  returns table (url text, reason text) language plpgsql stable as $$
-- No row: nothing waits. A crawl that is not started has no page of its own yet.
begin
  return query
    select x.url, x.reason
      from ((select q.ready_at as due_at, s.url, w.reason
               from (select *
                       from holdfast.crawl_queue c
                       where c.ready_at is not null
                       order by c.ready_at limit 1) q
               cross join lateral holdfast.crawl_next(q.crawl_id) n
               join holdfast.snapshot s on s.id = n.snapshot_id
               cross join lateral holdfast.why_snapshot(n.snapshot_id, q.crawl_id) w)
            union all
            (select q.retry_at, q.first_url, w.reason
               from (select *
                       from holdfast.crawl c
                       where c.owner_id is null and c.retry_at < holdfast.retry_at_max()
                       order by c.retry_at limit 1) q
               cross join lateral holdfast.why_crawl(q.id) w)) x
      order by x.due_at limit 1;
end $$;
comment on function holdfast.next_work is
  'Returns the next due page, or the first URL of a crawl that is due before it, and why it waits.';
