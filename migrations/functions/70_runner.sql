-- The single-runner gate. One running process at a time is worker_runner (the index process_single_runner says so); those who want
-- to be are runner_waiting: live rows, honestly shown. The newest wins: it asks older ones to leave, waits until the leader has
-- left or its lease has run out, and is let through with the next epoch.
--
-- Whatever the runner does is one transaction that begins with runner_hold(): it locks the runner's own row for key share.
-- Whoever ends that lead (leaving, lapsing, taking over) needs the row for update, so it waits for the duty, or the duty finds
-- that it is too late. A beat (for no key update) disturbs neither.

create or replace function holdfast.runner_join(p_id uuid, p_machine jsonb, p_boot_id text, p_pid integer, p_start_ticks bigint,
    p_pid_namespace text, p_label text, p_version text, p_standby boolean, p_lease interval) returns uuid language plpgsql as $$
-- Returns the collection's id. May be repeated with the same id.
declare
  v_collection uuid;
begin
  v_collection := holdfast.node_join(p_id, p_machine, p_boot_id, p_pid, p_start_ticks, null, 'orchestrator', 'runner_waiting', p_label, p_version, 0, p_lease);
  update holdfast.process set pid_namespace = p_pid_namespace, standby = p_standby where id = p_id;
  return v_collection;
end $$;
comment on function holdfast.runner_join(uuid, jsonb, text, integer, bigint, text, text, text, boolean, interval) is 'A runner comes to the gate and waits there.';

create or replace function holdfast.runner_enter(p_id uuid, p_lease interval)
  returns table (answer text, epoch bigint, process_id uuid, label text, machine_id text, boot_id text, pid_namespace text, pid integer,
                 start_ticks bigint, standby boolean, leads boolean, lease_left interval) language plpgsql as $$
-- One try to get through the gate. Answers:
--   lead    it is open and now ours: epoch
--   yield   a newer runner wants it: leave (one row, the newer one)
--   wait    one row for each runner in the way
-- Never blocks on a duty, and never on another candidate for longer than its own such call.
#variable_conflict use_column
declare
  v_me holdfast.process;
  v_other holdfast.process;
  v_now timestamptz;
  v_epoch bigint;
begin
  select * into v_me from holdfast.process where id = p_id and status = 'running' for no key update;
  if not found then
    raise exception 'runner % has been given up: its lease lapsed', p_id using errcode = 'HF002';
  end if;
  if v_me.worker_type = 'worker_runner' then
    return query select 'lead', v_me.epoch, null::uuid, null, null, null, null, null::integer, null::bigint, null::boolean, null::boolean, null::interval;
    return;
  end if;
  v_now := clock_timestamp();

  -- The newest wins. Who stands by has agreed to wait for all others.
  select * into v_other from holdfast.process p
    where p.process_type = 'orchestrator' and p.status = 'running' and p.id <> p_id and p.lease_until > v_now and not p.standby
      and (v_me.standby or (p.started_at, p.id) > (v_me.started_at, v_me.id))
    order by p.worker_type = 'worker_runner' desc, p.started_at desc, p.id desc limit 1;
  if found then
    return query select case when v_me.standby then 'wait' else 'yield' end, null::bigint, v_other.id, v_other.label, v_other.machine_id, v_other.boot_id,
      v_other.pid_namespace, v_other.pid, v_other.start_ticks, v_other.standby, v_other.worker_type = 'worker_runner', v_other.lease_until - v_now;
    return;
  end if;

  if not v_me.standby then
    update holdfast.process set request = 'leave'
      where id in (select p.id from holdfast.process p
                     where p.process_type = 'orchestrator' and p.status = 'running' and p.id <> p_id and p.request is null
                       and (not p.standby or p.worker_type = 'worker_runner')
                     order by p.id for no key update skip locked);
    if found then perform pg_notify('holdfast', 'runner'); end if;
  end if;

  -- A leader that has left is not running. One whose lease has run out is put out here, unless a duty of its is just being done.
  if exists (select from holdfast.process p where p.worker_type = 'worker_runner' and p.status = 'running') then
    select * into v_other from holdfast.process p
      where p.worker_type = 'worker_runner' and p.status = 'running' and p.lease_until <= clock_timestamp() for update skip locked;
    if not found then
      return query select 'wait', null::bigint, p.id, p.label, p.machine_id, p.boot_id, p.pid_namespace, p.pid, p.start_ticks, p.standby, true, p.lease_until - v_now
        from holdfast.process p where p.worker_type = 'worker_runner' and p.status = 'running';
      if not found then
        return query select 'wait', null::bigint, null::uuid, null, null, null, null, null::integer, null::bigint, null::boolean, null::boolean, interval '0';
      end if;
      return;
    end if;
    perform set_config('holdfast.event', 'exit', true);
    update holdfast.process set status = 'exited', ended_at = clock_timestamp(), exit_reason = 'lease lapsed', lease_until = null where id = v_other.id;
    update holdfast.runner_term t set ended_at = clock_timestamp(), ending = 'its lease lapsed', valid_until = greatest(t.began_at, least(t.valid_until, v_other.lease_until))
      where t.epoch = v_other.epoch and t.ended_at is null;
  end if;

  begin
    update holdfast.process set worker_type = 'worker_runner', request = null, beat_at = clock_timestamp(), lease_until = clock_timestamp() + p_lease
      where id = p_id;
  exception when unique_violation then
    -- Another candidate was let through while we looked.
    return query select 'wait', null::bigint, null::uuid, null, null, null, null, null::integer, null::bigint, null::boolean, null::boolean, interval '0';
    return;
  end;
  -- From here on we are the only one: leads that ended without a word (their rows were given up by a claim) are closed.
  update holdfast.runner_term t set ended_at = clock_timestamp(), ending = 'its lease lapsed',
      valid_until = greatest(t.began_at, least(t.valid_until, (select p.ended_at from holdfast.process p where p.id = t.process_id)))
    where t.ended_at is null;
  select coalesce(max(t.epoch), 0) + 1 into v_epoch from holdfast.runner_term t;
  update holdfast.process set epoch = v_epoch where id = p_id;
  insert into holdfast.runner_term (epoch, process_id, label, valid_until)
    select v_epoch, p.id, p.label, greatest(p.lease_until, clock_timestamp()) from holdfast.process p where p.id = p_id;
  insert into holdfast.event (lifecycle, object_id, from_state, event, to_state, process_id, detail)
    values ('process', p_id, 'running', 'lead', 'running', p_id, 'leads with epoch ' || v_epoch);
  return query select 'lead', v_epoch, null::uuid, null, null, null, null, null::integer, null::bigint, null::boolean, null::boolean, null::interval;
end $$;
comment on function holdfast.runner_enter(uuid, interval) is 'One try of a waiting runner to get through the gate; says whom it waits for.';

create or replace function holdfast.runner_beat(p_id uuid, p_lease interval, p_stats jsonb) returns table (leads boolean, epoch bigint, request text, rival text) language plpgsql as $$
-- Renews the runner's lease. A lead that has run out is over, even if nobody has taken it yet. rival: who wants it, for people.
#variable_conflict use_column
declare
  v_now constant timestamptz := clock_timestamp();
  v_row holdfast.process;
begin
  update holdfast.process set beat_at = v_now, lease_until = v_now + p_lease, stats = p_stats
    where id = p_id and status = 'running' and (worker_type <> 'worker_runner' or lease_until > v_now) returning * into v_row;
  if not found then
    raise exception 'runner % has been given up: its lease lapsed', p_id using errcode = 'HF002';
  end if;
  if v_row.worker_type = 'worker_runner' then
    update holdfast.runner_term t set valid_until = v_row.lease_until where t.epoch = v_row.epoch and t.process_id = p_id and t.ended_at is null;
  end if;
  return query select v_row.worker_type = 'worker_runner', v_row.epoch, v_row.request,
    case when v_row.request = 'leave' then
      (select p.label from holdfast.process p where p.process_type = 'orchestrator' and p.status = 'running' and p.id <> p_id and not p.standby order by p.started_at desc, p.id desc limit 1) end;
end $$;
comment on function holdfast.runner_beat(uuid, interval, jsonb) is 'Renews a runner''s lease and tells it what it is asked.';

create or replace function holdfast.runner_hold(p_id uuid, p_epoch bigint) returns void language plpgsql as $$
begin
  perform from holdfast.process
    where id = p_id and status = 'running' and worker_type = 'worker_runner' and epoch = p_epoch and lease_until > clock_timestamp() for key share;
  if not found then
    raise exception 'runner % does not lead with epoch % any more', p_id, p_epoch using errcode = 'HF002';
  end if;
end $$;
comment on function holdfast.runner_hold(uuid, bigint) is 'The first statement of everything a runner does: it leads, and nobody else can until this transaction ends.';

create or replace function holdfast.runner_leave(p_id uuid, p_exit_code integer, p_reason text) returns void language plpgsql as $$
-- May be repeated. Wakes those who wait at the gate.
declare
  v_row holdfast.process;
begin
  select * into v_row from holdfast.process where id = p_id and status = 'running' for update;
  if not found then return; end if;
  if v_row.worker_type = 'worker_runner' then
    update holdfast.runner_term set valid_until = least(valid_until, greatest(began_at, clock_timestamp())), ended_at = clock_timestamp(), ending = 'left: ' || p_reason
      where epoch = v_row.epoch and process_id = p_id and ended_at is null;
  end if;
  perform holdfast.node_leave(p_id, p_exit_code, p_reason);
  perform pg_notify('holdfast', 'runner');
end $$;
comment on function holdfast.runner_leave(uuid, integer, text) is 'A runner ends in good order.';

create or replace function holdfast.runner_duty(p_id uuid, p_epoch bigint, p_duty text default null)
  returns table (duty text, count bigint, duration interval, error text) language plpgsql as $$
-- Does the duty that is most overdue (or the one named, due or not) in one transaction that holds the gate. No row: nothing is due.
#variable_conflict use_column
declare
  v_duty holdfast.duty;
  v_began timestamptz;
  v_ended timestamptz;
  v_count bigint := 0;
  v_error text;
begin
  perform holdfast.runner_hold(p_id, p_epoch);
  v_began := clock_timestamp();
  if p_duty is null then
    select * into v_duty from holdfast.duty d where d.enabled and d.next_at <= v_began order by d.next_at, d.name limit 1 for update;
  else
    select * into v_duty from holdfast.duty d where d.name = p_duty for update;
    if not found then
      raise exception 'there is no duty "%"', p_duty using errcode = 'HF004', hint = 'select name from holdfast.v_duty';
    end if;
  end if;
  if v_duty.name is null then return; end if;
  begin
    execute format('select holdfast.%I($1)', v_duty.function) into v_count using v_duty;
  exception when others then
    -- One that fails must not keep the others from being done. What it had begun has just been undone.
    get stacked diagnostics v_error = message_text;
    v_count := 0;
  end;
  v_ended := clock_timestamp();
  update holdfast.duty d set last_run_at = v_began, last_duration = v_ended - v_began, last_count = v_count, runs = d.runs + 1,
      total_count = d.total_count + v_count, error = v_error,
      next_at = case when v_count >= d.batch then v_ended else v_ended + d.every end
    where d.name = v_duty.name;
  insert into holdfast.duty_run (duty, epoch, process_id, began_at, ended_at, count, error)
    values (v_duty.name, p_epoch, p_id, v_began, v_ended, v_count, v_error);
  return query select v_duty.name, v_count, v_ended - v_began, v_error;
end $$;
comment on function holdfast.runner_duty(uuid, bigint, text) is 'Does one duty; the gate is held until it is committed.';

create or replace function holdfast.local_processes(p_machine_id text, p_boot_id text, p_pid_namespace text)
  returns table (process_id uuid, label text, machine_id text, boot_id text, pid_namespace text, pid integer, start_ticks bigint, standby boolean, leads boolean)
  language sql stable as $$
  select p.id, p.label, p.machine_id, p.boot_id, p.pid_namespace, p.pid, p.start_ticks, p.standby, p.worker_type = 'worker_runner'
    from holdfast.process p
    where p.status = 'running' and p.machine_id = p_machine_id and p.boot_id = p_boot_id and p.pid_namespace = p_pid_namespace and p.pid_namespace <> ''
      and p.lease_until > clock_timestamp()
$$;
comment on function holdfast.local_processes(text, text, text) is 'Processes whose pids the caller can look up: same machine, boot and pid namespace.';

create or replace function holdfast.process_gone(p_id uuid, p_machine_id text, p_boot_id text, p_pid_namespace text, p_pid integer, p_start_ticks bigint, p_reason text)
  returns boolean language plpgsql as $$
-- Somebody on the same machine has looked and the process is dead. Its lease ends now instead of when it runs out; the next claim,
-- duty or candidate gives its work, or its gate, to others. What it may have left half done is still behind its fences and row locks.
begin
  update holdfast.process set lease_until = least(lease_until, clock_timestamp()), stats = stats || jsonb_build_object('gone', p_reason)
    where id = p_id and status = 'running' and machine_id = p_machine_id and boot_id = p_boot_id and pid_namespace = p_pid_namespace
      and pid_namespace <> '' and pid = p_pid and start_ticks = p_start_ticks;
  if not found then return false; end if;
  perform holdfast.ring();
  return true;
end $$;
comment on function holdfast.process_gone(uuid, text, text, text, integer, bigint, text) is 'A process of the caller''s own machine is dead: its lease ends now.';

-- What may be seen --------------------------------------------------------------------------------------------------------

create or replace view holdfast.v_runner as
  select p.id, p.label, m.hostname, p.pid, case when p.worker_type = 'worker_runner' then 'leads' when p.standby then 'stands by' else 'waits' end as state,
         p.epoch, p.lease_until - statement_timestamp() as lease_left, p.lease_until > statement_timestamp() as healthy, p.request, p.started_at, t.began_at as leads_since,
         p.version, p.stats
    from holdfast.process p
    join holdfast.machine m on m.id = p.machine_id
    left join holdfast.runner_term t on t.epoch = p.epoch and t.process_id = p.id
    where p.process_type = 'orchestrator' and p.status = 'running'
    order by p.worker_type = 'worker_runner' desc, p.started_at desc, p.id desc;
comment on view holdfast.v_runner is 'Runners that run: the leader first, then those who wait, the newest first.';
comment on column holdfast.v_runner.healthy is 'Its lease has not run out.';

create or replace view holdfast.v_duty as
  select d.name, d.about, d.every, d.keep, d.enabled, d.next_at, d.next_at - statement_timestamp() as due_in, d.last_run_at, d.last_duration, d.last_count,
         d.total_count, d.runs, d.error, d.batch
    from holdfast.duty d order by d.name;
comment on view holdfast.v_duty is 'What the runner has to do, when it last did, how long that took and what came of it.';

create or replace view holdfast.v_backlog as
  -- What there is to do, for whoever decides about starting workers. Bounded: counts no further than it needs to.
  select (select count(*) from (select from holdfast.crawl c where c.owner_id is null and c.retry_at <= statement_timestamp() and c.status in ('queued', 'started') limit 100) x) as crawls_due,
         (select coalesce(sum(n.due), 0) from (select q.crawl_id from holdfast.crawl_queue q where q.ready_at <= statement_timestamp() limit 50) w
            cross join lateral (select count(*) as due from
                                  ((select from holdfast.snapshot_queue s
                                      where s.crawl_id = w.crawl_id and s.owner_id is null and not s.lane and s.retry_at <= statement_timestamp() limit 200)
                                   union all
                                   (select from holdfast.crawl_lane l
                                      join holdfast.snapshot_queue s on s.crawl_id = l.crawl_id and s.host = l.host and s.owner_id is null and s.lane
                                      where l.crawl_id = w.crawl_id and l.next_at <= statement_timestamp() and s.retry_at <= statement_timestamp() limit 200)) y) n) as snapshots_due,
         (select count(*) from holdfast.snapshot_queue q where q.owner_id is not null) + (select count(*) from holdfast.crawl c where c.owner_id is not null) as held,
         -- A paused collection is as a paused crawl: nothing to wait for.
         (select to_jsonb(c) ->> 'paused_at' from holdfast.collection c) is null
         and exists (select from holdfast.crawl c where c.status in ('queued', 'started')
                   and (c.owner_id is not null or c.seeds_left > 0 or c.retry_at < holdfast.retry_at_max()
                        or exists (select from holdfast.snapshot_queue q where q.crawl_id = c.id and q.status <> 'paused'))) as unfinished,
         (select count(*) from holdfast.process p where p.process_type = 'worker' and p.status = 'running' and p.lease_until > statement_timestamp() and not p.draining) as workers;
comment on view holdfast.v_backlog is 'What is due, what is held, and whether anything is left to do that is not paused (now or later).';
