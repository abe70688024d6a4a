-- Nodes: joining, beating, leaving, and giving up on those that do not beat any more.

create or replace function holdfast.schema_minimum() returns integer language plpgsql stable as $$
declare
  v_minimum integer;
begin
  if to_regclass('holdfast.schema_migration') is null then return 0; end if; -- psql applied the files
  execute 'select max(number) from holdfast.schema_migration where breaking' into v_minimum;
  return coalesce(v_minimum, 0);
end $$;
comment on function holdfast.schema_minimum() is 'The least schema revision that a program must know to work on this database.';

create or replace function holdfast.older_programs(p_revision integer) returns table (label text, version text, revision integer) language plpgsql as $$
-- Called within a migration. Locks out who wants to join, until that commits: what is not in the list then finds the new minimum.
begin
  lock table holdfast.process in share row exclusive mode;
  return query select p.label, p.version, p.revision from holdfast.process p
    where p.status = 'running' and p.lease_until > clock_timestamp() and coalesce(p.revision, 0) < p_revision order by p.label;
end $$;
comment on function holdfast.older_programs(integer) is 'Processes that run now and know less than this revision of the schema.';

create or replace function holdfast.node_join(p_id uuid, p_machine jsonb, p_boot_id text, p_pid integer, p_start_ticks bigint,
    p_parent uuid, p_process_type text, p_worker_type text, p_label text, p_version text, p_slots integer, p_lease interval)
  returns uuid language plpgsql as $$
-- Returns the collection's id. May be repeated with the same id while that process is running. A node with a new id, but the same process as
-- before, has lost its lease and comes back: what it was told still holds.
declare
  v_now constant timestamptz := clock_timestamp();
begin
  insert into holdfast.machine as m (id, hostname, os, architecture, cpu_count, memory_bytes)
    values (p_machine ->> 'id', p_machine ->> 'hostname', coalesce(p_machine ->> 'os', ''), coalesce(p_machine ->> 'architecture', ''),
            coalesce((p_machine ->> 'cpu_count')::integer, 0), coalesce((p_machine ->> 'memory_bytes')::bigint, 0))
    on conflict (id) do update set hostname = excluded.hostname, os = excluded.os, architecture = excluded.architecture,
      cpu_count = excluded.cpu_count, memory_bytes = excluded.memory_bytes, last_seen_at = v_now;
  insert into holdfast.process (id, machine_id, boot_id, pid, start_ticks, parent_id, process_type, worker_type, label, version,
      slots, beat_at, lease_until, pid_namespace, revision, capabilities, paused_at, paused_by, request, draining)
    select p_id, p_machine ->> 'id', p_boot_id, p_pid, p_start_ticks, (select id from holdfast.process where id = p_parent), p_process_type, p_worker_type, p_label, p_version,
           p_slots, v_now, v_now + p_lease, coalesce(p_machine ->> 'pid_namespace', ''),
           (p_machine #>> '{program,revision}')::integer, coalesce(p_machine #> '{program,capabilities}', '{}'),
           before.paused_at, before.paused_by, before.request, coalesce(before.draining, false)
      from (values (1)) one
      left join (select o.paused_at, o.paused_by, o.request, o.draining from holdfast.process o
                   where o.start_ticks = p_start_ticks and o.pid = p_pid and o.boot_id = p_boot_id and o.machine_id = p_machine ->> 'id'
                     and o.pid_namespace = coalesce(p_machine ->> 'pid_namespace', '') and o.process_type = p_process_type and p_process_type = 'worker'
                     and (o.exit_reason in ('lease lapsed', 'lost trust') or (o.status = 'running' and o.lease_until <= v_now))
                   order by o.started_at desc limit 1) before on true
    on conflict (id) do nothing;
  -- A migration that shuts out older programs holds the table until it commits, so we come before it is checked or after it is done.
  if (p_machine #>> '{program,revision}')::integer < holdfast.schema_minimum() then
    raise exception 'this program (schema revision %) is too old for the database, which demands % by now', p_machine #>> '{program,revision}',
      holdfast.schema_minimum() using errcode = 'HF004', hint = 'use a newer holdfast';
  end if;
  if not exists (select from holdfast.process where id = p_id and status = 'running') then
    raise exception 'process % has already been given up', p_id using errcode = 'HF002';
  end if;
  return (select id from holdfast.collection);
end $$;
comment on function holdfast.node_join(uuid, jsonb, text, integer, bigint, uuid, text, text, text, text, integer, interval) is 'A process takes its place; what it claims is covered until lease_until.';

create or replace function holdfast.node_may_claim(p_node uuid) returns boolean language plpgsql as $$
-- A node that nobody counts on any more must not claim; a draining one claims nothing. Holds the node's row until the end of
-- the transaction, before any other lock: giving the node up waits for the claim, or the claim for that, never both.
begin
  perform from holdfast.process where id = p_node and status = 'running' and lease_until > clock_timestamp() and not draining for key share;
  if found then
    return not exists (select from holdfast.collection where paused_at is not null)
           and not exists (select from holdfast.process where id = p_node and paused_at is not null);
  end if;
  if exists (select from holdfast.process where id = p_node and status = 'running' and draining) then return false; end if;
  raise exception 'node % has been given up: its lease lapsed', p_node using errcode = 'HF002';
end $$;
comment on function holdfast.node_may_claim(uuid) is 'Whether a node may claim now; raises HF002 if it has been given up.';

create or replace function holdfast.log_level_of(p_process uuid) returns text language sql stable as $$
  select coalesce((select p.log_level from holdfast.process p where p.id = p_process), (select c.log_level from holdfast.collection c))
$$;
comment on function holdfast.log_level_of(uuid) is 'The log level that is asked of a process; NULL: what it has configured.';

create or replace function holdfast.log_level_set(p_process uuid, p_level text) returns void language plpgsql as $$
-- Of one process, or (NULL) of all, now and later. Level NULL: back to what each has configured. Heard at once, kept by the row.
begin
  if p_level not in ('trace', 'debug', 'info', 'warn', 'error', 'off') then
    raise exception '"%" is no log level: trace, debug, info, warn, error or off', p_level using errcode = 'HF004';
  end if;
  if p_process is null then
    update holdfast.collection set log_level = p_level;
    update holdfast.process set log_level = null where status = 'running' and log_level is not null;
  else
    update holdfast.process set log_level = p_level where id = p_process and status = 'running';
    if not found then raise exception 'no process % is running', p_process using errcode = 'HF004', hint = 'select id from holdfast.v_node'; end if;
  end if;
  perform pg_notify('holdfast', 'control');
end $$;
comment on function holdfast.log_level_set(uuid, text) is 'Changes how much nodes and runners log, at run time.';

create or replace function holdfast.node_beat(p_node uuid, p_lease interval, p_snapshots uuid[], p_fences bigint[], p_stats jsonb)
  returns table (kind text, snapshot_id uuid, crawl_id uuid, fence bigint, detail text)
  language plpgsql set plan_cache_mode = force_custom_plan as $$
-- One statement renews everything the node holds: its own lease. Answers with what the node must know:
--   lost     the node believes to hold this, but does not: stop that job, write nothing
-- What it holds although somebody has forbidden it meanwhile (a claim was under way) is taken from it here.
--   extra    the node holds this without knowing (the answer to its claim was lost): hand it back
--   request  somebody asks it to drain, stop or leave
--   log_level  somebody asks it to log so much
#variable_conflict use_column
declare
  v_request text;
  v_draining boolean;
begin
  update holdfast.process set beat_at = clock_timestamp(), lease_until = clock_timestamp() + p_lease, stats = p_stats
    where id = p_node and status = 'running' returning request, draining into v_request, v_draining;
  if not found then
    raise exception 'node % has been given up: its lease lapsed', p_node using errcode = 'HF002';
  end if;
  perform holdfast.control_apply(p_node);
  return query
    select 'lost', h.id, null::uuid, h.held_fence, null::text
      from unnest(p_snapshots, p_fences) h(id, held_fence)
      where not exists (select from holdfast.snapshot_queue q where q.snapshot_id = h.id and q.owner_id = p_node and q.fence = h.held_fence)
    union all
    select 'extra', q.snapshot_id, q.crawl_id, q.fence, null
      from holdfast.snapshot_queue q where q.owner_id = p_node and not (q.snapshot_id = any (p_snapshots))
    union all
    select 'request', null, null, null, coalesce(v_request, 'drain') where v_request is not null or v_draining
    union all
    select 'log_level', null, null, null, l.level from (select holdfast.log_level_of(p_node) as level) l where l.level is not null;
end $$;
comment on function holdfast.node_beat(uuid, interval, uuid[], bigint[], jsonb) is 'Renews a node''s lease; says what it lost, what it holds unawares, and what it is asked to do.';

create or replace function holdfast.node_return(p_node uuid, p_ending text, p_reason text, p_spend boolean) returns integer
  language plpgsql as $$
-- Gives everything the node holds back to the queue. p_spend: the node died with it, count that against the snapshot.
declare
  v_row record;
  v_due timestamptz;
  v_count integer := 0;
begin
  -- Crawls first, in order, also those it is just expanding: the same lock order as sealing, and as any other node's return.
  perform from holdfast.crawl c
    where c.id in (select q.crawl_id from holdfast.snapshot_queue q where q.owner_id = p_node
                   union all select o.id from holdfast.crawl o where o.owner_id = p_node)
    order by c.id for no key update;
  -- All rows before the first of them wakes its crawl: the owner, if it still lives, locks in that order too.
  perform from holdfast.snapshot_queue q where q.owner_id = p_node order by q.crawl_id, q.snapshot_id for update;
  perform from holdfast.host h where h.name in (select q.host from holdfast.snapshot_queue q where q.owner_id = p_node and q.lane)
    order by h.name for no key update;
  perform from holdfast.crawl_queue c where c.crawl_id in (select q.crawl_id from holdfast.snapshot_queue q where q.owner_id = p_node)
    order by c.crawl_id for no key update;
  for v_row in
    select q.snapshot_id, q.crawl_id, q.host, q.lane, q.fence, q.status, q.owners_lost + p_spend::integer as lost, c.stopping_at
      from holdfast.snapshot_queue q join holdfast.crawl c on c.id = q.crawl_id
      where q.owner_id = p_node order by q.crawl_id, q.snapshot_id
  loop
    perform holdfast.attempt_end(v_row.snapshot_id, v_row.crawl_id, p_ending, p_reason);
    perform holdfast.results_close(v_row.snapshot_id, v_row.crawl_id, v_row.fence, p_reason);
    if v_row.lost >= 3 then
      update holdfast.snapshot_queue set owners_lost = v_row.lost where snapshot_id = v_row.snapshot_id and crawl_id = v_row.crawl_id;
      perform holdfast.snapshot_finish(v_row.snapshot_id, v_row.crawl_id, 'quarantined',
        'the node that held it died, ' || v_row.lost || ' times over; the last: ' || p_reason, p_node, null, null, 0, 0, '', '{}');
    elsif v_row.stopping_at is not null then
      perform holdfast.snapshot_finish(v_row.snapshot_id, v_row.crawl_id, 'cancelled', 'its crawl was stopped', p_node, null, null, 0, 0, '', '{}');
    else
      v_due := clock_timestamp();
      perform set_config('holdfast.event', case p_ending when 'lost' then 'lapse' else 'release' end, true);
      update holdfast.snapshot_queue set status = 'queued', owner_id = null, claimed_at = null, started_at = null,
          retry_at = least(retry_at, v_due), reason = p_reason, owners_lost = v_row.lost, -- in its old place, not behind all that waits
          attempts = attempts - (case when p_spend then 0 else 1 end)
        where snapshot_id = v_row.snapshot_id and crawl_id = v_row.crawl_id;
      perform holdfast.crawl_wake(v_row.crawl_id, v_due);
      if v_row.lane then perform holdfast.lane_open(v_row.crawl_id, array[v_row.host], v_due); end if;
    end if;
    v_count := v_count + 1;
  end loop;
  update holdfast.crawl set owner_id = null, retry_at = clock_timestamp(), reason = p_reason where owner_id = p_node and status <> 'sealed';
  if found then perform holdfast.ring(); end if;
  perform holdfast.crawl_session_lapse(p_node, p_reason);
  return v_count;
end $$;
comment on function holdfast.node_return(uuid, text, text, boolean) is 'Puts what a node holds back into the queue.';

create or replace function holdfast.node_leave(p_node uuid, p_exit_code integer, p_reason text) returns void language plpgsql as $$
-- May be repeated. Whatever the node still held goes back, without counting against it.
begin
  perform from holdfast.process where id = p_node and status = 'running' for update;
  if not found then return; end if;
  perform holdfast.node_return(p_node, 'interrupted', 'its node left: ' || p_reason, false);
  perform set_config('holdfast.event', 'exit', true);
  update holdfast.process set status = 'exited', ended_at = clock_timestamp(), exit_code = p_exit_code, exit_reason = p_reason,
      lease_until = null where id = p_node;
end $$;
comment on function holdfast.node_leave(uuid, integer, text) is 'A process ends in good order.';

create or replace function holdfast.lapse_nodes() returns integer language plpgsql as $$
-- Takes the work of a node whose lease has run out, one node a call: its crawls are locked in order, those of two nodes would
-- not be. Anybody may call it, any number at once; every claim does.
declare
  v_node record;
  v_count integer := 0;
begin
  for v_node in
    select id, label, lease_until from holdfast.process
      where status = 'running' and lease_until <= clock_timestamp() order by lease_until limit 1 for update skip locked
  loop
    v_count := v_count + holdfast.node_return(v_node.id, 'lost',
      'its node was lost: ' || v_node.label || ' was last sure of its lease until ' || to_char(v_node.lease_until at time zone 'UTC', 'HH24:MI:SS') || ' UTC', true);
    perform set_config('holdfast.event', 'exit', true);
    update holdfast.process set status = 'exited', ended_at = clock_timestamp(), exit_reason = 'lease lapsed', lease_until = null
      where id = v_node.id;
    -- Last, and in one order: whoever else gives up a node waits here for no longer than our commit takes.
    update holdfast.tally t set value = t.value + n.more
      from (values ('nodes_lost', 1), ('takeovers', v_count)) n(name, more) where t.name = n.name and n.more > 0;
  end loop;
  return v_count;
end $$;
comment on function holdfast.lapse_nodes() is 'Gives the work of a dead node to others; returns how many snapshots.';

create or replace function holdfast.node_gone(p_node uuid) returns boolean language plpgsql as $$
-- For who has seen on its own machine that the process is dead (boot, pid and start time) and that nothing it started runs: its
-- lease ends now instead of later, and the next claim takes its work.
begin
  update holdfast.process set lease_until = clock_timestamp() where id = p_node and status = 'running' and lease_until > clock_timestamp();
  return found;
end $$;
comment on function holdfast.node_gone(uuid) is 'Ends the lease of a process that is known to be dead.';

create or replace function holdfast.restored(p_by text) returns bigint language plpgsql as $$
-- A restored database knows nothing of what was done after its backup: nodes of then may still run, and files with the fences that
-- would be given next may be in the archive. All processes are given up, and every fence that is still open jumps far ahead of any
-- that was ever given, so that nothing of before can be taken for something of now. Returns how many snapshots were given back.
declare
  v_process record;
  v_count bigint := 0;
begin
  lock table holdfast.process in share row exclusive mode; -- nobody joins meanwhile
  for v_process in select id from holdfast.process where status = 'running' order by id for update loop
    v_count := v_count + holdfast.node_return(v_process.id, 'interrupted', 'the database was restored', false);
    perform set_config('holdfast.event', 'exit', true);
    update holdfast.process set status = 'exited', ended_at = clock_timestamp(), exit_reason = 'the database was restored', lease_until = null
      where id = v_process.id;
  end loop;
  update holdfast.crawl set fence = fence + 1000000 where status <> 'sealed';
  update holdfast.snapshot_queue set fence = fence + 1000000;
  perform holdfast.grant_roles(); -- roles are no part of a dump of one database
  perform holdfast.control_note('restored', 'all', 'collection', null, p_by, null, v_count);
  return v_count;
end $$;
comment on function holdfast.restored(text) is 'To be called once on a restored database, before any node starts: gives up the processes of then and lets fences jump.';
