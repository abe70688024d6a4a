-- Processes: workers, runners, servers and long commands join, leave and lapse in the same way.

create or replace function holdfast.machine_of(p_id text)
  returns text language sql stable as $$
  -- Hook options and binaries of a machine are programs that run there. So each login has its own row of a
  -- machine: a process that claims to run on another machine changes nothing there.
  select translate(p_id, '@', '') || '@' || session_user
$$;

create or replace function holdfast.machine_said(p_machine text)
  returns text language sql immutable as $$
  -- Returns the name that the processes of a machine report.
  select split_part(p_machine, '@', 1)
$$;

create or replace function holdfast.mine(p_process uuid)
  returns uuid language plpgsql stable as $$
-- Ids of processes are not secret. So every function in which a process acts for itself first checks that the
-- process joined with the login of this session. A process without a row passes; its calls are refused later,
-- or change nothing.
begin
  if exists (select from holdfast.process p where p.id = p_process and p.login <> session_user) then
    raise exception 'process % is not of the login %', p_process, session_user
      using errcode = '42501', hint = 'It joined with another login of the database.';
  end if;
  return p_process;
end $$;

create or replace function holdfast.process_join(p_id uuid, p_process jsonb, p_lease interval)
  returns uuid language plpgsql as $$
-- p_process: columns of holdfast.process, and those of its machine as "machine". Returns the collection's id.
-- May be repeated with the same id while that process runs. A worker with a new id but the same operating
-- system process has lost its lease and comes back: its commands (pause, drain) still hold.
declare
  v_now constant timestamptz := clock_timestamp();
  v_machine holdfast.machine := jsonb_populate_record(null::holdfast.machine,
    '{"os": "", "architecture": "", "cpu_count": 0, "memory_bytes": 0}' || (p_process -> 'machine'));
  v_new constant holdfast.process := jsonb_populate_record(null::holdfast.process,
    '{"pid_namespace": "", "capabilities": {}, "standby": false, "slots": 0}' || p_process);
begin
  perform holdfast.lease_check(p_lease);
  perform holdfast.mine(p_id);
  v_machine.id := holdfast.machine_of(v_machine.id);
  insert into holdfast.machine as m (id, hostname, os, architecture, cpu_count, memory_bytes)
    values (v_machine.id, v_machine.hostname, v_machine.os, v_machine.architecture, v_machine.cpu_count,
            v_machine.memory_bytes)
    on conflict (id) do update
      set hostname = excluded.hostname, os = excluded.os, architecture = excluded.architecture,
          cpu_count = excluded.cpu_count, memory_bytes = excluded.memory_bytes;
  insert into holdfast.process (
      id, machine_id, boot_id, pid, start_ticks, pid_namespace, parent_id,
      process_type, worker_type, label, version, revision, capabilities, slots, standby, heartbeat_at,
      lease_until, paused_at, paused_by, request, draining)
    select p_id, v_machine.id, v_new.boot_id, v_new.pid, v_new.start_ticks, v_new.pid_namespace,
           (select id from holdfast.process where id = v_new.parent_id),
           v_new.process_type, v_new.worker_type, v_new.label, v_new.version, v_new.revision,
           v_new.capabilities, v_new.slots, v_new.standby, v_now, v_now + p_lease,
           before.paused_at, before.paused_by, before.request, coalesce(before.draining, false)
      from (values (1)) one
      left join (select o.paused_at, o.paused_by, o.request, o.draining
                   from holdfast.process o
                   where o.start_ticks = v_new.start_ticks
                     and o.pid = v_new.pid
                     and o.boot_id = v_new.boot_id
                     and o.machine_id = v_machine.id
                     and o.pid_namespace = v_new.pid_namespace
                     and v_new.process_type = 'worker'
                     and o.process_type = v_new.process_type
                     and (o.exit_reason in ('lease lapsed', 'lost trust')
                          or (o.status = 'running' and o.lease_until <= v_now))
                   order by o.started_at desc
                   limit 1) before on true
    on conflict (id) do nothing;
  if found then
    insert into holdfast.event (lifecycle, object_id, event, to_state, process_id, detail)
      values ('process', p_id, 'join', 'running', p_id, v_new.label);
  end if;
  -- A breaking migration locks the table until it commits. So this insert comes before the migration looks
  -- for running programs, or after its end.
  if v_new.revision < holdfast.schema_minimum() then
    raise exception 'this program (schema revision %) is too old for the database, which requires %',
        v_new.revision, holdfast.schema_minimum()
      using errcode = 'HF004', hint = 'Use a newer holdfast.';
  end if;
  if not exists (select from holdfast.process where id = p_id and status = 'running') then
    raise exception 'process % has lapsed', p_id using errcode = 'HF002';
  end if;
  return (select id from holdfast.collection);
end $$;
comment on function holdfast.process_join(uuid, jsonb, interval)
  is 'A process joins; what it claims is covered until lease_until.';

create or replace function holdfast.process_present(p_id uuid, p_process jsonb, p_lease interval)
  returns void language plpgsql as $$
-- Joins at the first call, and renews the lease. For processes that claim nothing: they are here to be seen.
declare
  v_type constant text := p_process ->> 'process_type';
  v_standby constant boolean := coalesce((p_process ->> 'standby')::boolean, false);
begin
  perform holdfast.mine(p_id);
  if v_type not in ('serve', 'command') then
    raise exception 'a % cannot join with this function', v_type using errcode = 'HF004';
  end if;
  perform holdfast.lease_check(p_lease);
  update holdfast.process
    set heartbeat_at = clock_timestamp(), lease_until = clock_timestamp() + p_lease, standby = v_standby
    where id = p_id and status = 'running' and process_type = v_type;
  if not found then perform holdfast.process_join(p_id, p_process, p_lease); end if;
end $$;
comment on function holdfast.process_present(uuid, jsonb, interval) is 'Records that a server or a long command runs.';

create or replace function holdfast.process_left(p_id uuid, p_reason text)
  returns void language plpgsql as $$
begin
  perform holdfast.mine(p_id);
  if exists (select from holdfast.process where id = p_id and process_type in ('serve', 'command')) then
    perform holdfast.process_leave(p_id, null, p_reason);
  end if;
end $$;
comment on function holdfast.process_left is 'Records the end of a server or a long command.';

create or replace function holdfast.lease_check(p_lease interval)
  returns void language plpgsql immutable as $$
begin
  if p_lease is null or p_lease < '100 milliseconds' or p_lease > '1 hour' then
    raise exception 'a lease must be from 100 ms to 1 hour, not %', coalesce(p_lease::text, 'NULL')
      using errcode = 'HF004';
  end if;
end $$;

create or replace function holdfast.log_level_of(p_process uuid)
  returns text language sql stable as $$
  select coalesce((select p.log_level from holdfast.process p where p.id = p_process),
                  (select c.log_level from holdfast.collection c))
$$;
comment on function holdfast.log_level_of is
  'Returns the log level requested for a process; NULL: the one it has configured.';

create or replace function holdfast.log_level_set(p_process uuid, p_level text)
  returns void language plpgsql as $$
-- Sets the level of one process, or (NULL) of all, now and later. Level NULL: the one that each process has
-- configured.
begin
  if p_level not in ('trace', 'debug', 'info', 'warn', 'error', 'off') then
    raise exception '"%" is not a log level: trace, debug, info, warn, error or off', p_level
      using errcode = 'HF004';
  end if;
  if p_process is null then
    update holdfast.collection set log_level = p_level;
    update holdfast.process set log_level = null where status = 'running' and log_level is not null;
  else
    update holdfast.process set log_level = p_level where id = p_process and status = 'running';
    if not found then
      raise exception 'no process % is running', p_process
        using errcode = 'HF004', hint = 'select id from holdfast.v_worker';
    end if;
  end if;
  perform pg_notify('holdfast', 'control');
end $$;
comment on function holdfast.log_level_set is 'Changes how much workers and runners log, at run time.';

create or replace function holdfast.process_release(p_worker uuid, p_ending text, p_reason text)
  returns integer language plpgsql as $$
-- Releases everything a worker holds. p_ending: lapsed (it died: counted against each snapshot, see
-- collection.max_lapses) or interrupted (it left: not counted). Returns how many snapshots.
declare
  v_ids uuid[];
  v_crawls uuid[];
begin
  -- The crawls that it was expanding are included: all crawls are locked before the first snapshot.
  perform from holdfast.crawl c
    where c.id in (select q.crawl_id from holdfast.snapshot_queue q where q.owner_id = p_worker
                   union all
                   select o.id from holdfast.crawl o where o.owner_id = p_worker)
    order by c.id
    for no key update;
  select array_agg(q.snapshot_id), array_agg(distinct q.crawl_id)
    into v_ids, v_crawls
    from holdfast.snapshot_queue q
    where q.owner_id = p_worker;
  if v_ids is not null then
    perform holdfast.lock_for(v_crawls, v_ids);
    perform holdfast.end_pages(
      holdfast.judge_pages(holdfast.pages_of(v_ids, p_ending, null, p_reason), p_worker));
  end if;
  update holdfast.crawl
    set owner_id = null, retry_at = clock_timestamp(), reason = p_reason
    where owner_id = p_worker and status <> 'sealed';
  if found then perform holdfast.notify_workers(); end if;
  perform holdfast.session_lapse(p_worker, p_reason);
  delete from holdfast.persona_sign_in where process_id = p_worker;
  delete from holdfast.running_hook where process_id = p_worker;
  return coalesce(cardinality(v_ids), 0);
end $$;

create or replace function holdfast.process_leave(p_worker uuid, p_exit_code integer, p_reason text)
  returns void language plpgsql as $$
-- May be repeated.
begin
  perform holdfast.mine(p_worker);
  perform from holdfast.process where id = p_worker and status = 'running' for update;
  if not found then return; end if;
  perform holdfast.process_release(p_worker, 'interrupted', 'its worker left: ' || p_reason);
  update holdfast.process
    set status = 'exited', ended_at = clock_timestamp(), exit_code = p_exit_code, exit_reason = p_reason,
        lease_until = null
    where id = p_worker;
end $$;
comment on function holdfast.process_leave is 'Records the orderly exit of a process; releases what it still holds.';

create or replace function holdfast.lapse_process()
  returns integer language plpgsql as $$
-- Ends one process whose lease has run out and releases what it held; returns how many snapshots. One process
-- a call, because its crawls are locked in order, and those of two would not be. Every claim calls this, and
-- so does the runner.
declare
  v_worker record;
  v_count integer;
begin
  select id, label, lease_until, process_type
    into v_worker
    from holdfast.process
    where status = 'running' and lease_until <= clock_timestamp()
    order by lease_until
    limit 1
    for update skip locked;
  if not found then return 0; end if;
  v_count := holdfast.process_release(v_worker.id, 'lapsed',
    format('its worker lapsed: the lease of %s ran out at %s UTC', v_worker.label,
           to_char(v_worker.lease_until at time zone 'UTC', 'HH24:MI:SS')));
  update holdfast.process
    set status = 'exited', ended_at = clock_timestamp(), exit_reason = 'lease lapsed', lease_until = null
    where id = v_worker.id;
  -- Last, and in one order: another lapse waits here no longer than this commit takes.
  update holdfast.tally t
    set value = t.value + n.more
    from (values ('workers_lapsed', (v_worker.process_type = 'worker')::integer), ('takeovers', v_count))
           n(name, more)
    where t.name = n.name and n.more > 0;
  return v_count;
end $$;
comment on function holdfast.lapse_process is
  'Releases the work of one dead worker, if there is one; returns how many snapshots.';

create or replace function holdfast.process_gone(
    p_id uuid, p_machine_id text, p_boot_id text, p_pid_namespace text, p_pid integer, p_start_ticks bigint,
    p_reason text)
  returns boolean language plpgsql as $$
-- A program on the same machine has seen that the process is dead. Its lease ends now instead of when it runs
-- out; the next claim, task or candidate takes over. Fences and row locks still protect what it left half
-- done.
begin
  update holdfast.process
    set lease_until = least(lease_until, clock_timestamp()),
        stats = stats || jsonb_build_object('gone', p_reason)
    where id = p_id
      and status = 'running'
      and machine_id = holdfast.machine_of(p_machine_id)
      and boot_id = p_boot_id
      and pid_namespace = p_pid_namespace
      and pid_namespace <> ''
      and pid = p_pid
      and start_ticks = p_start_ticks;
  if not found then return false; end if;
  perform holdfast.notify_workers();
  return true;
end $$;
comment on function holdfast.process_gone is 'Ends the lease of a dead process of the caller''s own machine.';

create or replace function holdfast.restored(p_who text)
  returns bigint language plpgsql as $$
-- To be called once on a restored database, before any worker starts. The database knows nothing of what
-- happened after its backup: workers of that time may still run, and files with the next fences may be in the
-- archive. So every process is ended, and every open fence jumps far ahead of any that was ever given.
-- Returns how many snapshots were released.
declare
  v_process uuid;
  v_count bigint := 0;
begin
  lock table holdfast.process in share row exclusive mode; -- no process joins meanwhile
  for v_process in select id from holdfast.process where status = 'running' order by id for update
  loop
    v_count := v_count + holdfast.process_release(v_process, 'interrupted', 'the database was restored');
    update holdfast.process
      set status = 'exited', ended_at = clock_timestamp(), exit_reason = 'the database was restored',
          lease_until = null
      where id = v_process;
  end loop;
  update holdfast.collection set system_identifier = (pg_catalog.pg_control_system()).system_identifier;
  update holdfast.crawl set fence = fence + 1000000 where status <> 'sealed';
  update holdfast.snapshot_queue set fence = fence + 1000000;
  perform holdfast.grant_roles(); -- roles are no part of a dump of one database
  perform holdfast.control_done('restored', 'all', 'collection', null, p_who, null, v_count);
  return v_count;
end $$;
comment on function holdfast.restored is
  'Call once on a restored database, before any worker starts: ends all processes and lets fences jump.';
