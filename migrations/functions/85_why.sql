-- Why a crawl, snapshot, process, host or webhook is in its state: one sentence for people, and the facts
-- behind it. Reads only. Each question takes a few index look-ups, however large the collection is. The
-- questions are asked in the order in which things hold work back: has it ended, who owns it, what parks it,
-- what delays it, who could claim it. A why_*() returns one row; its reason is null if it holds nothing back.

create or replace function holdfast.people_time(p_at timestamptz)
  returns text language sql stable as $$
  select to_char(p_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS') || ' UTC'
$$;
comment on function holdfast.people_time is 'Returns a time as sentences have it, in UTC.';

create or replace function holdfast.people_duration(p_span interval)
  returns text language sql immutable as $$
  select case when s < 1 then round(s * 1000) || ' ms'
              when s < 120 then floor(s) || ' s'
              when s < 7200 then floor(s / 60) || ' min'
              when s < 172800 then floor(s / 3600) || ' h'
              else floor(s / 86400) || ' days' end
    from (select greatest(extract(epoch from p_span), 0) as s) x
$$;

create or replace function holdfast.people_count(p_count bigint, p_what text)
  returns text language sql immutable as $$
  select p_count || ' ' || p_what || case when p_count = 1 then '' else 's' end
$$;
comment on function holdfast.people_count is 'Returns a number with its noun: 1 page, 2 pages.';

create or replace function holdfast.command_text(p_reason text)
  returns text language sql immutable as $$
  -- Takes from a reason of control_reason() the user who gave the command, and why.
  select coalesce(substring(p_reason from '((?: by |: ).*)$'), '')
$$;

create or replace function holdfast.why_not_claimed(out reason text, out facts jsonb)
  language plpgsql stable as $$
-- Something is due and no worker has it. The reason is the second half of a sentence, with its conjunction.
declare
  v_all record;
  v_last record;
  v_spawns constant boolean := exists (
    select
      from holdfast.process r
      where r.worker_type = 'worker_runner' and r.status = 'running' and r.lease_until > clock_timestamp()
        and (r.capabilities ->> 'spawns')::boolean);
begin
  select count(*) as count, coalesce(sum(w.slots), 0) as slots, coalesce(sum(w.held), 0) as held,
         count(*) filter (where w.state = 'draining') as draining,
         count(*) filter (where w.state = 'paused') as paused,
         count(*) filter (where w.state = 'refusing') as refusing,
         count(*) filter (where w.state = 'full') as full,
         min(w.label || ' says: ' || w.says) filter (where w.state = 'refusing') as says
    into v_all
    from (select p.label, p.slots, h.held, s.says,
                 case when p.draining or p.request is not null then 'draining'
                      when p.paused_at is not null then 'paused'
                      when s.says is not null then 'refusing'
                      when h.held >= p.slots then 'full' end as state
            from holdfast.process p
            cross join lateral (select nullif(p.stats ->> 'not_claiming', '') as says) s
            cross join lateral (select count(*) as held
                                  from holdfast.snapshot_queue q
                                  where q.owner_id = p.id) h
            where p.process_type = 'worker' and p.status = 'running'
              and p.lease_until > clock_timestamp()) w;
  select p.label, coalesce(p.ended_at, p.lease_until) as at,
         coalesce(p.exit_reason, 'lease lapsed') as how
    into v_last
    from holdfast.process p
    where v_all.count = 0 and p.process_type = 'worker'
    order by coalesce(p.ended_at, p.lease_until) desc nulls last limit 1;
  reason := case
    when v_all.count = 0 and v_spawns then
      ', and the runner starts a worker for it in a moment'
    when v_all.count = 0 then
      ', but no worker is running'
      || coalesce(' (the last one, ' || v_last.label || ', ended at ' || holdfast.people_time(v_last.at)
                  || ': ' || v_last.how || ')', ', and none has run before: holdfast run --daemon starts one')
    when v_all.draining + v_all.paused + v_all.refusing + v_all.full < v_all.count then
      ', and a worker with a free slot will claim it in a moment'
    else
      ', but no worker can claim: '
      || concat_ws(', ',
                   nullif(v_all.full, 0) || ' full (' || holdfast.people_count(v_all.slots, 'slot') || ')',
                   nullif(v_all.draining, 0) || ' draining', nullif(v_all.paused, 0) || ' paused',
                   nullif(v_all.refusing, 0) || ' not claiming (' || v_all.says || ')') end;
  facts := jsonb_strip_nulls(jsonb_build_object(
    'workers', v_all.count, 'slots', v_all.slots, 'held', v_all.held, 'draining', v_all.draining,
    'paused', v_all.paused, 'not_claiming', v_all.refusing, 'full', v_all.full, 'says', v_all.says,
    'last_worker', v_last.label, 'last_worker_ended_at', v_last.at, 'last_worker_ended_by', v_last.how));
end $$;

create or replace function holdfast.why_unable(p_crawl holdfast.crawl, out reason text, out lacking text)
  language plpgsql stable as $$
-- lacking: the running workers that cannot run its plugins or use its persona, for users. reason: if that is
-- all of them, or its persona is signed out.
declare
  v_all boolean;
  v_plugins constant text[] := holdfast.plugin_names(p_crawl.plugins);
begin
  select bool_and(u.says is not null), string_agg(p.label || u.says, ', ' order by p.started_at)
    into v_all, lacking
    from holdfast.process p
    cross join lateral (select string_agg('"' || w.name || '"', ', ' order by w.name) as names
                          from unnest(v_plugins) w(name)
                          where not p.capabilities -> 'plugins' ? w.name) n
    cross join lateral (select case when holdfast.can_run(p.capabilities, v_plugins)
                                    then ': ' || holdfast.persona_lacks(p_crawl.persona, p.capabilities)
                                    when p.capabilities ? 'lacks' then ': ' || (p.capabilities ->> 'lacks')
                                    else ' has no plugin ' || n.names end as says) u
    where p.process_type = 'worker' and p.status = 'running' and p.lease_until > clock_timestamp();
  select 'persona "' || p.name || '" is signed out since ' || holdfast.people_time(p.signed_out_at) || ' ('
         || p.signed_out_reason || '): sign in again, or holdfast persona import ' || p.name
         || coalesce('; the last sign-in has failed: ' || s.problem, '')
    into reason
    from holdfast.persona p
    left join holdfast.persona_sign_in s on s.persona = p.name
    where p.name = p_crawl.persona and p.signed_out_at is not null;
  if v_all and reason is null then
    reason := 'no running worker can take pages of its crawl: ' || lacking;
  end if;
end $$;

create or replace function holdfast.crawl_lacks(p_crawl uuid, out lacks text, out may_pass boolean)
  language sql stable as $$
  select case when p.reason is null then r.says else coalesce(p.lacking, p.reason) end, p.reason is null
    from holdfast.crawl c
    cross join lateral holdfast.why_unable(c) p
    cross join lateral (select case when bool_and(not w.draining and w.stats ->> 'not_claiming' <> '')
                                    then string_agg(w.label || ': ' || (w.stats ->> 'not_claiming'), ', '
                                                    order by w.started_at) end as says
                          from holdfast.process w
                          where w.process_type = 'worker' and w.status = 'running'
                            and w.lease_until > clock_timestamp()
                            and holdfast.can_run(w.capabilities, holdfast.plugin_names(c.plugins))
                            and holdfast.persona_lacks(c.persona, w.capabilities) is null) r
    where c.id = p_crawl
      and (p.reason is not null or r.says is not null)
      and not exists (select
                        from holdfast.snapshot_queue q
                        where q.crawl_id = p_crawl and q.owner_id is not null)
$$;
comment on function holdfast.crawl_lacks is
  'Returns what all running workers lack for a crawl without a page in work; NULL: one of them can take it. '
  'may_pass: they lack free slots or space, or their network or clock is wrong, not a plugin or the key of a '
  'persona.';

create or replace function holdfast.why_host_waits(p_host text, p_crawl holdfast.crawl,
    out reason text, out facts jsonb)
  language plpgsql stable as $$
-- Returns what keeps snapshots of a crawl and host from being claimed now.
declare
  v_host holdfast.host;
  v_limits record;
  v_next timestamptz;
  v_held bigint;
begin
  select * into v_host from holdfast.host h where h.name = p_host;
  v_limits := holdfast.host_limits(v_host, p_crawl);
  v_next := v_host.last_at + v_limits.delay;
  select count(*) into v_held
    from (select
            from holdfast.snapshot_queue q
            where q.host = p_host and q.claimed_at is not null
            limit v_limits.cap) x;
  reason := 'its host ' || p_host || case
    when v_host.paused then
      ' is paused' || holdfast.command_text(v_host.reason)
    when v_host.backoff_until > clock_timestamp() then
      ' is in back-off until ' || holdfast.people_time(v_host.backoff_until)
      || coalesce(': ' || v_host.reason, '')
    when v_next > clock_timestamp() then
      ' is limited to one page every ' || holdfast.people_duration(v_limits.delay)
      || case when v_limits.delay > coalesce(v_host.min_delay, p_crawl.host_delay, '0')
              then ' by crawls that follow its robots.txt' else '' end
      || ', the next at ' || holdfast.people_time(v_next)
      || holdfast.why_clock(v_next, clock_timestamp() + v_limits.delay + interval '1 minute')
    when v_held >= v_limits.cap then
      ' has reached its limit of ' || holdfast.people_count(v_held, 'snapshot') || ' at once' end;
  facts := jsonb_strip_nulls(jsonb_build_object('host', to_jsonb(v_host), 'host_held', v_held));
end $$;

create or replace function holdfast.why_crawl_waits(p_crawl holdfast.crawl, out reason text, out facts jsonb)
  language plpgsql stable as $$
-- Returns what holds back all pages of a crawl that no worker has.
declare
  v_all holdfast.collection;
  v_held bigint;
begin
  select * into v_all from holdfast.collection;
  reason := case
    when p_crawl.stopping_at is not null then
      'its crawl has been stopping since ' || holdfast.people_time(p_crawl.stopping_at)
      || coalesce(' (' || nullif(p_crawl.changed_by, '') || ')', '')
      || '; its open snapshots are being cancelled'
    when p_crawl.status = 'paused' then
      'its crawl has been paused since ' || holdfast.people_time(p_crawl.paused_at)
      || holdfast.command_text(p_crawl.reason)
    when v_all.paused_at is not null then
      'the whole collection has been paused since ' || holdfast.people_time(v_all.paused_at)
      || holdfast.command_text(v_all.paused_by)
    when p_crawl.deadline_at <= clock_timestamp() then
      'its crawl reached its time limit at ' || holdfast.people_time(p_crawl.deadline_at)
      || ' (max_time ' || holdfast.people_duration(p_crawl.max_time) || ')' end;
  if reason is null and p_crawl.max_parallel is not null then
    select count(*) into v_held
      from (select
              from holdfast.process p
              join holdfast.snapshot_queue q on q.owner_id = p.id
              where p.status = 'running' and q.crawl_id = p_crawl.id
              limit p_crawl.max_parallel) x;
    if v_held >= p_crawl.max_parallel then
      reason := 'its crawl has reached its limit of ' || holdfast.people_count(v_held, 'snapshot')
        || ' at once';
    end if;
  end if;
  facts := jsonb_strip_nulls(jsonb_build_object(
    'stopping_at', p_crawl.stopping_at, 'paused_at', p_crawl.paused_at,
    'paused_by', coalesce(v_all.paused_by,
                          case p_crawl.status when 'paused' then nullif(p_crawl.changed_by, '') end),
    'collection_paused_at', v_all.paused_at, 'deadline_at', p_crawl.deadline_at,
    'max_parallel', p_crawl.max_parallel, 'crawl_held', v_held));
end $$;

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

create or replace function holdfast.why_crawl_sealed(p_crawl holdfast.crawl)
  returns text language sql stable as $$
  -- One failed snapshot stands for all. Only the latest are searched, because a crawl may be large.
  select 'Finished at ' || holdfast.people_time(p_crawl.sealed_at) || ' with outcome ' || p_crawl.outcome
    || ': ' || holdfast.people_count(p_crawl.snapshots_total, 'snapshot')
    || coalesce(', ' || nullif(p_crawl.snapshots_partial, 0) || ' partial', '')
    || coalesce(', ' || nullif(p_crawl.snapshots_failed, 0) || ' failed', '')
    || coalesce(', ' || nullif(p_crawl.snapshots_cancelled, 0) || ' cancelled', '')
    || coalesce(case when p_crawl.stop_reason like 'cancel%' then ', because it was cancelled'
                     else ', cut short by its limit ' || p_crawl.stop_reason end, '') || '.'
    || coalesce((select ' The last one that failed: ' || lower(left(w.reason, 1)) || substr(w.reason, 2)
                   from (select l.*
                           from (select e.*
                                   from holdfast.snapshot_sealed e
                                   where e.crawl_id = p_crawl.id
                                   order by e.sealed_at desc limit 1000) l
                           where l.outcome in ('failed', 'quarantined')
                           order by l.sealed_at desc limit 1) f
                   cross join lateral holdfast.why_sealed(f.snapshot_id, p_crawl.id) w), '')
$$;

create or replace function holdfast.why_crawl_open(p_crawl holdfast.crawl, out reason text, out facts jsonb)
  language plpgsql stable as $$
-- For a crawl that is not sealed and that no command, deadline or pause holds back.
declare
  v_owner holdfast.process;
  v_held record;
  v_more record;
  v_next uuid;
begin
  select * into v_owner from holdfast.process p where p.id = p_crawl.owner_id;
  select count(*) as count, min(p.label) as worker, count(distinct p.id) as workers,
         count(*) filter (where s.silent) as silent,
         max(p.heartbeat_at) filter (where s.silent) as heartbeat_at
    into v_held
    from holdfast.process p
    join holdfast.snapshot_queue q on q.owner_id = p.id
    cross join lateral (select holdfast.process_state(p) like any ('{no %,lapsed}') as silent) s
    where p.status = 'running' and q.crawl_id = p_crawl.id;
  facts := jsonb_build_object('held', v_held.count, 'workers', v_held.workers);
  if p_crawl.owner_id is not null then
    reason := case
      when v_owner.status = 'running' and v_owner.lease_until > clock_timestamp() then
        'Its seeds are being expanded by ' || v_owner.label || ', ' || p_crawl.seeds_left || ' left.'
      else holdfast.why_lapsed(v_owner) end;
    facts := facts || jsonb_build_object('worker', v_owner.label, 'lease_until', v_owner.lease_until);
  elsif v_held.count > 0 then
    reason := v_held.count || ' of its snapshots ' || case v_held.count when 1 then 'is' else 'are' end
      || ' running on ' || case v_held.workers when 1 then v_held.worker else v_held.workers || ' workers' end
      || coalesce(', ' || nullif(p_crawl.snapshots_open - v_held.count, 0) || ' more wait', '')
      || coalesce('; the worker of ' || nullif(v_held.silent, 0) || ' sent its last heartbeat at '
                  || holdfast.people_time(v_held.heartbeat_at)
                  || ': another takes over once its lease has expired', '') || '.';
  elsif p_crawl.retry_at > clock_timestamp() then
    reason := 'It waits until ' || holdfast.people_time(p_crawl.retry_at)
      || coalesce(': ' || p_crawl.reason, '') || '.';
  elsif p_crawl.status = 'queued' or p_crawl.seeds_left > 0 then
    v_more := holdfast.why_not_claimed();
    reason := coalesce('Its ' || holdfast.people_count(nullif(p_crawl.seeds_left, 0), 'URL')
      || case p_crawl.seeds_left when 1 then ' waits' else ' wait' end || ' for a worker to queue '
      || case p_crawl.seeds_left when 1 then 'it' else 'them' end, 'It waits to be started') || v_more.reason || '.';
    facts := facts || v_more.facts;
  else -- Started, and nothing of it runs: what the next of its snapshots says.
    select n.snapshot_id into v_next from holdfast.crawl_next(p_crawl.id) n;
    v_more := holdfast.why_snapshot(v_next, p_crawl.id);
    reason := coalesce('None of its ' || holdfast.people_count(p_crawl.snapshots_open, 'open snapshot')
      || ' is running. The next one: ' || lower(left(v_more.reason, 1)) || substr(v_more.reason, 2),
      'It has nothing left to do, and the runner will seal it on its next round.');
    facts := facts || jsonb_build_object('next_snapshot', v_next, 'next', v_more.facts);
  end if;
  reason := reason || case
    when p_crawl.stop_reason not like 'cancel%' then
      ' It has reached its limit ' || p_crawl.stop_reason || ' and takes no further pages.'
    else '' end;
end $$;

create or replace function holdfast.why_crawl(p_crawl uuid, out reason text, out facts jsonb)
  language plpgsql stable as $$
declare
  v_crawl holdfast.crawl;
  v_more record;
begin
  select * into v_crawl from holdfast.crawl c where c.id = p_crawl;
  v_more := holdfast.why_crawl_waits(v_crawl);
  if v_crawl.status = 'sealed' then
    reason := holdfast.why_crawl_sealed(v_crawl);
  elsif v_more.reason is null or v_more.facts ? 'crawl_held' then
    v_more := holdfast.why_crawl_open(v_crawl);
    reason := v_more.reason;
  else
    reason := case when v_more.reason like 'its crawl%' then 'It' || substr(v_more.reason, 10)
                   else 'It waits: ' || v_more.reason end || '.';
  end if;
  facts := jsonb_strip_nulls(v_more.facts || jsonb_build_object(
    'url', v_crawl.first_url, 'status', v_crawl.status, 'total', v_crawl.snapshots_total,
    'open', v_crawl.snapshots_open, 'succeeded', v_crawl.snapshots_succeeded,
    'partial', v_crawl.snapshots_partial, 'failed', v_crawl.snapshots_failed,
    'seeds_left', v_crawl.seeds_left, 'cancelled', nullif(v_crawl.snapshots_cancelled, 0),
    'max_urls', nullif(v_crawl.max_urls, 0), 'stop_reason', v_crawl.stop_reason,
    'outcome', v_crawl.outcome, 'sealed_at', v_crawl.sealed_at));
end $$;

create or replace function holdfast.why_runner(p_runner holdfast.process)
  returns text language sql stable as $$
  select case
    when p_runner.worker_type = 'worker_runner' then
      'It is the leading runner, with epoch ' || p_runner.epoch || '; its lease has '
      || holdfast.people_duration(p_runner.lease_until - clock_timestamp()) || ' left'
      || case p_runner.request when 'leave' then '; a newer runner has asked it to leave' else '' end
    else
      case when p_runner.standby then 'It stands by' else 'It waits to lead' end
      || coalesce(' while ' || (select p.label
                                  from holdfast.process p
                                  where p.worker_type = 'worker_runner' and p.status = 'running')
                  || ' leads', ', but no runner leads yet') end
$$;

create or replace function holdfast.why_process(p_process uuid, out reason text, out facts jsonb)
  language plpgsql stable as $$
declare
  v_row holdfast.process;
  v_held bigint;
  v_them text; -- the snapshots it has
  v_left interval;
begin
  select * into v_row from holdfast.process p where p.id = p_process;
  select count(*) into v_held from holdfast.snapshot_queue q where q.owner_id = p_process;
  v_them := holdfast.people_count(v_held, 'snapshot');
  v_left := v_row.lease_until - clock_timestamp();
  reason := case
    when v_row.status = 'exited' then
      'It ended at ' || holdfast.people_time(v_row.ended_at) || ': '
      || coalesce(v_row.exit_reason, 'it gave no reason')
      || coalesce(' (exit code ' || v_row.exit_code || ')', '')
    when v_left <= '0' then
      'It sent its last heartbeat at ' || holdfast.people_time(v_row.heartbeat_at) || ' and its lease has expired; '
      || case v_held when 0 then 'it holds nothing' else 'other workers will take over its ' || v_them end
    when v_row.process_type = 'runner' then
      holdfast.why_runner(v_row)
    when v_row.process_type = 'serve' then
      case when v_row.standby then 'It waits until another process no longer listens on '
           else 'It answers requests on ' end || v_row.worker_type
    when v_row.process_type = 'command' then
      'It has been running since ' || holdfast.people_time(v_row.started_at)
    when v_row.request in ('stop', 'leave') then
      'It was asked to ' || v_row.request || ' and releases its ' || v_them
    when v_row.draining or v_row.request = 'drain' then
      'It is draining: it finishes its ' || v_them || ' and claims nothing more'
    when v_row.paused_at is not null then
      'It has been paused since ' || holdfast.people_time(v_row.paused_at)
      || holdfast.command_text(v_row.paused_by) || '; it holds ' || v_them
    when v_row.stats ->> 'not_claiming' <> '' then
      'It claims nothing: ' || (v_row.stats ->> 'not_claiming') || '; it holds ' || v_them
    when holdfast.process_state(v_row) like 'no %' then
      'It sent its last heartbeat at ' || holdfast.people_time(v_row.heartbeat_at) || '; its lease holds for '
      || holdfast.people_duration(v_left) || case v_held when 0 then '' else
           ', then other workers take over its ' || v_them end
    else
      case v_held when 0 then 'It is idle' else 'It works on ' || v_them end
      || ' (' || holdfast.people_count(v_row.slots, 'slot') || '); its lease has '
      || holdfast.people_duration(v_left) || ' left' end || '.';
  facts := jsonb_strip_nulls(jsonb_build_object(
    'label', v_row.label, 'type', v_row.process_type, 'held', v_held, 'status', v_row.status,
    'slots', v_row.slots, 'heartbeat_at', v_row.heartbeat_at, 'lease_until', v_row.lease_until,
    'lease_left', v_left, 'request', v_row.request, 'stats', v_row.stats, 'exit_code', v_row.exit_code,
    'exit_reason', v_row.exit_reason, 'ended_at', v_row.ended_at));
end $$;

create or replace function holdfast.why_host(p_host text)
  returns text language sql stable as $$
  -- Without a crawl: what holds for all that follow its robots.txt.
  select coalesce('It' || substr(w.reason, length('its host ' || p_host) + 1) || '.',
                  'No limit or pause applies to this host now.')
    from holdfast.why_host_waits(
      p_host, jsonb_populate_record(null::holdfast.crawl, jsonb_build_object('robots', true))) w
$$;
comment on function holdfast.why_host is 'Returns the limit or pause that applies to a host now, as a sentence.';

create or replace function holdfast.why_of(p_kind text, p_id uuid, p_crawl uuid,
    out reason text, out facts jsonb)
  language sql stable as $$
  -- Without what holds up the whole database, for lists that name that once.
  select c.reason, c.facts from holdfast.why_crawl(p_id) c where p_kind = 'crawl'
  union all
  select s.reason, s.facts from holdfast.why_snapshot(p_id, p_crawl) s where p_kind = 'snapshot'
  union all
  select p.reason, p.facts from holdfast.why_process(p_id) p where p_kind = 'process'
$$;
comment on function holdfast.why_of is
  'Returns why a crawl, snapshot or process is in its state, if its kind is known.';

create or replace function holdfast.why(p_text text)
  returns table (kind text, id uuid, reason text, facts jsonb) language plpgsql stable rows 1 as $$
-- Exactly one row.
#variable_conflict use_column
declare
  v_found constant jsonb := (select coalesce(jsonb_agg(to_jsonb(f)), '[]') from holdfast.find(p_text) f);
  -- The newest match counts for a URL or a label.
  v_kind constant text := case when jsonb_array_length(v_found) = 1 or p_text !~ '^[0-9a-fA-F-]+$'
                               then v_found -> 0 ->> 'kind' end;
  v_id constant uuid := v_found -> 0 ->> 'id';
  v_crawl constant uuid := v_found -> 0 ->> 'crawl_id';
  -- A process that waits for a lock cannot report it itself.
  v_waits constant text := (select string_agg(d.says || '. ' || d.way_out || '.', ' ')
                              from (select * from holdfast.database_waits()
                                    union all
                                    select * from holdfast.failing_calls()) d);
begin
  return query
    select 'schedule', w.id, w.reason, w.facts
      from holdfast.why_schedule(p_text) w
      where v_kind is null or v_kind = 'crawl' and p_text !~ '^[0-9a-fA-F-]+$'
    union all
    select v_kind, v_id, w.reason || coalesce(' In the database, ' || v_waits, ''),
           w.facts || jsonb_strip_nulls(jsonb_build_object('database', v_waits))
      from holdfast.why_of(v_kind, v_id, v_crawl) w
      where v_kind in ('crawl', 'snapshot', 'process')
    union all
    select 'host', null, holdfast.why_host(h.name), to_jsonb(h) from holdfast.host h where h.name = lower(p_text)
    union all
    select 'webhook', null, w.reason, w.facts from holdfast.why_webhook(p_text) w
    limit 1;
  if found then return; end if;
  return query
    select 'nothing', null::uuid, '"' || p_text || '"' || case
             when jsonb_array_length(v_found) > 1 then
               ' is short for more than one id; give more of its digits.'
             when p_text ~ '^[0-9a-fA-F]{1,3}$' then
               ' is too short for an id; give at least its last four digits.'
             else
               ' names nothing: no crawl, snapshot or process has this id, no snapshot this URL, no crawl this'
               || ' label, no host of this name has limits, and no schedule, watch or webhook has this name.' end,
           jsonb_build_object('matches', v_found);
end $$;
comment on function holdfast.why(text) is
  'Returns why a crawl, snapshot or process (its id, or its first or last digits), a host, schedule or webhook '
  'is in its state.';

create or replace function holdfast.why(p_id uuid)
  returns table (kind text, id uuid, reason text, facts jsonb) language sql stable rows 1 as $$
  select * from holdfast.why(p_id::text)
$$;
comment on function holdfast.why(uuid) is
  'Returns why a crawl, snapshot or process is in its state: a sentence and its facts.';
