-- Why a crawl is in its state: one sentence for people, and the facts behind it. See 87_why.sql.

create or replace function holdfast.why_unable(p_crawl holdfast.crawl, out reason text, out lacking text)
  language plpgsql stable as $$
-- lacking: the running workers that cannot run its plugins or use its persona, for users. reason: if that is
-- all of them, or its persona is signed out.
declare
  v_all boolean;
begin
  select bool_and(u.says is not null), string_agg(p.label || u.says, ', ' order by p.started_at)
    into v_all, lacking
    from holdfast.process p
    cross join lateral (select string_agg('"' || w.name || '"', ', ' order by w.name) as names
                          from unnest(p_crawl.plugins) w(name)
                          where not p.capabilities -> 'plugins' ? w.name) n
    cross join lateral (select case when holdfast.can_run(p.capabilities, p_crawl.plugins)
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
                            and holdfast.can_run(w.capabilities, c.plugins)
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
