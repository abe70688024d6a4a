-- Why a crawl, snapshot, process, host or webhook is in its state: one sentence for people, and the facts
-- behind it. Reads only. Each question takes a few index look-ups, however large the collection is. The
-- questions are asked in the order in which things hold work back: has it ended, who owns it, what parks it,
-- what delays it, who could claim it. A why_*() returns one row; its reason is null if it holds nothing back.

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
