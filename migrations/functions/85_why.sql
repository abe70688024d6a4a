-- Why a thing is where it is: one sentence for people, and the facts behind it. Reads only; safe at any time, and quick however
-- large the collection is: each question is a handful of index probes.
-- The order of the questions is the order in which things hold work back: what has ended, who has it, what parks it, what delays
-- it, and last who could take it.

create or replace function holdfast.people_time(p_at timestamptz) returns text language sql stable as $$
  select to_char(p_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS') || ' UTC'
$$;
comment on function holdfast.people_time(timestamptz) is 'A time in a sentence.';

create or replace function holdfast.people_duration(p_span interval) returns text language sql immutable as $$
  select case when s < 1 then round(s * 1000) || ' ms' when s < 120 then floor(s) || ' s' when s < 7200 then floor(s / 60) || ' min'
              when s < 172800 then floor(s / 3600) || ' h' else floor(s / 86400) || ' days' end
    from (select greatest(extract(epoch from p_span), 0) as s) x
$$;
comment on function holdfast.people_duration(interval) is 'A span of time in a sentence.';

create or replace function holdfast.people_count(p_count bigint, p_what text) returns text language sql immutable as $$
  select p_count || ' ' || p_what || case when p_count = 1 then '' else 's' end
$$;
comment on function holdfast.people_count(bigint, text) is 'A number of things in a sentence.';

create or replace function holdfast.people_order(p_reason text) returns text language sql immutable as $$
  select coalesce(substring(p_reason from '((?: by |: ).*)$'), '')
$$;
comment on function holdfast.people_order(text) is 'Of a reason as control_reason() writes it: who gave the order, and why.';

create or replace function holdfast.no_progress(p_node holdfast.process, p_result holdfast.archive_result)
  returns table (since timestamptz, at_most interval) language sql stable as $$
  -- Nodes say it with their beats, as an age, once a hook has stood still for a while.
  select p_node.beat_at - (n.about ->> 'seconds')::double precision * interval '1 second', (n.about ->> 'limit')::double precision * interval '1 second'
    from (select p_node.stats -> 'no_progress' -> p_result.snapshot_id::text as about) n
    where n.about ->> 'plugin' = p_result.plugin and n.about ->> 'hook' = p_result.hook_name
$$;
comment on function holdfast.no_progress(holdfast.process, holdfast.archive_result) is 'Since when a running hook has neither printed, written nor computed, and for how long it may; no row: it does.';

create or replace function holdfast.why_not_claimed() returns table (reason text, facts jsonb) language plpgsql stable as $$
-- Something is due and nobody has it: what the nodes say to that. The reason is a clause without a subject's capital or a full stop.
declare
  v_now constant timestamptz := clock_timestamp();
  v_nodes record;
  v_lost record;
begin
  select count(*) as count, coalesce(sum(n.slots), 0) as slots, coalesce(sum(n.held), 0) as held,
         count(*) filter (where n.draining) as draining,
         count(*) filter (where n.paused and not n.draining) as paused,
         count(*) filter (where n.says is not null and not n.paused and not n.draining) as refusing,
         count(*) filter (where n.held >= n.slots and n.says is null and not n.paused and not n.draining) as full,
         min(n.says) filter (where not n.paused and not n.draining) as says,
         min(n.label) filter (where n.says is not null and not n.paused and not n.draining) as refuser
    into v_nodes
    from (select p.label, p.slots, p.draining or p.request is not null as draining, p.paused_at is not null as paused,
                 nullif(p.stats ->> 'not_claiming', '') as says,
                 (select count(*) from holdfast.snapshot_queue q where q.owner_id = p.id) as held
            from holdfast.process p
            where p.process_type = 'worker' and p.status = 'running' and p.lease_until > v_now) n;
  facts := jsonb_build_object('nodes', v_nodes.count, 'slots', v_nodes.slots, 'held', v_nodes.held, 'draining', v_nodes.draining,
    'paused', v_nodes.paused, 'not_claiming', v_nodes.refusing, 'full', v_nodes.full);
  if v_nodes.count = 0 then
    select p.label, coalesce(p.ended_at, p.lease_until) as at, coalesce(p.exit_reason, 'lease lapsed') as how into v_lost
      from holdfast.process p where p.process_type = 'worker'
      order by coalesce(p.ended_at, p.lease_until) desc nulls last limit 1;
    reason := 'no node runs' || case when v_lost.label is null then ' and none ever has'
      else ' (the last, ' || v_lost.label || ', ended ' || holdfast.people_time(v_lost.at) || ': ' || v_lost.how || ')' end;
    facts := facts || jsonb_strip_nulls(jsonb_build_object('last_node', v_lost.label, 'last_node_ended_at', v_lost.at, 'last_node_ended_by', v_lost.how));
  elsif v_nodes.draining + v_nodes.paused + v_nodes.refusing + v_nodes.full < v_nodes.count then
    reason := 'a node with room will claim it in a moment';
  elsif v_nodes.full = v_nodes.count then
    reason := 'all ' || holdfast.people_count(v_nodes.slots, 'slot') || ' of ' || holdfast.people_count(v_nodes.count, 'node') || ' are taken';
  elsif v_nodes.draining = v_nodes.count then
    reason := case v_nodes.count when 1 then 'the only node is draining and claims' else 'all ' || v_nodes.count || ' nodes are draining and claim' end || ' nothing more';
  elsif v_nodes.paused = v_nodes.count then
    reason := case v_nodes.count when 1 then 'the only node is' else 'all ' || v_nodes.count || ' nodes are' end || ' paused';
  elsif v_nodes.refusing = v_nodes.count then
    reason := case v_nodes.count when 1 then 'the only node does' else 'none of the ' || v_nodes.count || ' nodes' end
      || case v_nodes.count when 1 then ' not claim' else ' claims' end || ', for ' || v_nodes.refuser || ' says: ' || v_nodes.says;
  else
    reason := 'none of the ' || v_nodes.count || ' nodes can claim ('
      || concat_ws(', ', case when v_nodes.full > 0 then v_nodes.full || ' full' end, case when v_nodes.draining > 0 then v_nodes.draining || ' draining' end,
           case when v_nodes.paused > 0 then v_nodes.paused || ' paused' end,
           case when v_nodes.refusing > 0 then v_nodes.refusing || ' not claiming: ' || v_nodes.says end) || ')';
  end if;
  if v_nodes.says is not null then facts := facts || jsonb_build_object('says', v_nodes.says); end if;
  return next;
end $$;
comment on function holdfast.why_not_claimed() is 'Why no node takes what is due.';

create or replace function holdfast.why_host_waits(p_host text) returns table (reason text, facts jsonb) language plpgsql stable as $$
-- What keeps snapshots of a host from being started now; no row: nothing does.
declare
  v_now constant timestamptz := clock_timestamp();
  v_host holdfast.host;
  v_held bigint;
begin
  select * into v_host from holdfast.host h where h.name = p_host;
  if not found then return; end if;
  facts := jsonb_strip_nulls(jsonb_build_object('host', p_host, 'host_reason', v_host.reason, 'updated_by', nullif(v_host.updated_by, '')));
  if v_host.paused then
    reason := 'its host ' || p_host || ' is paused' || holdfast.people_order(v_host.reason);
    return next;
  elsif v_host.backoff_until > v_now then
    facts := facts || jsonb_build_object('backoff_until', v_host.backoff_until, 'backoff_level', v_host.backoff_level);
    reason := 'its host ' || p_host || ' is left in peace until ' || holdfast.people_time(v_host.backoff_until) || coalesce(': ' || v_host.reason, '');
    return next;
  elsif v_host.next_at > v_now then
    facts := facts || jsonb_build_object('next_at', v_host.next_at, 'min_delay', v_host.min_delay);
    reason := 'its host ' || p_host || ' is visited at most every ' || holdfast.people_duration(v_host.min_delay) || ', next at ' || holdfast.people_time(v_host.next_at);
    return next;
  elsif v_host.max_parallel is not null then
    select count(*) into v_held
      from (select from holdfast.process p join holdfast.snapshot_queue q on q.owner_id = p.id
              where p.status = 'running' and q.host = p_host limit v_host.max_parallel) x;
    if v_held >= v_host.max_parallel then
      facts := facts || jsonb_build_object('max_parallel', v_host.max_parallel, 'host_held', v_held);
      reason := 'its host ' || p_host || ' has as many snapshots in work as it may (' || v_held || ')';
      return next;
    end if;
  end if;
end $$;
comment on function holdfast.why_host_waits(text) is 'What holds a host back now; no row if nothing does.';

create or replace function holdfast.why_crawl_waits(p_crawl holdfast.crawl) returns table (reason text, facts jsonb) language plpgsql stable as $$
-- What holds back everything of a crawl that is not in work already; no row: nothing does.
declare
  v_now constant timestamptz := clock_timestamp();
  v_all record;
  v_held bigint;
begin
  select c.paused_at, c.paused_by into v_all from holdfast.collection c;
  if p_crawl.stopping_at is not null and p_crawl.status <> 'sealed' then
    reason := 'its crawl is being stopped since ' || holdfast.people_time(p_crawl.stopping_at) || coalesce(', ' || nullif(p_crawl.changed_by, ''), '') || '; what is open is sealed as cancelled';
    facts := jsonb_build_object('stopping_at', p_crawl.stopping_at);
    return next;
  elsif p_crawl.status = 'paused' then
    reason := 'its crawl is paused since ' || holdfast.people_time(p_crawl.paused_at) || holdfast.people_order(p_crawl.reason);
    facts := jsonb_strip_nulls(jsonb_build_object('paused_at', p_crawl.paused_at, 'paused_by', nullif(p_crawl.changed_by, '')));
    return next;
  elsif v_all.paused_at is not null then
    reason := 'the whole collection is paused since ' || holdfast.people_time(v_all.paused_at) || holdfast.people_order(v_all.paused_by);
    facts := jsonb_strip_nulls(jsonb_build_object('collection_paused_at', v_all.paused_at, 'paused_by', nullif(v_all.paused_by, '')));
    return next;
  elsif p_crawl.deadline_at <= v_now then
    reason := 'the time of its crawl was over at ' || holdfast.people_time(p_crawl.deadline_at) || ' (max_time ' || holdfast.people_duration(p_crawl.max_time) || ')';
    facts := jsonb_build_object('deadline_at', p_crawl.deadline_at);
    return next;
  elsif p_crawl.max_parallel is not null then
    select count(*) into v_held
      from (select from holdfast.process p join holdfast.snapshot_queue q on q.owner_id = p.id
              where p.status = 'running' and q.crawl_id = p_crawl.id limit p_crawl.max_parallel) x;
    if v_held >= p_crawl.max_parallel then
      reason := 'its crawl has as many snapshots in work as it may (' || v_held || ')';
      facts := jsonb_build_object('max_parallel', p_crawl.max_parallel, 'crawl_held', v_held);
      return next;
    end if;
  end if;
end $$;
comment on function holdfast.why_crawl_waits(holdfast.crawl) is 'What holds a whole crawl back now; no row if nothing does.';

create or replace function holdfast.why_sealed(p_snapshot uuid, p_crawl uuid) returns table (reason text, facts jsonb) language plpgsql stable as $$
declare
  v_end holdfast.snapshot_sealed;
  v_node text;
  v_hooks jsonb;
  v_failed text;
  v_skipped text;
begin
  select * into v_end from holdfast.snapshot_sealed e where e.snapshot_id = p_snapshot and e.crawl_id = p_crawl;
  if not found then return; end if;
  select p.label into v_node from holdfast.process p where p.id = v_end.owner_id;
  select jsonb_agg(jsonb_build_object('plugin', r.plugin, 'hook', r.hook_name, 'status', r.status, 'error', left(r.error, 300))
                   order by r.hook_name) filter (where r.status in ('failed', 'skipped')),
         string_agg(r.plugin || ': ' || left(split_part(r.error, E'\n', 1), 120), '; ' order by r.hook_name) filter (where r.status = 'failed'),
         left(string_agg(r.plugin || ': ' || left(split_part(r.error, E'\n', 1), 120), '; ' order by r.hook_name) filter (where r.status = 'skipped' and r.error <> ''), 400)
    into v_hooks, v_failed, v_skipped
    from holdfast.archive_result r where r.snapshot_id = p_snapshot and r.crawl_id = p_crawl and r.fence = v_end.fence;
  reason := rtrim('It is done: sealed with outcome ' || v_end.outcome || ' at ' || holdfast.people_time(v_end.sealed_at)
    || case v_end.outcome
         when 'succeeded' then coalesce(' by ' || v_node, '')
         when 'quarantined' then ', because ' || v_end.reason
         when 'cancelled' then coalesce(': ' || nullif(v_end.reason, ''), '')
         else coalesce(': ' || nullif(v_end.reason, ''), '') || coalesce(' (' || v_failed || ')', '') end
    || coalesce('; skipped there: ' || v_skipped, ''), '. ') || '.';
  facts := jsonb_strip_nulls(jsonb_build_object('outcome', v_end.outcome, 'why', v_end.reason, 'sealed_at', v_end.sealed_at, 'node', v_node,
    'fence', v_end.fence, 'attempts', v_end.attempts, 'owners_lost', v_end.owners_lost, 'directory', v_end.directory, 'files', v_end.files, 'bytes', v_end.bytes,
    'hooks', v_hooks));
  return next;
end $$;
comment on function holdfast.why_sealed(uuid, uuid) is 'How a snapshot ended; no row while it is open.';

create or replace function holdfast.why_held(p_queue holdfast.snapshot_queue) returns table (reason text, facts jsonb) language plpgsql stable as $$
-- A node has it.
declare
  v_now constant timestamptz := clock_timestamp();
  v_node holdfast.process;
  v_session record;
  v_hook record;
  v_hooks jsonb;
begin
  select * into v_node from holdfast.process p where p.id = p_queue.owner_id;
  facts := jsonb_strip_nulls(jsonb_build_object('node', v_node.label, 'node_id', v_node.id, 'claimed_at', p_queue.claimed_at, 'started_at', p_queue.started_at,
    'fence', p_queue.fence, 'attempts', p_queue.attempts, 'lease_until', v_node.lease_until, 'beat_at', v_node.beat_at));
  if v_node.status <> 'running' or v_node.lease_until <= v_now then
    reason := 'Its node ' || v_node.label || ' has not been heard of since ' || holdfast.people_time(v_node.beat_at)
      || ' and its lease has run out: the next claim of any node, or the runner, gives it to another.';
    return next;
    return;
  end if;
  -- No hook has run yet: its crawl's hooks may be what it waits for.
  if not exists (select from holdfast.archive_result r
                   where r.snapshot_id = p_queue.snapshot_id and r.crawl_id = p_queue.crawl_id and r.fence = p_queue.fence) then
    select s.status, s.opened_at, s.reason, (select string_agg(h.plugin, ', ' order by h.hook_name) from holdfast.crawl_session_hook h
             where h.session_id = s.id and h.ended_at is null) as hooks into v_session
      from holdfast.crawl_session s where s.crawl_id = p_queue.crawl_id and s.process_id = v_node.id
      order by s.ended_at is null desc, s.opened_at desc limit 1;
    if v_session.status = 'opening' then
      reason := 'It is claimed by ' || v_node.label || ' since ' || holdfast.people_time(p_queue.claimed_at) || ' and waits for its crawl''s hooks there, which are starting since '
        || holdfast.people_time(v_session.opened_at) || coalesce(' (' || v_session.hooks || ')', '') || '.';
    elsif v_session.status in ('failed', 'draining') and p_queue.status = 'queued' then
      reason := 'It is claimed by ' || v_node.label || ' since ' || holdfast.people_time(p_queue.claimed_at) || ', where the crawl''s hooks '
        || case v_session.status when 'failed' then 'have failed' else 'are being ended' end || coalesce(': ' || v_session.reason, '') || '.';
    elsif p_queue.status = 'queued' then
      reason := 'It is claimed by ' || v_node.label || ' since ' || holdfast.people_time(p_queue.claimed_at) || ' and getting ready.';
    end if;
    if v_session.status is not null then facts := facts || jsonb_build_object('session', v_session.status); end if;
    if reason is not null then
      return next;
      return;
    end if;
  end if;
  select jsonb_agg(jsonb_build_object('plugin', r.plugin, 'hook', r.hook_name, 'pid', r.pid, 'started_at', r.started_at, 'background', r.background,
                                      'timeout_ms', r.timeout_ms) order by r.started_at) into v_hooks
    from holdfast.archive_result r
    where r.snapshot_id = p_queue.snapshot_id and r.crawl_id = p_queue.crawl_id and r.fence = p_queue.fence and r.ended_at is null;
  select r.plugin, r.hook_name, r.started_at, r.timeout_ms * interval '1 millisecond' as timeout, n.since as still_since, n.at_most as still_at_most into v_hook
    from holdfast.archive_result r left join lateral holdfast.no_progress(v_node, r) n on true
    where r.snapshot_id = p_queue.snapshot_id and r.crawl_id = p_queue.crawl_id and r.fence = p_queue.fence and r.ended_at is null
    order by r.background, r.started_at desc limit 1;
  facts := facts || jsonb_strip_nulls(jsonb_build_object('hooks', v_hooks, 'no_progress_since', v_hook.still_since));
  reason := 'It runs on ' || v_node.label || ' since ' || holdfast.people_time(p_queue.started_at)
    || case when v_hook.hook_name is null then ', between two hooks.'
       else ', in hook ' || v_hook.plugin || '/' || v_hook.hook_name || ' for ' || holdfast.people_duration(v_now - v_hook.started_at)
         || coalesce(' of at most ' || holdfast.people_duration(v_hook.timeout), '')
         || coalesce('; it has neither printed, written nor computed since ' || holdfast.people_time(v_hook.still_since) || ' and may do so for '
                       || holdfast.people_duration(v_hook.still_at_most), '') || '.' end;
  return next;
end $$;
comment on function holdfast.why_held(holdfast.snapshot_queue) is 'What a node does with a snapshot that it holds.';

create or replace function holdfast.why_snapshot(p_snapshot uuid, p_crawl uuid) returns table (reason text, facts jsonb) language plpgsql stable as $$
declare
  v_now constant timestamptz := clock_timestamp();
  v_queue holdfast.snapshot_queue;
  v_crawl holdfast.crawl;
  v_wait record;
  v_about jsonb;
begin
  select jsonb_build_object('url', s.url, 'crawl_id', s.crawl_id) into v_about from holdfast.snapshot s where s.id = p_snapshot and s.crawl_id = p_crawl;
  select * into v_queue from holdfast.snapshot_queue q where q.snapshot_id = p_snapshot and q.crawl_id = p_crawl;
  if not found then
    return query select w.reason, v_about || w.facts from holdfast.why_sealed(p_snapshot, p_crawl) w;
    return;
  end if;
  if v_queue.owner_id is not null then
    return query select w.reason, v_about || w.facts from holdfast.why_held(v_queue) w;
    return;
  end if;
  select * into v_crawl from holdfast.crawl c where c.id = p_crawl;
  v_about := v_about || jsonb_strip_nulls(jsonb_build_object('status', v_queue.status, 'retry_at', nullif(v_queue.retry_at, holdfast.retry_at_max()),
    'attempts', v_queue.attempts, 'owners_lost', v_queue.owners_lost, 'last_reason', v_queue.reason, 'crawl_status', v_crawl.status));

  select w.reason, w.facts into v_wait from holdfast.why_crawl_waits(v_crawl) w;
  if v_wait.reason is not null then
    return query select 'It waits: ' || v_wait.reason || '.', v_about || v_wait.facts;
  elsif v_queue.excluded then
    return query select 'It waits outside the scope of its crawl; it comes back if the scope is widened, else it is sealed as cancelled once nothing else is open.'::text, v_about;
  elsif v_queue.status = 'paused' then
    return query select 'It is paused itself' || coalesce(' (' || v_queue.reason || ')', '') || ', while its crawl goes on.', v_about;
  elsif v_crawl.status = 'queued' then
    return query select 'It waits for its crawl to be started: ' || w.reason || '.', v_about || w.facts from holdfast.why_not_claimed() w;
  elsif v_queue.retry_at > v_now then
    return query select 'It is put off until ' || holdfast.people_time(v_queue.retry_at) || coalesce(': ' || v_queue.reason, '')
      || case when v_queue.attempts > 0 then ' (after ' || holdfast.people_count(v_queue.attempts, 'attempt') || ')' else '' end || '.', v_about;
  else
    v_about := v_about || jsonb_build_object('due_for', v_now - v_queue.retry_at);
    select w.reason, w.facts into v_wait from holdfast.why_host_waits(v_queue.host) w;
    if v_wait.reason is not null then
      return query select 'It is due, but ' || v_wait.reason || '.', v_about || v_wait.facts;
    else
      return query select 'It is due since ' || holdfast.people_time(v_queue.retry_at)
        || case when w.reason like 'a node with room%' then ' and ' else ', but ' end || w.reason || '.', v_about || w.facts from holdfast.why_not_claimed() w;
    end if;
  end if;
end $$;
comment on function holdfast.why_snapshot(uuid, uuid) is 'Why a snapshot is where it is.';

create or replace function holdfast.why_crawl(p_crawl uuid) returns table (reason text, facts jsonb) language plpgsql stable as $$
declare
  v_now constant timestamptz := clock_timestamp();
  v_crawl holdfast.crawl;
  v_owner holdfast.process;
  v_wait record;
  v_held record;
  v_next record;
  v_about jsonb;
  v_limit text;
begin
  select * into v_crawl from holdfast.crawl c where c.id = p_crawl;
  v_about := jsonb_strip_nulls(jsonb_build_object('url', v_crawl.first_url, 'status', v_crawl.status, 'total', v_crawl.snapshots_total, 'open', v_crawl.snapshots_open,
    'succeeded', v_crawl.snapshots_succeeded, 'partial', v_crawl.snapshots_partial, 'failed', v_crawl.snapshots_failed - v_crawl.snapshots_cancelled, 'cancelled', nullif(v_crawl.snapshots_cancelled, 0), 'seeds_left', v_crawl.seeds_left,
    'max_urls', nullif(v_crawl.max_urls, 0), 'stop_reason', v_crawl.stop_reason));
  v_limit := case when v_crawl.stop_reason is not null and v_crawl.stop_reason not like 'cancel%' then ' Its limit ' || v_crawl.stop_reason || ' is reached: it takes no further pages.' else '' end;
  if v_crawl.status = 'sealed' then
    return query select 'It is done: sealed with outcome ' || v_crawl.outcome || ' at ' || holdfast.people_time(v_crawl.sealed_at) || ', '
      || holdfast.people_count(v_crawl.snapshots_total, 'snapshot') || ', '
      || case v_crawl.snapshots_failed - v_crawl.snapshots_cancelled + v_crawl.snapshots_partial when 0 then 'none failed'
         else v_crawl.snapshots_failed - v_crawl.snapshots_cancelled || ' failed and ' || v_crawl.snapshots_partial || ' partial' end
      || case v_crawl.snapshots_cancelled when 0 then '' else ', ' || v_crawl.snapshots_cancelled || ' cancelled' end
      || case when v_crawl.stop_reason is null then '' when v_crawl.stop_reason like 'cancel%' then ', because it was cancelled'
         else ', cut short by its limit ' || v_crawl.stop_reason end || '.'
      -- One that failed stands for all; it is looked for among the latest, for a crawl may be large.
      || coalesce((select ' Of the last that failed: ' || lower(left(w.reason, 1)) || substr(w.reason, 2)
                     from (select l.* from (select e.snapshot_id, e.outcome, e.sealed_at from holdfast.snapshot_sealed e
                                              where e.crawl_id = p_crawl order by e.sealed_at desc limit 1000) l
                             where l.outcome in ('failed', 'quarantined') order by l.sealed_at desc limit 1) f
                     cross join lateral holdfast.why_sealed(f.snapshot_id, p_crawl) w), ''),
      v_about || jsonb_build_object('outcome', v_crawl.outcome, 'sealed_at', v_crawl.sealed_at);
    return;
  end if;
  select w.reason, w.facts into v_wait from holdfast.why_crawl_waits(v_crawl) w;
  if v_wait.reason is not null and v_wait.facts ->> 'crawl_held' is null then
    return query select case when v_wait.reason like 'its crawl%' then 'It' || substr(v_wait.reason, 10) when v_wait.reason like 'the time of its crawl%' then 'Its time' || substr(v_wait.reason, 22)
      else 'It waits: ' || v_wait.reason end || '.', v_about || v_wait.facts;
    return;
  end if;

  if v_crawl.owner_id is not null then
    select * into v_owner from holdfast.process p where p.id = v_crawl.owner_id;
    v_about := v_about || jsonb_build_object('node', v_owner.label, 'lease_until', v_owner.lease_until);
    return query select case when v_owner.status = 'running' and v_owner.lease_until > v_now then 'Its seeds are being expanded by ' || v_owner.label || ', ' || v_crawl.seeds_left || ' left.'
      else 'Its node ' || v_owner.label || ' has not been heard of since ' || holdfast.people_time(v_owner.beat_at) || ' and its lease has run out: the next claim of any node, or the runner, gives it to another.' end, v_about;
    return;
  end if;
  select count(*) as count, min(p.label) as node, count(distinct p.id) as nodes into v_held
    from holdfast.process p join holdfast.snapshot_queue q on q.owner_id = p.id where p.status = 'running' and q.crawl_id = p_crawl;
  if v_held.count > 0 then
    return query select holdfast.people_count(v_held.count, 'snapshot') || ' of it ' || case v_held.count when 1 then 'is' else 'are' end || ' in work on '
      || case v_held.nodes when 1 then v_held.node else v_held.nodes || ' nodes' end
      || case v_crawl.snapshots_open - v_held.count when 0 then '.' else ', ' || (v_crawl.snapshots_open - v_held.count) || ' more wait.' end || v_limit,
      v_about || jsonb_build_object('held', v_held.count, 'nodes', v_held.nodes);
    return;
  end if;
  if v_crawl.status = 'queued' or v_crawl.seeds_left > 0 then
    if v_crawl.retry_at > v_now then
      return query select 'It is put off until ' || holdfast.people_time(v_crawl.retry_at) || coalesce(': ' || v_crawl.reason, '') || '.', v_about;
    else
      return query select case when v_crawl.seeds_left > 0 then 'Its ' || holdfast.people_count(v_crawl.seeds_left, 'seed') || ' wait' || case v_crawl.seeds_left when 1 then 's' else '' end || ' to be expanded'
          else 'It waits to be started' end
        || case when w.reason like 'a node with room%' then ', and ' else ', but ' end || w.reason || '.', v_about || w.facts from holdfast.why_not_claimed() w;
    end if;
    return;
  end if;
  -- Started, and nothing of it is in work: what the next of its snapshots says. Those of hosts with limits are found by their lanes.
  select x.snapshot_id into v_next from (
    (select q.snapshot_id, q.retry_at from holdfast.snapshot_queue q where q.crawl_id = p_crawl and q.owner_id is null and not q.lane order by q.retry_at limit 1)
    union all
    (select q.snapshot_id, greatest(q.retry_at, l.next_at) from (select * from holdfast.crawl_lane where crawl_id = p_crawl order by next_at limit 1) l
       cross join lateral (select * from holdfast.snapshot_queue q
                             where q.crawl_id = p_crawl and q.host = l.host and q.owner_id is null and q.lane order by q.retry_at limit 1) q)) x
    order by x.retry_at limit 1;
  if v_next.snapshot_id is null then
    return query select 'It has nothing open and will be sealed by the runner''s next look.'::text, v_about;
    return;
  end if;
  return query select 'None of its ' || holdfast.people_count(v_crawl.snapshots_open, 'open snapshot') || ' is in work; of the next one: ' || lower(left(w.reason, 1)) || substr(w.reason, 2) || v_limit,
    v_about || jsonb_build_object('next_snapshot', v_next.snapshot_id, 'next', w.facts) from holdfast.why_snapshot(v_next.snapshot_id, p_crawl) w;
end $$;
comment on function holdfast.why_crawl(uuid) is 'Why a crawl is where it is.';

create or replace function holdfast.why_process(p_process uuid) returns table (reason text, facts jsonb) language plpgsql stable as $$
declare
  v_now constant timestamptz := clock_timestamp();
  v_row holdfast.process;
  v_held bigint;
  v_says text;
  v_other text;
begin
  select * into v_row from holdfast.process p where p.id = p_process;
  select count(*) into v_held from holdfast.snapshot_queue q where q.owner_id = p_process;
  v_says := nullif(v_row.stats ->> 'not_claiming', '');
  facts := jsonb_strip_nulls(jsonb_build_object('label', v_row.label, 'type', v_row.process_type, 'status', v_row.status, 'held', v_held, 'slots', v_row.slots,
    'beat_at', v_row.beat_at, 'lease_until', v_row.lease_until, 'lease_left', v_row.lease_until - v_now, 'request', v_row.request, 'stats', v_row.stats,
    'exit_code', v_row.exit_code, 'exit_reason', v_row.exit_reason, 'ended_at', v_row.ended_at));
  if v_row.status = 'exited' then
    reason := 'It has ended at ' || holdfast.people_time(v_row.ended_at) || ': '
      || case v_row.exit_reason when 'lease lapsed' then 'its lease lapsed, it was not heard of since ' || holdfast.people_time(v_row.beat_at)
           else coalesce(v_row.exit_reason, 'it did not say why') || coalesce(' (exit code ' || v_row.exit_code || ')', '') end || '.';
  elsif v_row.lease_until <= v_now then
    reason := 'It has not been heard of since ' || holdfast.people_time(v_row.beat_at) || ' and its lease has run out; '
      || case v_held when 0 then 'it holds nothing.' else 'the ' || holdfast.people_count(v_held, 'snapshot') || ' it holds will be given to others by the next claim, or the runner.' end;
  elsif v_row.process_type = 'orchestrator' then
    if v_row.worker_type = 'worker_runner' then
      reason := 'It leads as the runner with epoch ' || v_row.epoch || ', its lease has ' || holdfast.people_duration(v_row.lease_until - v_now) || ' left'
        || case v_row.request when 'leave' then '; a newer runner has asked it to leave.' else '.' end;
    else
      select p.label into v_other from holdfast.process p where p.worker_type = 'worker_runner' and p.status = 'running';
      reason := case when v_row.standby then 'It stands by' else 'It waits at the gate' end || coalesce(' while ' || v_other || ' leads', ' and nobody leads yet') || '.';
    end if;
  elsif v_row.request in ('stop', 'leave') then
    reason := 'It is asked to ' || v_row.request || ' and puts its ' || holdfast.people_count(v_held, 'snapshot') || ' back.';
  elsif v_row.draining or v_row.request = 'drain' then
    reason := 'It is draining: it finishes the ' || holdfast.people_count(v_held, 'snapshot') || ' it has and claims nothing more.';
  elsif v_row.paused_at is not null then
    reason := 'It is paused since ' || holdfast.people_time(v_row.paused_at) || holdfast.people_order(v_row.paused_by) || '; it still holds ' || holdfast.people_count(v_held, 'snapshot') || '.';
  elsif v_says is not null then
    reason := 'It claims nothing, because ' || v_says || '; it holds ' || holdfast.people_count(v_held, 'snapshot') || '.';
  elsif v_held = 0 then
    reason := 'It is idle: all ' || holdfast.people_count(v_row.slots, 'slot') || ' are free and its lease has ' || holdfast.people_duration(v_row.lease_until - v_now) || ' left.';
  else
    reason := 'It works on ' || holdfast.people_count(v_held, 'snapshot') || ' (' || holdfast.people_count(v_row.slots, 'slot') || '), its lease has '
      || holdfast.people_duration(v_row.lease_until - v_now) || ' left.';
  end if;
  return next;
end $$;
comment on function holdfast.why_process(uuid) is 'What a process does, or why it ended.';

create or replace function holdfast.why(p_id uuid) returns table (kind text, id uuid, reason text, facts jsonb) language plpgsql stable as $$
-- Exactly one row.
#variable_conflict use_column
declare
  v_found record;
begin
  select f.kind, f.id, f.crawl_id into v_found from holdfast.find(p_id::text) f limit 1;
  if not found then
    return query select 'nothing'::text, p_id, 'Nothing has this id: no crawl, no snapshot, no process.'::text, '{}'::jsonb;
  elsif v_found.kind = 'crawl' then
    return query select 'crawl'::text, p_id, w.reason, w.facts from holdfast.why_crawl(p_id) w limit 1;
  elsif v_found.kind = 'snapshot' then
    return query select 'snapshot'::text, p_id, w.reason, w.facts from holdfast.why_snapshot(p_id, v_found.crawl_id) w limit 1;
  else
    return query select 'process'::text, p_id, w.reason, w.facts from holdfast.why_process(p_id) w limit 1;
  end if;
end $$;
comment on function holdfast.why(uuid) is 'Why a crawl, snapshot or process is where it is: one sentence and its facts.';

create or replace function holdfast.why(p_text text) returns table (kind text, id uuid, reason text, facts jsonb) language plpgsql stable as $$
-- As above, of an id whole or shortened, or of a host. Exactly one row.
#variable_conflict use_column
declare
  v_count integer;
  v_id uuid;
  v_host holdfast.host;
begin
  select count(*), min(f.id::text)::uuid into v_count, v_id from holdfast.find(p_text) f;
  if v_count = 1 then
    return query select * from holdfast.why(v_id);
    return;
  elsif v_count > 1 then
    return query select 'nothing'::text, null::uuid, '"' || p_text || '" is short for ' || case when v_count < 10 then '' else 'at least ' end || v_count || ' ids; give more of it, or its last digits.',
      (select jsonb_build_object('matches', jsonb_agg(jsonb_build_object('kind', f.kind, 'id', f.id))) from holdfast.find(p_text) f);
    return;
  end if;
  if p_text ~ '^[0-9a-fA-F]{1,3}$' then
    return query select 'nothing'::text, null::uuid, '"' || p_text || '" is too short for an id; give at least its last four digits.', '{}'::jsonb;
    return;
  end if;
  select * into v_host from holdfast.host h where h.name = lower(p_text);
  if found then
    return query select 'host'::text, null::uuid,
      coalesce((select 'It' || substr(w.reason, length('its host ' || v_host.name) + 1) || '.' from holdfast.why_host_waits(v_host.name) w), 'Nothing holds it back now.'), to_jsonb(v_host);
    return;
  end if;
  if exists (select from holdfast.webhook w where w.name = p_text) then
    return query select 'webhook'::text, null::uuid, w.reason, w.facts from holdfast.why_webhook(p_text) w;
    return;
  end if;
  return query select 'nothing'::text, null::uuid, 'Nothing is called "' || p_text
    || '": no crawl, snapshot or process has such an id, no host of that name has limits, and no webhook has that name.', '{}'::jsonb;
end $$;
comment on function holdfast.why(text) is 'Why a crawl, snapshot or process (its id, or the first or last digits of it), a host or a webhook is where it is.';
