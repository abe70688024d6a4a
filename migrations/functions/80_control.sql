-- Steering: pause, resume, cancel, scope, retry, remove. Each order is one transaction that is final when it commits: from then on
-- nothing may begin that it forbids. What runs is taken from its node, which hears of that by the doorbell "control" (or with
-- its next beat) and kills the hooks. Every order may be repeated; the second time changes nothing and returns 0.

create or replace function holdfast.control_note(p_action text, p_kind text, p_target text, p_crawl uuid, p_by text, p_detail text, p_held bigint)
  returns void language sql as $$
  insert into holdfast.control (action, kind, target, crawl_id, by_whom, detail, held)
    values (p_action, p_kind, p_target, p_crawl, coalesce(p_by, ''), nullif(p_detail, ''), p_held);
  select pg_notify('holdfast', 'control');
$$;
comment on function holdfast.control_note(text, text, text, uuid, text, text, bigint) is 'Writes an order down and makes every node beat at once.';

create or replace function holdfast.control_reason(p_action text, p_by text, p_why text) returns text language sql immutable as $$
  select p_action || coalesce(' by ' || nullif(p_by, ''), '') || coalesce(': ' || nullif(p_why, ''), '')
$$;
comment on function holdfast.control_reason(text, text, text) is 'The sentence that a row in question carries.';

create or replace function holdfast.snapshot_set(p_snapshot uuid, p_crawl uuid, p_to text, p_reason text) returns void language plpgsql as $$
-- Takes one open snapshot, owned or not, to "queued", "paused", "excluded" or "cancelled". The caller holds the rows of its crawl
-- and of itself. Its owner, if any, is not blamed: the attempt is not counted.
declare
  v_row holdfast.snapshot_queue;
begin
  select * into strict v_row from holdfast.snapshot_queue where snapshot_id = p_snapshot and crawl_id = p_crawl;
  if v_row.owner_id is not null then
    perform holdfast.attempt_end(p_snapshot, p_crawl, case p_to when 'cancelled' then 'cancelled' else 'interrupted' end, p_reason);
    perform holdfast.results_close(p_snapshot, p_crawl, v_row.fence, p_reason);
  end if;
  if v_row.excluded and p_to <> 'excluded' then
    update holdfast.crawl set snapshots_excluded = snapshots_excluded - 1 where id = p_crawl;
  elsif not v_row.excluded and p_to = 'excluded' then
    update holdfast.crawl set snapshots_excluded = snapshots_excluded + 1 where id = p_crawl;
  end if;
  if p_to = 'cancelled' then
    perform holdfast.snapshot_finish(p_snapshot, p_crawl, 'cancelled', p_reason, v_row.owner_id, null, null, 0, 0, '', '{}');
    return;
  end if;
  perform set_config('holdfast.event', case when p_to <> 'queued' then 'pause' when v_row.status = 'paused' then 'resume' else 'release' end, true);
  update holdfast.snapshot_queue
    set status = case p_to when 'queued' then 'queued' else 'paused' end, excluded = p_to = 'excluded', reason = p_reason,
        retry_at = case p_to when 'queued' then clock_timestamp() else holdfast.retry_at_max() end,
        owner_id = null, claimed_at = null, started_at = null, attempts = attempts - (v_row.owner_id is not null)::integer
    where snapshot_id = p_snapshot and crawl_id = p_crawl;
  if p_to = 'queued' then
    perform holdfast.crawl_wake(p_crawl, clock_timestamp());
    if v_row.lane then perform holdfast.lane_open(p_crawl, array[v_row.host], clock_timestamp()); end if;
  end if;
end $$;
comment on function holdfast.snapshot_set(uuid, uuid, text, text) is 'Takes one open snapshot away from its owner, or out of the queue, or back into it.';

create or replace function holdfast.crawl_held(p_crawl uuid) returns uuid[] language sql stable as $$
  select array(select q.snapshot_id from holdfast.process p join holdfast.snapshot_queue q on q.owner_id = p.id
                 where p.status = 'running' and q.crawl_id = p_crawl)
$$;
comment on function holdfast.crawl_held(uuid) is 'Snapshots of a crawl in work.';

create or replace function holdfast.held_lock_rows(p_snapshots uuid[]) returns uuid[] language plpgsql as $$
-- Of these snapshots, locks those that somebody holds, their crawls first. Returns which: what was claimed while we waited is not among
-- them, for its crawl is not locked; its node gives it up with its next beat (control_apply).
declare
  v_crawls constant uuid[] := array(select c.id from holdfast.crawl c
    where c.id in (select q.crawl_id from holdfast.snapshot_queue q where q.snapshot_id = any (p_snapshots) and q.owner_id is not null)
    order by c.id for no key update);
begin
  return array(select q.snapshot_id from holdfast.snapshot_queue q
    where q.snapshot_id = any (p_snapshots) and q.crawl_id = any (v_crawls) and q.owner_id is not null
    order by q.crawl_id, q.snapshot_id for update);
end $$;
comment on function holdfast.held_lock_rows(uuid[]) is 'Locks snapshots in work and their crawls; returns which snapshots.';

create or replace function holdfast.held_lock(p_snapshots uuid[]) returns uuid[] language plpgsql as $$
-- Crawls, rows, hosts, then crawl_queue: the order in which everybody locks them, and all of each before the first of the next.
declare
  v_ids constant uuid[] := holdfast.held_lock_rows(p_snapshots);
begin
  perform from holdfast.host h where h.name in (select q.host from holdfast.snapshot_queue q where q.snapshot_id = any (v_ids) and q.lane)
    order by h.name for no key update;
  perform from holdfast.crawl_queue c where c.crawl_id in (select q.crawl_id from holdfast.snapshot_queue q where q.snapshot_id = any (v_ids))
    order by c.crawl_id for no key update;
  return v_ids;
end $$;
comment on function holdfast.held_lock(uuid[]) is 'Locks snapshots in work and what belongs to them; returns which snapshots.';

create or replace function holdfast.held_take(p_snapshots uuid[], p_to text, p_reason text) returns bigint language plpgsql as $$
-- Takes from their nodes what held_lock has locked.
declare
  v_row record;
begin
  for v_row in select q.snapshot_id, q.crawl_id from holdfast.snapshot_queue q where q.snapshot_id = any (p_snapshots) order by q.crawl_id, q.snapshot_id loop
    perform holdfast.snapshot_set(v_row.snapshot_id, v_row.crawl_id, p_to, p_reason);
  end loop;
  return cardinality(p_snapshots);
end $$;
comment on function holdfast.held_take(uuid[], text, text) is 'Takes snapshots in work, locked by held_lock, from their nodes; returns how many.';

create or replace function holdfast.control_apply(p_node uuid) returns bigint language plpgsql set enable_seqscan = off set jit = off as $$
-- The children look up to their parents: what the node holds although it should not (its claim was under way when the order came, or
-- somebody changed a row by hand). Waits for nobody: what is locked just now is left to the next beat, which is asked for. Without jit: what
-- must be scanned after all (the one row of collection) looks so dear without enable_seqscan that it would be compiled, each time.
declare
  v_ids constant uuid[] := array(select q.snapshot_id from holdfast.snapshot_queue q where q.owner_id = p_node);
  v_row record;
  v_missed boolean := false;
  v_count bigint := 0;
begin
  if v_ids = '{}' or not exists (select from holdfast.snapshot_queue q join holdfast.crawl c on c.id = q.crawl_id join holdfast.process p on p.id = q.owner_id
                   cross join holdfast.collection a left join holdfast.host h on h.name = q.host and h.paused
                   where q.snapshot_id = any (v_ids) and q.owner_id = p_node
                     and (c.status = 'paused' or c.stopping_at is not null or a.paused_at is not null or p.paused_at is not null or h.paused)) then
    return 0;
  end if;
  perform from holdfast.host h where h.name in (select q.host from holdfast.snapshot_queue q where q.snapshot_id = any (v_ids) and q.lane)
    order by h.name for no key update;
  perform from holdfast.crawl_queue c where c.crawl_id in (select q.crawl_id from holdfast.snapshot_queue q where q.snapshot_id = any (v_ids))
    order by c.crawl_id for no key update;
  for v_row in
    select q.snapshot_id, q.crawl_id, q.fence, case when c.stopping_at is not null then 'cancelled' else 'queued' end as destiny,
           case when c.status = 'paused' or c.stopping_at is not null then coalesce(c.reason, 'its crawl is paused')
                when a.paused_at is not null then a.paused_by
                when p.paused_at is not null then p.paused_by
                else coalesce(h.reason, 'its web site is paused') end as reason
      from holdfast.snapshot_queue q
      join holdfast.crawl c on c.id = q.crawl_id
      join holdfast.process p on p.id = q.owner_id
      cross join holdfast.collection a
      left join holdfast.host h on h.name = q.host and h.paused
      where q.snapshot_id = any (v_ids) and q.owner_id = p_node
        and (c.status = 'paused' or c.stopping_at is not null or a.paused_at is not null or p.paused_at is not null or h.paused)
      order by q.crawl_id, q.snapshot_id
  loop
    perform from holdfast.crawl where id = v_row.crawl_id for update skip locked;
    if found then
      perform from holdfast.snapshot_queue where snapshot_id = v_row.snapshot_id and crawl_id = v_row.crawl_id and owner_id = p_node
        and fence = v_row.fence for update skip locked;
    end if;
    if found then
      perform holdfast.snapshot_set(v_row.snapshot_id, v_row.crawl_id, v_row.destiny, v_row.reason);
      v_count := v_count + 1;
    else
      v_missed := true;
    end if;
  end loop;
  if v_missed then perform pg_notify('holdfast', 'control'); end if;
  return v_count;
end $$;
comment on function holdfast.control_apply(uuid) is 'Takes from a node what it must no longer hold; returns how many.';

-- Pause and resume ------------------------------------------------------------------------------------------------------

create or replace function holdfast.crawl_pause(p_crawl uuid, p_by text, p_why text) returns bigint language plpgsql as $$
-- The crawl is parked and leaves crawl_queue, so that no claim sees it; its queued snapshots stay as they are, however many. What is in
-- work goes back into the queue. Returns 1, or 0 if it was paused or ended before.
declare
  v_crawl holdfast.crawl;
  v_reason constant text := holdfast.control_reason('paused', p_by, p_why);
  v_ids uuid[];
  v_held bigint;
begin
  select * into v_crawl from holdfast.crawl where id = p_crawl for no key update;
  if not found then raise exception 'there is no crawl %', p_crawl using errcode = 'HF004'; end if;
  if v_crawl.status in ('paused', 'sealed') or v_crawl.stopping_at is not null then return 0; end if;
  v_ids := holdfast.held_lock(holdfast.crawl_held(p_crawl));
  perform set_config('holdfast.event', 'pause', true);
  update holdfast.crawl set status = 'paused', retry_at = holdfast.retry_at_max(), owner_id = null, paused_at = clock_timestamp(),
      changed_by = p_by, reason = v_reason where id = p_crawl;
  v_held := holdfast.held_take(v_ids, 'queued', v_reason);
  perform holdfast.control_note('pause', 'crawl', p_crawl::text, p_crawl, p_by, p_why, v_held);
  perform pg_notify('holdfast', 'crawl_paused ' || p_crawl);
  return 1;
end $$;
comment on function holdfast.crawl_pause(uuid, text, text) is 'Parks a crawl; what is in work goes back into its queue. Returns 0 if it was paused or ended already.';

create or replace function holdfast.crawl_resume(p_crawl uuid, p_by text, p_why text) returns bigint language plpgsql as $$
begin
  perform from holdfast.crawl where id = p_crawl for no key update;
  if not found then raise exception 'there is no crawl %', p_crawl using errcode = 'HF004'; end if;
  perform set_config('holdfast.event', 'resume', true);
  update holdfast.crawl set status = 'queued', retry_at = clock_timestamp(), changed_by = p_by, reason = null,
      deadline_at = deadline_at + coalesce(clock_timestamp() - paused_at, '0'), paused_at = null
    where id = p_crawl and status = 'paused';
  if not found then return 0; end if;
  perform holdfast.control_note('resume', 'crawl', p_crawl::text, p_crawl, p_by, p_why, 0);
  perform holdfast.ring();
  return 1;
end $$;
comment on function holdfast.crawl_resume(uuid, text, text) is 'Puts a paused crawl back to work; its clock stood still meanwhile. Returns 0 if it was not paused.';

create or replace function holdfast.crawl_priority(p_crawl uuid, p_priority integer, p_by text) returns bigint language plpgsql as $$
-- With the next claim of any node. Returns 1, or 0 if it has ended or had this priority.
begin
  if p_priority is null then raise exception 'a priority is a number' using errcode = 'HF004', hint = 'Above 0: before other crawls; below 0: after them.'; end if;
  perform from holdfast.crawl where id = p_crawl for no key update;
  if not found then raise exception 'there is no crawl %', p_crawl using errcode = 'HF004'; end if;
  update holdfast.crawl set priority = p_priority where id = p_crawl and priority <> p_priority and status <> 'sealed';
  if not found then return 0; end if;
  perform holdfast.control_note('priority', 'crawl', p_crawl::text, p_crawl, p_by, 'now ' || p_priority, 0);
  return 1;
end $$;
comment on function holdfast.crawl_priority(uuid, integer, text) is 'Above 0: before other crawls; below 0: after them. Returns 0 if that changes nothing.';

create or replace function holdfast.snapshot_order(p_snapshot uuid, p_action text, p_by text, p_why text) returns bigint language plpgsql as $$
-- pause, resume or cancel one snapshot. What its crawl's scope excludes is not resumed: that takes a wider scope.
declare
  v_crawl uuid;
  v_row holdfast.snapshot_queue;
begin
  if p_action is null or p_action not in ('pause', 'resume', 'cancel') then raise exception 'a snapshot cannot be told to "%"', p_action using errcode = 'HF004'; end if;
  select crawl_id into v_crawl from holdfast.snapshot where id = p_snapshot;
  if not found then raise exception 'there is no snapshot %', p_snapshot using errcode = 'HF004'; end if;
  perform from holdfast.crawl where id = v_crawl for no key update;
  select * into v_row from holdfast.snapshot_queue where snapshot_id = p_snapshot and crawl_id = v_crawl for update;
  if not found or (p_action = 'pause' and v_row.status = 'paused')
     or (p_action = 'resume' and (v_row.status <> 'paused' or v_row.excluded)) then return 0; end if;
  perform holdfast.snapshot_set(p_snapshot, v_crawl, case p_action when 'pause' then 'paused' when 'resume' then 'queued' else 'cancelled' end,
    case p_action when 'pause' then holdfast.control_reason('paused', p_by, p_why) when 'cancel' then holdfast.control_reason('cancelled', p_by, p_why) end);
  perform holdfast.control_note(p_action, 'snapshot', p_snapshot::text, v_crawl, p_by, p_why, (v_row.owner_id is not null)::integer);
  return 1;
end $$;
comment on function holdfast.snapshot_order(uuid, text, text, text) is 'Tells one snapshot to pause, resume or cancel (p_action); returns 0 if that changes nothing.';

create or replace function holdfast.node_pause(p_node uuid, p_by text, p_why text) returns bigint language plpgsql as $$
-- It claims nothing more and gives its work to others; its process goes on.
declare
  v_reason constant text := holdfast.control_reason('its node was paused', p_by, p_why);
begin
  if not exists (select from holdfast.process where id = p_node and process_type = 'worker') then
    raise exception 'there is no node %', p_node using errcode = 'HF004';
  end if;
  update holdfast.process set paused_at = clock_timestamp(), paused_by = v_reason where id = p_node and status = 'running' and paused_at is null;
  if not found then return 0; end if;
  perform holdfast.control_note('pause', 'node', p_node::text, null, p_by, p_why,
    holdfast.held_take(holdfast.held_lock(array(select snapshot_id from holdfast.snapshot_queue where owner_id = p_node)), 'queued', v_reason));
  return 1;
end $$;
comment on function holdfast.node_pause(uuid, text, text) is 'A node stops working until it is resumed.';

create or replace function holdfast.node_resume(p_node uuid, p_by text, p_why text) returns bigint language plpgsql as $$
begin
  update holdfast.process set paused_at = null, paused_by = null where id = p_node and paused_at is not null;
  if not found then return 0; end if;
  perform holdfast.control_note('resume', 'node', p_node::text, null, p_by, p_why, 0);
  perform holdfast.ring();
  return 1;
end $$;
comment on function holdfast.node_resume(uuid, text, text) is 'A paused node goes on.';

create or replace function holdfast.node_cancel(p_node uuid, p_by text, p_why text) returns bigint language plpgsql as $$
-- It gives its work back and ends. For a node that does not answer any more: its work is others' once its lease has lapsed.
begin
  update holdfast.process set request = 'stop' where id = p_node and status = 'running' and process_type = 'worker' and request is distinct from 'stop';
  if not found then return 0; end if;
  perform holdfast.control_note('cancel', 'node', p_node::text, null, p_by, p_why,
    (select count(*) from holdfast.snapshot_queue where owner_id = p_node));
  return 1;
end $$;
comment on function holdfast.node_cancel(uuid, text, text) is 'Asks a node to give its work back and to end.';

create or replace function holdfast.node_drain(p_node uuid, p_by text, p_why text) returns bigint language plpgsql as $$
-- It claims nothing from now on, finishes what it has (for as long as its drain_timeout allows) and ends. Also for runners.
begin
  if not exists (select from holdfast.process where id = p_node and process_type in ('worker', 'orchestrator')) then
    raise exception 'there is no node or runner %', p_node using errcode = 'HF004';
  end if;
  update holdfast.process set request = 'drain', draining = true
    where id = p_node and status = 'running' and (not draining or request is null or request not in ('drain', 'stop'));
  if not found then return 0; end if;
  perform holdfast.control_note('drain', 'node', p_node::text, null, p_by, p_why,
    (select count(*) from holdfast.snapshot_queue where owner_id = p_node));
  return 1;
end $$;
comment on function holdfast.node_drain(uuid, text, text) is 'Asks a node to claim nothing more, to finish what it has, and to end.';

create or replace function holdfast.collection_pause(p_by text, p_why text) returns bigint language plpgsql as $$
-- Nothing is claimed by anybody. Crawls keep the state they have, so that resuming everything leaves alone what was paused by itself.
declare
  v_reason constant text := holdfast.control_reason('everything was paused', p_by, p_why);
begin
  update holdfast.collection set paused_at = clock_timestamp(), paused_by = v_reason where paused_at is null;
  if not found then return 0; end if;
  perform holdfast.control_note('pause', 'all', 'everything', null, p_by, p_why,
    holdfast.held_take(holdfast.held_lock(array(select snapshot_id from holdfast.snapshot_queue where owner_id is not null)), 'queued', v_reason));
  return 1;
end $$;
comment on function holdfast.collection_pause(text, text) is 'Pauses everything.';

create or replace function holdfast.collection_resume(p_by text, p_why text) returns bigint language plpgsql as $$
begin
  update holdfast.collection set paused_at = null, paused_by = null where paused_at is not null;
  if not found then return 0; end if;
  perform holdfast.control_note('resume', 'all', 'everything', null, p_by, p_why, 0);
  perform holdfast.ring();
  return 1;
end $$;
comment on function holdfast.collection_resume(text, text) is 'Everything goes on, but for what is paused by itself.';

-- Stopping a crawl --------------------------------------------------------------------------------------------------------

create or replace function holdfast.crawl_stop_step(p_crawl uuid, p_batch integer) returns bigint language plpgsql set enable_seqscan = off set jit = off as $$
-- Seals up to p_batch waiting snapshots of a crawl that is being stopped, in one go; then the crawl, if that was all. Returns what is
-- left. Called by whoever stops it, and by the nodes (crawl_expand) in case that one does not come to its end.
declare
  v_crawl holdfast.crawl;
  v_seeds bigint;
  v_done bigint;
  v_excluded bigint;
begin
  select * into v_crawl from holdfast.crawl where id = p_crawl for no key update;
  if not found or v_crawl.status = 'sealed' or v_crawl.stopping_at is null then return 0; end if;
  delete from holdfast.crawl_seed where crawl_id = p_crawl and position in
    (select position from holdfast.crawl_seed where crawl_id = p_crawl order by position limit p_batch);
  get diagnostics v_seeds = row_count;
  with free as materialized (
    select q.snapshot_id from holdfast.snapshot_queue q where q.crawl_id = p_crawl and q.owner_id is null and not q.lane
      order by q.retry_at limit p_batch for update skip locked
  ), waiting as materialized (
    select q.snapshot_id from holdfast.snapshot_queue q where q.crawl_id = p_crawl and q.owner_id is null and q.lane
      limit p_batch for update skip locked
  ), next as materialized (
    select snapshot_id from (select snapshot_id from free union all select snapshot_id from waiting) u limit p_batch
  ), closed as (
    insert into holdfast.snapshot_sealed (snapshot_id, crawl_id, outcome, reason, fence, title, tags, attempts, owners_lost)
      select q.snapshot_id, q.crawl_id, 'cancelled', coalesce(case when q.excluded then q.reason end, v_crawl.reason, 'its crawl was stopped'),
             q.fence, s.title, s.tags, q.attempts, q.owners_lost
        from next n join holdfast.snapshot_queue q on q.snapshot_id = n.snapshot_id and q.crawl_id = p_crawl
        join holdfast.snapshot s on s.id = q.snapshot_id and s.crawl_id = p_crawl
      returning snapshot_id
  )
  select (select count(*) from closed), (select count(*) from next n join holdfast.snapshot_queue q on q.snapshot_id = n.snapshot_id
            and q.crawl_id = p_crawl and q.excluded) into v_done, v_excluded;
  update holdfast.crawl set snapshots_open = snapshots_open - v_done, snapshots_failed = snapshots_failed + v_done, snapshots_cancelled = snapshots_cancelled + v_done,
      snapshots_excluded = snapshots_excluded - v_excluded, seeds_left = seeds_left - v_seeds where id = p_crawl;
  perform holdfast.crawl_settle(p_crawl);
  return (select snapshots_open + seeds_left from holdfast.crawl where id = p_crawl);
end $$;
comment on function holdfast.crawl_stop_step(uuid, integer) is 'Closes the next batch of a crawl that is being stopped; returns what is left.';

create or replace function holdfast.crawl_stop(p_crawl uuid, p_stop_reason text, p_by text, p_why text, p_batch integer) returns bigint language plpgsql as $$
-- From its commit on, nothing of the crawl begins any more; what was in work is sealed as cancelled, and the first batch of what waited.
-- Returns what is left for crawl_stop_step.
declare
  v_crawl holdfast.crawl;
  v_reason constant text := case p_stop_reason when 'cancelled' then holdfast.control_reason('cancelled', p_by, p_why)
                                               else holdfast.control_reason('its crawl was stopped', p_by, p_why) end;
  v_ids uuid[];
  v_left bigint;
begin
  select * into v_crawl from holdfast.crawl where id = p_crawl for no key update;
  if not found then raise exception 'there is no crawl %', p_crawl using errcode = 'HF004'; end if;
  if v_crawl.status = 'sealed' then return 0; end if;
  if v_crawl.stopping_at is null then
    v_ids := holdfast.held_lock(holdfast.crawl_held(p_crawl));
    update holdfast.crawl set stopping_at = clock_timestamp(), stop_reason = p_stop_reason, reason = v_reason, changed_by = p_by, owner_id = null,
        retry_at = case status when 'paused' then retry_at else clock_timestamp() end, judged_to = null where id = p_crawl;
    perform holdfast.control_note('cancel', 'crawl', p_crawl::text, p_crawl, p_by, case p_stop_reason when 'cancelled' then p_why else p_stop_reason || ': ' || p_why end,
      holdfast.held_take(v_ids, 'cancelled', v_reason));
  end if;
  v_left := holdfast.crawl_stop_step(p_crawl, p_batch);
  -- Nodes go on with what is left, so it must be due.
  perform set_config('holdfast.event', 'resume', true);
  update holdfast.crawl set status = 'queued', retry_at = clock_timestamp(), paused_at = null where id = p_crawl and status = 'paused';
  return v_left;
end $$;
comment on function holdfast.crawl_stop(uuid, text, text, text, integer) is 'Begins to stop a crawl; returns what is left to be closed.';

create or replace function holdfast.crawl_cancel(p_crawl uuid, p_by text, p_why text) returns bigint language sql as $$
  select holdfast.crawl_stop(p_crawl, 'cancelled', p_by, p_why, 1000)
$$;
comment on function holdfast.crawl_cancel(uuid, text, text) is 'Cancels a crawl; returns what is left for crawl_stop_step, which the nodes do if nobody else does.';

-- Scope -----------------------------------------------------------------------------------------------------------------

create or replace function holdfast.url_matches(p_pattern text, p_url text, p_host text) returns boolean language sql immutable parallel safe as $$
  -- A domain (its subdomains too), *.domain (only these), or a regular expression that fits somewhere in the URL.
  select case when p_pattern ~ '^[a-z0-9-]+([.][a-z0-9-]+)+$' then p_host = p_pattern or right(p_host, length(p_pattern) + 1) = '.' || p_pattern
              when p_pattern ~ '^[*][.][a-z0-9-]+([.][a-z0-9-]+)*$' then right(p_host, length(p_pattern) - 1) = substr(p_pattern, 2)
              else p_url ~* p_pattern end
$$;
comment on function holdfast.url_matches(text, text, text) is 'Whether a URL fits a pattern: a domain, *.domain, or a regular expression.';

create or replace function holdfast.scope_refusal(p_scope jsonb, p_url text, p_host text) returns text language plpgsql immutable parallel safe as $$
-- Why a URL does not belong to a crawl; NULL: it does. Keys of p_scope, all optional:
--   schemes                    those allowed
--   deny                       patterns of what is left out
--   allow                      patterns; if there are any, one must fit
--   hosts, domains, prefixes   if there are any, one must fit: the very host, the domain or below it, the beginning of the URL
begin
  if p_scope = '{}' then return null; end if;
  if p_scope ? 'schemes' and not p_scope -> 'schemes' ? split_part(p_url, ':', 1) then
    return 'its scheme is not allowed';
  end if;
  if p_scope ? 'deny' and exists (select from jsonb_array_elements_text(p_scope -> 'deny') d where holdfast.url_matches(d, p_url, p_host)) then
    return 'excluded: ' || (select d from jsonb_array_elements_text(p_scope -> 'deny') d where holdfast.url_matches(d, p_url, p_host) limit 1);
  end if;
  if jsonb_array_length(coalesce(p_scope -> 'allow', '[]')) > 0
     and not exists (select from jsonb_array_elements_text(p_scope -> 'allow') a where holdfast.url_matches(a, p_url, p_host)) then
    return 'not among what is allowed';
  end if;
  if (p_scope ? 'hosts' or p_scope ? 'domains' or p_scope ? 'prefixes')
     and not coalesce(p_scope -> 'hosts' ? p_host, false)
     and not exists (select from jsonb_array_elements_text(p_scope -> 'domains') d where p_host = d or right(p_host, length(d) + 1) = '.' || d)
     and not exists (select from jsonb_array_elements_text(p_scope -> 'prefixes') x where starts_with(p_url, x)) then
    return 'outside the sites it may visit';
  end if;
  return null;
end $$;
comment on function holdfast.scope_refusal(jsonb, text, text) is 'Why a URL is outside a crawl''s scope, or NULL.';

create or replace function holdfast.scope_check(p_scope jsonb) returns void language plpgsql immutable as $$
declare
  v_key text;
  v_pattern text;
begin
  for v_key in select jsonb_object_keys(p_scope) loop
    if v_key not in ('schemes', 'deny', 'allow', 'hosts', 'domains', 'prefixes') or jsonb_typeof(p_scope -> v_key) <> 'array' then
      raise exception 'scope: "%" is no list that a scope has', v_key using errcode = 'HF004',
        hint = 'A scope has schemes, deny, allow, hosts, domains and prefixes.';
    end if;
  end loop;
  for v_pattern in select jsonb_array_elements_text(p_scope -> k) from unnest(array['deny', 'allow']) k loop
    begin
      perform holdfast.url_matches(v_pattern, 'https://example.com/', 'example.com');
    exception when invalid_regular_expression then
      raise exception 'scope: "%" is no pattern: %', v_pattern, sqlerrm using errcode = 'HF004',
        hint = 'A pattern is a domain (example.com), *.example.com, or a regular expression.';
    end;
  end loop;
end $$;
comment on function holdfast.scope_check(jsonb) is 'Refuses a scope that makes no sense.';

create or replace function holdfast.crawl_scope(p_crawl uuid, p_add jsonb, p_remove jsonb, p_by text) returns bigint language plpgsql as $$
-- Adds to and removes from the lists of a crawl's scope, e.g. {"deny": ["ads.example.com"]}. The crawl leaves crawl_queue until all of
-- its open snapshots are judged by the new scope, so no claim takes what the old one allowed. Returns 1, or 0 if nothing changed.
declare
  v_crawl holdfast.crawl;
  v_scope jsonb;
  v_key text;
  v_list jsonb;
begin
  select * into v_crawl from holdfast.crawl where id = p_crawl for no key update;
  if not found then raise exception 'there is no crawl %', p_crawl using errcode = 'HF004'; end if;
  if v_crawl.status = 'sealed' or v_crawl.stopping_at is not null then
    raise exception 'crawl % has ended', p_crawl using errcode = 'HF004', hint = 'The scope of a crawl can be changed while it is open.';
  end if;
  v_scope := v_crawl.scope;
  for v_key in select jsonb_object_keys(p_add) union select jsonb_object_keys(p_remove) loop
    select jsonb_agg(distinct e) into v_list
      from jsonb_array_elements(coalesce(v_scope -> v_key, '[]') || coalesce(p_add -> v_key, '[]')) e
      where not coalesce(p_remove -> v_key, '[]') @> e;
    v_scope := case when v_list is null then v_scope - v_key else v_scope || jsonb_build_object(v_key, v_list) end;
  end loop;
  perform holdfast.scope_check(v_scope);
  if v_scope = v_crawl.scope then return 0; end if;
  update holdfast.crawl set scope = v_scope, judged_to = '', changed_by = p_by, owner_id = null,
      retry_at = case status when 'paused' then retry_at else clock_timestamp() end where id = p_crawl;
  perform holdfast.control_note('scope', 'crawl', p_crawl::text, p_crawl, p_by, 'now ' || v_scope::text, 0);
  perform holdfast.ring();
  return 1;
end $$;
comment on function holdfast.crawl_scope(uuid, jsonb, jsonb, text) is 'Changes what belongs to a crawl, while it runs.';

create or replace function holdfast.crawl_judge_step(p_crawl uuid, p_batch integer) returns boolean language plpgsql as $$
-- Judges the next p_batch snapshots by a changed scope: what is outside is parked (in work or not), what is inside again comes back.
-- Returns whether all are judged; then the crawl can be claimed from again.
declare
  v_crawl holdfast.crawl;
  v_row record;
  v_last bytea;
  v_count integer := 0;
begin
  select * into v_crawl from holdfast.crawl where id = p_crawl for no key update;
  if not found or v_crawl.judged_to is null then return true; end if;
  perform from holdfast.snapshot_queue q where q.owner_id is not null and q.crawl_id = p_crawl order by q.snapshot_id for update;
  perform from holdfast.host h where h.name in (select q.host from holdfast.snapshot_queue q where q.owner_id is not null and q.crawl_id = p_crawl and q.lane)
    order by h.name for no key update;
  for v_row in
    select s.id, s.url_hash, q.excluded, q.owner_id, q.status, holdfast.scope_refusal(v_crawl.scope, s.url, s.host) as refusal
      from (select id, crawl_id, url_hash, url, host from holdfast.snapshot
              where crawl_id = p_crawl and url_hash > v_crawl.judged_to order by url_hash limit p_batch) s
      left join holdfast.snapshot_queue q on q.snapshot_id = s.id and q.crawl_id = s.crawl_id
      order by s.url_hash
  loop
    v_count := v_count + 1;
    v_last := v_row.url_hash;
    if v_row.status is null then continue; end if;
    if v_row.refusal is not null and not v_row.excluded and v_row.status <> 'paused' then
      perform from holdfast.snapshot_queue where snapshot_id = v_row.id and crawl_id = p_crawl for update;
      perform holdfast.snapshot_set(v_row.id, p_crawl, 'excluded', v_row.refusal || coalesce(' (by ' || nullif(v_crawl.changed_by, '') || ')', ''));
    elsif v_row.refusal is null and v_row.excluded then
      perform from holdfast.snapshot_queue where snapshot_id = v_row.id and crawl_id = p_crawl for update;
      perform holdfast.snapshot_set(v_row.id, p_crawl, 'queued', null);
    end if;
  end loop;
  perform pg_notify('holdfast', 'control');
  if v_count = p_batch then
    update holdfast.crawl set judged_to = v_last where id = p_crawl;
    return false;
  end if;
  update holdfast.crawl set judged_to = null where id = p_crawl;
  perform holdfast.crawl_settle(p_crawl);
  return true;
end $$;
comment on function holdfast.crawl_judge_step(uuid, integer) is 'Applies a changed scope to the next batch of open snapshots.';

-- Trying again -------------------------------------------------------------------------------------------------------------

create or replace function holdfast.crawl_retry(p_new uuid, p_ids uuid[], p_failed boolean, p_plugins text[], p_by text) returns bigint language plpgsql as $$
-- What is sealed stays as it is: trying again is a new crawl of the URLs in question, each at its old depth, with the options of the
-- first crawl named. p_ids: crawls and snapshots. p_failed: of the crawls only what did not go well; with p_plugins: only where one
-- of these failed. p_plugins: run only these. Returns how many URLs; none: nothing is added.
declare
  v_source holdfast.crawl;
  v_count bigint;
begin
  p_failed := coalesce(p_failed, false);
  p_plugins := coalesce(p_plugins, '{}');
  if p_new is null or p_new = any (p_ids) then
    raise exception 'the new crawl needs an id of its own' using errcode = 'HF004', hint = 'holdfast.new_uuid() makes one.';
  end if;
  if exists (select from holdfast.crawl where id = p_new) then
    return (select seeds_total from holdfast.crawl where id = p_new);
  end if;
  select c.* into v_source from unnest(p_ids) with ordinality i(id, n)
    join holdfast.crawl c on c.id = i.id or c.id = (select s.crawl_id from holdfast.snapshot s where s.id = i.id)
    order by i.n limit 1;
  if not found then raise exception 'there is no such crawl or snapshot' using errcode = 'HF004'; end if;
  perform holdfast.crawl_add(p_new, jsonb_build_object('label', case when v_source.label = '' then '' else v_source.label || ' (again)' end,
    'tags', v_source.tags, 'persona', v_source.persona, 'options', v_source.options, 'max_depth', v_source.max_depth, 'max_urls', v_source.max_urls,
    'plugins', case when cardinality(p_plugins) > 0 then p_plugins else v_source.plugins end, 'priority', v_source.priority,
    'scope', v_source.scope, 'max_bytes', v_source.max_bytes, 'max_time', v_source.max_time, 'max_parallel', v_source.max_parallel,
    'host_delay', v_source.host_delay, 'host_parallel', v_source.host_parallel, 'max_snapshot_bytes', v_source.max_snapshot_bytes,
    'robots', v_source.robots, 'retry_of', v_source.id, 'created_by', p_by));
  insert into holdfast.crawl_seed (crawl_id, position, url, host, title, tags, depth)
    select p_new, row_number() over (order by u.depth, u.position), u.url, u.host, u.title, u.tags,
           -- Links of a page that was archived have been followed.
           case when u.archived then v_source.max_depth else u.depth end
      from (select distinct on (s.url_hash) s.id as position, s.url, s.host, coalesce(nullif(e.title, ''), s.title) as title, e.tags,
                   least(s.depth, v_source.max_depth) as depth, e.outcome in ('succeeded', 'partial') as archived
              from unnest(p_ids) i(id)
              join holdfast.snapshot s on s.id = i.id or s.crawl_id = i.id
              join holdfast.snapshot_sealed e on e.snapshot_id = s.id and e.crawl_id = s.crawl_id
              where not p_failed
                 or (cardinality(p_plugins) = 0 and e.outcome <> 'succeeded')
                 or exists (select from holdfast.archive_result r where r.snapshot_id = s.id and r.crawl_id = s.crawl_id and r.fence = e.fence
                              and r.status = 'failed' and r.plugin = any (p_plugins))
              order by s.url_hash, s.depth) u;
  get diagnostics v_count = row_count;
  if v_count = 0 then
    delete from holdfast.crawl where id = p_new;
    delete from holdfast.event where object_id = p_new;
    return 0;
  end if;
  update holdfast.crawl set seeds_total = v_count, seeds_left = v_count,
      first_url = (select url from holdfast.crawl_seed where crawl_id = p_new order by position limit 1) where id = p_new;
  perform holdfast.control_note('retry', 'crawl', v_source.id::text, v_source.id, p_by, format('%s, as crawl %s', holdfast.people_count(v_count, 'URL'), p_new), 0);
  return v_count;
end $$;
comment on function holdfast.crawl_retry(uuid, uuid[], boolean, text[], text) is 'Adds a crawl (p_new: holdfast.new_uuid()) of the crawls and snapshots p_ids; p_failed: only of what failed; p_plugins: only with these (''{}'': all). Returns how many URLs.';

-- Tags, keeping, removing -----------------------------------------------------------------------------------------------------

create or replace function holdfast.crawl_describe(p_crawl uuid, p_label text, p_notes text, p_add text[], p_remove text[], p_by text) returns bigint language plpgsql as $$
-- Label, notes and tags of a crawl; its snapshots that are still open take the tags with them. NULL: as it is.
declare
  v_changed bigint;
begin
  perform from holdfast.crawl where id = p_crawl for no key update;
  if not found then raise exception 'there is no crawl %', p_crawl using errcode = 'HF004'; end if;
  update holdfast.crawl c set label = coalesce(p_label, c.label), notes = coalesce(p_notes, c.notes),
      tags = array(select distinct t from unnest(c.tags || p_add) t where not t = any (p_remove) order by t)
    where c.id = p_crawl;
  update holdfast.snapshot s set tags = array(select distinct t from unnest(s.tags || p_add) t where not t = any (p_remove) order by t)
    from holdfast.snapshot_queue q
    where s.crawl_id = p_crawl and q.snapshot_id = s.id and q.crawl_id = s.crawl_id and (cardinality(p_add) > 0 or cardinality(p_remove) > 0);
  get diagnostics v_changed = row_count;
  if exists (select from holdfast.crawl where id = p_crawl and status = 'sealed') then perform holdfast.crawl_page_changes(p_crawl); end if;
  perform holdfast.control_note('tag', 'crawl', p_crawl::text, p_crawl, p_by, concat_ws(', ', 'label ' || p_label, 'notes', '+' || nullif(array_to_string(p_add, ' +'), ''), '-' || nullif(array_to_string(p_remove, ' -'), '')), 0);
  return v_changed;
end $$;
comment on function holdfast.crawl_describe(uuid, text, text, text[], text[], text) is 'Changes label, notes and tags of a crawl.';

create or replace function holdfast.crawl_keep(p_crawl uuid, p_for interval) returns timestamptz language plpgsql as $$
declare
  v_until timestamptz;
begin
  if p_for < '0' then raise exception 'a crawl cannot be kept for less than no time' using errcode = 'HF004'; end if;
  update holdfast.crawl set keep_until = clock_timestamp() + p_for where id = p_crawl returning keep_until into v_until;
  if not found then raise exception 'there is no crawl %', p_crawl using errcode = 'HF004'; end if;
  return v_until;
end $$;
comment on function holdfast.crawl_keep(uuid, interval) is 'Says how long a crawl is kept from now on; NULL: for ever.';

create or replace function holdfast.crawl_remove(p_crawl uuid, p_by text) returns bigint language plpgsql as $$
-- Deletes a sealed crawl with all its snapshots. Their directories are listed in holdfast.purge by the same transaction; whoever
-- has the archive deletes them. Returns how many directories.
declare
  v_count bigint;
begin
  perform from holdfast.crawl where id = p_crawl for no key update;
  if not found then return 0; end if;
  if exists (select from holdfast.crawl where id = p_crawl and status <> 'sealed') then
    raise exception 'crawl % is not sealed', p_crawl using errcode = 'HF004', hint = 'Cancel it first.';
  end if;
  insert into holdfast.purge (directory)
    select regexp_replace(e.directory, '/a[0-9]+$', '') from holdfast.snapshot_sealed e where e.crawl_id = p_crawl and e.directory is not null
    on conflict do nothing;
  get diagnostics v_count = row_count;
  delete from holdfast.crawl where id = p_crawl;
  perform holdfast.crawl_page_changes(p_crawl);
  perform holdfast.control_note('remove', 'crawl', p_crawl::text, p_crawl, p_by, v_count || ' directories', 0);
  return v_count;
end $$;
comment on function holdfast.crawl_remove(uuid, text) is 'Deletes a sealed crawl; its files are listed in purge.';

create or replace function holdfast.crawls_expired(p_limit bigint) returns setof uuid language sql stable as $$
  select id from holdfast.crawl where keep_until < clock_timestamp() and status = 'sealed' order by keep_until limit p_limit
$$;
comment on function holdfast.crawls_expired(bigint) is 'Sealed crawls past keep_until.';

create or replace function holdfast.purge_list(p_limit bigint) returns setof text language sql stable as $$
  select directory from holdfast.purge order by requested_at limit p_limit
$$;
comment on function holdfast.purge_list(bigint) is 'Directories to be deleted from the archive.';

create or replace function holdfast.purge_waiting(p_limit bigint, p_age interval) returns setof text language sql stable as $$
  -- For nodes: what no runner has deleted by then, because none has the archive, or none runs.
  select directory from holdfast.purge where requested_at < clock_timestamp() - p_age order by requested_at limit p_limit
$$;
comment on function holdfast.purge_waiting(bigint, interval) is 'Directories that have waited to be deleted for longer than that.';

create or replace function holdfast.purge_done(p_directories text[]) returns void language sql as $$
  delete from holdfast.purge where directory = any (p_directories)
$$;
comment on function holdfast.purge_done(text[]) is 'These directories are gone.';

create or replace view holdfast.v_control as
  select c.id, c.at, c.action, c.kind, c.target, c.by_whom, c.detail, c.held, c.crawl_id from holdfast.control c;
comment on view holdfast.v_control is 'Orders given to the collection, and when each took effect.';
