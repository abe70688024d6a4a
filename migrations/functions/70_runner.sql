-- The runner: one elected process that runs the maintenance tasks. The unique index process_single_runner
-- allows one running process with worker_type worker_runner; candidates join as runner_waiting.
-- The newest candidate wins: it requests older ones to leave, waits until the leading runner has left or its
-- lease has expired, and then leads with the next epoch.
--
-- A task is one transaction that first locks the runner's row for key share. The end of a lead (leave, lapse,
-- takeover) locks that row for update: it waits for the task, or the task fails. A heartbeat takes a weaker
-- lock and disturbs neither.

create or replace function holdfast.runner_lead(p_id uuid, p_lease interval)
  returns bigint language plpgsql as $$
-- Makes a candidate the leading runner. Returns its epoch, or NULL if another candidate was faster.
declare
  v_epoch bigint;
begin
  begin
    update holdfast.process
      set worker_type = 'worker_runner', request = null, heartbeat_at = clock_timestamp(),
          lease_until = clock_timestamp() + p_lease
      where id = p_id;
  exception when unique_violation then
    return null;
  end;
  -- Called without another leading runner. Closes the terms of runners that did not close them themselves.
  update holdfast.runner_term t
    set ended_at = clock_timestamp(), ending = concat_ws(': ', p.exit_reason, p.stats ->> 'gone'),
        valid_until = greatest(t.began_at, least(t.valid_until, p.ended_at))
    from holdfast.process p
    where t.ended_at is null and p.id = t.process_id;
  select coalesce(max(t.epoch), 0) + 1 into v_epoch from holdfast.runner_term t;
  update holdfast.process set epoch = v_epoch where id = p_id;
  insert into holdfast.runner_term (epoch, process_id, label, valid_until)
    select v_epoch, p.id, p.label, greatest(p.lease_until, clock_timestamp())
      from holdfast.process p
      where p.id = p_id;
  insert into holdfast.event (lifecycle, object_id, from_state, event, to_state, process_id, detail)
    values ('process', p_id, 'running', 'lead', 'running', p_id, 'leads with epoch ' || v_epoch);
  return v_epoch;
end $$;

create or replace function holdfast.runner_clear(p_id uuid, p_standby boolean, p_grace interval)
  returns uuid[] language plpgsql as $$
-- Requests older runners to leave and lapses a leading runner whose lease expired, unless one of its
-- maintenance tasks is still running. A leading runner that is requested to leave has p_grace left of its
-- lease. Returns the leading runner that still leads.
begin
  if not p_standby then
    update holdfast.process
      set request = 'leave',
          lease_until = case when worker_type = 'worker_runner'
                          then least(lease_until, clock_timestamp() + p_grace) else lease_until end
      where id in (select p.id
                     from holdfast.process p
                     where p.process_type = 'runner' and p.status = 'running' and p.id <> p_id
                       and p.request is null and (not p.standby or p.worker_type = 'worker_runner')
                     order by p.id for no key update skip locked);
    if found then perform pg_notify('holdfast', 'runner'); end if;
  end if;
  update holdfast.process
    set status = 'exited', ended_at = clock_timestamp(), exit_reason = 'lease lapsed',
        lease_until = null
    where id in (select p.id
                   from holdfast.process p
                   where p.worker_type = 'worker_runner' and p.status = 'running'
                     and p.lease_until <= clock_timestamp()
                   for update skip locked);
  return array(select p.id
                 from holdfast.process p
                 where p.worker_type = 'worker_runner' and p.status = 'running');
end $$;

create or replace function holdfast.runner_enter(p_id uuid, p_lease interval, p_grace interval)
  returns table (answer text, epoch bigint, process_id uuid, label text, machine_id text,
                 boot_id text, pid_namespace text, pid integer, start_ticks bigint,
                 standby boolean, leads boolean)
  language plpgsql as $$
-- One attempt to become the leading runner. Answers:
--   lead    the caller leads: epoch
--   yield   a newer runner wants to lead: leave (the row names it)
--   wait    a runner is in the way (the row names it)
-- p_grace: how long a leading runner may still lead once it is asked to leave.
-- Never blocks on a task, and on another candidate only for the length of one such call.
#variable_conflict use_column
declare
  v_me holdfast.process;
  v_answer text := 'wait';
  v_others uuid[] := '{}';
  v_epoch bigint;
begin
  perform holdfast.mine(p_id);
  perform holdfast.lease_check(p_lease);
  select * into v_me from holdfast.process where id = p_id and status = 'running' for no key update;
  if not found then raise exception 'runner % has lapsed', p_id using errcode = 'HF002'; end if;
  if v_me.worker_type = 'worker_runner' then
    v_epoch := v_me.epoch;
  else
    -- The newest wins. A standby waits for all others.
    v_others := array(
      select p.id
        from holdfast.process p
        where p.process_type = 'runner' and p.status = 'running' and p.id <> p_id
          and p.lease_until > clock_timestamp() and not p.standby
          and (v_me.standby or (p.started_at, p.id) > (v_me.started_at, v_me.id))
        order by p.worker_type = 'worker_runner' desc, p.started_at desc, p.id desc limit 1);
    if v_others <> '{}' and not v_me.standby then v_answer := 'yield'; end if;
    if v_others = '{}' then v_others := holdfast.runner_clear(p_id, v_me.standby, p_grace); end if;
    if v_others = '{}' then v_epoch := holdfast.runner_lead(p_id, p_lease); end if;
  end if;
  return query
    select case when v_epoch is null then v_answer else 'lead' end, v_epoch, p.id, p.label,
           holdfast.machine_said(p.machine_id),
           p.boot_id, p.pid_namespace, p.pid, p.start_ticks, p.standby, p.worker_type = 'worker_runner'
      from (values (1)) one
      left join holdfast.process p on p.id = any (v_others);
end $$;
comment on function holdfast.runner_enter is 'Makes one attempt to become the leading runner.';

create or replace function holdfast.runner_heartbeat(p_id uuid, p_lease interval, p_stats jsonb)
  returns table (leads boolean, epoch bigint, request text, rival text, log_level text) language plpgsql as $$
-- A lead whose lease has lapsed is over, even if no other runner has taken it yet. A leading runner that is
-- asked to leave does not renew its lease. rival: the label of the runner that wants to lead. log_level: see
-- log_level_of.
#variable_conflict use_column
declare
  v_now constant timestamptz := clock_timestamp();
  v_row holdfast.process;
begin
  perform holdfast.mine(p_id);
  perform holdfast.lease_check(p_lease);
  update holdfast.process
    set heartbeat_at = v_now, stats = p_stats,
        lease_until = case when worker_type = 'worker_runner' and request = 'leave'
                        then lease_until else v_now + p_lease end
    where id = p_id and status = 'running' and (worker_type <> 'worker_runner' or lease_until > v_now)
    returning * into v_row;
  if not found then raise exception 'runner % has lapsed', p_id using errcode = 'HF002'; end if;
  update holdfast.runner_term t
    set valid_until = v_row.lease_until
    where t.epoch = v_row.epoch and t.process_id = p_id and t.ended_at is null;
  return query
    select v_row.worker_type = 'worker_runner', v_row.epoch, v_row.request,
           case when v_row.request = 'leave' then
             (select p.label
                from holdfast.process p
                where p.process_type = 'runner' and p.status = 'running' and p.id <> p_id and not p.standby
                order by p.started_at desc, p.id desc limit 1) end,
           holdfast.log_level_of(p_id);
end $$;
comment on function holdfast.runner_heartbeat is 'Renews a runner''s lease.';

create or replace function holdfast.runner_leave(p_id uuid, p_exit_code integer, p_reason text)
  returns void language plpgsql as $$
-- Wakes the candidates. May be repeated.
declare
  v_row holdfast.process;
begin
  perform holdfast.mine(p_id);
  select * into v_row from holdfast.process where id = p_id and status = 'running' for update;
  if not found then return; end if;
  update holdfast.runner_term
    set valid_until = least(valid_until, greatest(began_at, clock_timestamp())),
        ended_at = clock_timestamp(), ending = p_reason
    where epoch = v_row.epoch and process_id = p_id and ended_at is null;
  perform holdfast.process_leave(p_id, p_exit_code, p_reason);
  perform pg_notify('holdfast', 'runner');
end $$;
comment on function holdfast.runner_leave is 'Records the orderly exit of a runner.';

create or replace function holdfast.runner_maintenance(p_id uuid, p_epoch bigint, p_task text default null)
  returns table (task text, count bigint, duration interval, error text) language plpgsql as $$
-- Runs the most overdue task (or the one named, due or not) in this transaction. No row: nothing is due.
#variable_conflict use_column
declare
  v_maintenance holdfast.maintenance_task;
  v_began timestamptz;
  v_ended timestamptz;
  v_count bigint := 0;
  v_error text;
begin
  perform holdfast.mine(p_id);
  perform from holdfast.process
    where id = p_id and status = 'running' and worker_type = 'worker_runner' and epoch = p_epoch
      and lease_until > clock_timestamp() for key share;
  if not found then
    raise exception 'runner % no longer leads with epoch %', p_id, p_epoch using errcode = 'HF002';
  end if;
  v_began := clock_timestamp();
  select * into v_maintenance
    from holdfast.maintenance_task d
    -- Further ahead than "every": an earlier clock has set it (see 74_clock.sql).
    where case
            when p_task is null then d.enabled and (d.next_at <= v_began or d.next_at > v_began + d.every)
            else d.name = p_task
          end
    order by d.next_at, d.name limit 1 for update;
  if not found and p_task is not null then
    raise exception 'there is no task "%"', p_task
      using errcode = 'HF004', hint = 'select name from holdfast.v_maintenance';
  elsif not found then
    return;
  end if;
  begin
    execute format('select holdfast.%I($1)', v_maintenance.function) into v_count using v_maintenance;
  exception when others then
    -- A failing task must not block the others. Its own changes are rolled back.
    get stacked diagnostics v_error = message_text;
    v_count := 0;
  end;
  v_ended := clock_timestamp();
  update holdfast.maintenance_task d
    set last_run_at = v_began, last_duration = v_ended - v_began, last_count = v_count,
        runs = d.runs + 1, total_count = d.total_count + v_count, error = v_error,
        next_at = case when v_count >= d.batch then v_ended else v_ended + d.every end
    where d.name = v_maintenance.name;
  insert into holdfast.maintenance_run (task, epoch, process_id, began_at, ended_at, count, error)
    values (v_maintenance.name, p_epoch, p_id, v_began, v_ended, v_count, v_error);
  return query select v_maintenance.name, v_count, v_ended - v_began, v_error;
end $$;
comment on function holdfast.runner_maintenance is 'Runs one task while the caller leads.';

create or replace function holdfast.local_processes(p_machine_id text, p_boot_id text, p_pid_namespace text)
  returns table (process_id uuid, label text, machine_id text, boot_id text, pid_namespace text,
                 pid integer, start_ticks bigint, standby boolean, leads boolean)
  language sql stable as $$
  select p.id, p.label, p_machine_id, p.boot_id, p.pid_namespace, p.pid, p.start_ticks, p.standby,
         p.worker_type = 'worker_runner'
    from holdfast.process p
    where p.status = 'running' and p.lease_until > clock_timestamp()
      and p.machine_id = holdfast.machine_of(p_machine_id)
      and p.boot_id = p_boot_id and p.pid_namespace = p_pid_namespace and p.pid_namespace <> ''
$$;
comment on function holdfast.local_processes is 'Returns the processes of the caller''s login in its pid namespace.';

create or replace view holdfast.v_runner as
  select p.id, p.label, m.hostname, p.pid,
         case when p.worker_type = 'worker_runner' then 'leads'
              when p.standby then 'stands by'
              else 'waits' end as state,
         p.epoch, p.lease_until - statement_timestamp() as lease_left,
         p.lease_until > statement_timestamp() as healthy, p.request, p.started_at,
         t.began_at as leads_since, p.version, p.stats
    from holdfast.process p
    join holdfast.machine m on m.id = p.machine_id
    left join holdfast.runner_term t on t.epoch = p.epoch and t.process_id = p.id
    where p.process_type = 'runner' and p.status = 'running'
    order by p.worker_type = 'worker_runner' desc, p.started_at desc, p.id desc;
comment on view holdfast.v_runner is
  'Running runners: the leading runner first, then the candidates, newest first.';
comment on column holdfast.v_runner.id is 'The process.';
comment on column holdfast.v_runner.state is 'leads, stands by or waits.';
comment on column holdfast.v_runner.epoch is 'Number of the term.';
comment on column holdfast.v_runner.lease_left is 'Time until the lease expires without another heartbeat.';
comment on column holdfast.v_runner.leads_since is 'Start of the term.';
comment on column holdfast.v_runner.healthy is 'True if the lease has not expired.';

create or replace view holdfast.v_term as
  select t.epoch, t.label, t.began_at, t.valid_until, t.ended_at, t.ending, t.process_id
    from holdfast.runner_term t
    order by t.epoch desc;
comment on view holdfast.v_term is 'Terms of the runner''s gate, newest first: leader, time, and reason for the end.';
comment on column holdfast.v_term.epoch is 'Number of the term.';
comment on column holdfast.v_term.label is 'The runner.';
comment on column holdfast.v_term.ending is
  'Reason for the end: "stepped down for ...", the reason for a stop, "lease lapsed", ...';
comment on column holdfast.v_term.process_id is 'Process of the term; its row may be trimmed.';

create or replace view holdfast.v_maintenance as
  select d.name, d.about, d.every, d.keep, d.enabled, d.next_at, d.next_at - statement_timestamp() as due_in,
         d.last_run_at, d.last_duration, d.last_count, d.total_count, d.runs, d.error, d.batch
    from holdfast.maintenance_task d
    order by d.name;
comment on view holdfast.v_maintenance is 'Maintenance tasks of the runner: last run, duration and number of changes.';
comment on column holdfast.v_maintenance.due_in is 'Time until the task is due; below zero: overdue.';

create or replace function holdfast.crawl_unfinished(p_crawl holdfast.crawl)
  returns boolean language sql stable as $$
  select p_crawl.status in ('queued', 'started')
     and (p_crawl.owner_id is not null or p_crawl.seeds_left > 0
          or p_crawl.retry_at < holdfast.retry_at_max()
          or exists (select
                       from holdfast.snapshot_queue q
                       where q.crawl_id = p_crawl.id and q.status <> 'paused'
                         and (q.owner_id is not null
                              or q.host <> all (array(select h.name from holdfast.host h where h.paused)))))
$$;

comment on function holdfast.crawl_unfinished is
  'Returns true if a crawl has pages left, due now or later, that are not paused and not of a paused host.';

create or replace function holdfast.work_left(p_crawls uuid[], p_snapshots uuid[])
  returns boolean language sql stable as $$
  -- A snapshot whose crawl is queued waits for that.
  select exists (select from holdfast.collection a where a.paused_at is null)
     and (exists (select
                    from holdfast.crawl c
                    where c.id = any (p_crawls) and holdfast.crawl_unfinished(c))
          or exists (select
                       from holdfast.snapshot_queue q
                       join holdfast.crawl c on c.id = q.crawl_id and c.status in ('queued', 'started')
                       where q.snapshot_id = any (p_snapshots) and q.status <> 'paused'
                         and (q.owner_id is not null
                              or q.host <> all (array(select h.name from holdfast.host h where h.paused)))))
$$;
comment on function holdfast.work_left is
  'Returns true if any of these crawls and snapshots is open, and neither paused nor of a paused host.';

create or replace function holdfast.workers_beside(p_runner uuid)
  returns table (kind text, running bigint, able bigint) language sql stable as $$
  -- A runner that rejoins has another id, but is the same process of its system.
  select w.worker_type, count(*),
         count(*) filter (where not w.draining and w.paused_at is null
                            and nullif(w.stats ->> 'not_claiming', '') is null
                            and not coalesce((w.capabilities ->> 'only')::boolean, false))
    from holdfast.process me
    join holdfast.process w
      on holdfast.machine_said(w.machine_id) = holdfast.machine_said(me.machine_id)
         and w.status = 'running' and w.process_type = 'worker'
         and w.lease_until > statement_timestamp()
    left join holdfast.process p on p.id = w.parent_id
    where me.id = p_runner
      and (p.machine_id, p.boot_id, p.pid, p.start_ticks)
          is distinct from (me.machine_id, me.boot_id, me.pid, me.start_ticks)
      -- A worker that claims nothing, for lack of disk space for example, and holds nothing takes no slots.
      and (nullif(w.stats ->> 'not_claiming', '') is null
           or exists (select from holdfast.snapshot_queue q where q.owner_id = w.id))
    group by w.worker_type
$$;
comment on function holdfast.workers_beside is
  'Returns the workers of a runner''s machine that it has not started, by kind; able: those that claim any due page.';

create or replace function holdfast.newer_run(p_runner uuid)
  returns text language sql stable as $$
  select r.label
    from holdfast.process me
    join holdfast.process r
      on holdfast.machine_said(r.machine_id) = holdfast.machine_said(me.machine_id)
         and r.boot_id = me.boot_id and r.status = 'running'
         and r.process_type = 'runner' and r.lease_until > statement_timestamp()
         and (r.capabilities ->> 'spawns')::boolean
         and (r.start_ticks, r.pid) > (me.start_ticks, me.pid)
    where me.id = p_runner
    order by r.start_ticks desc, r.pid desc limit 1
$$;
comment on function holdfast.newer_run is
  'Returns the label of the newest `holdfast run` of this machine, which alone starts workers there; NULL: the '
  'caller is the newest.';

create or replace view holdfast.v_backlog as
  -- Every count is bounded, so that this stays cheap in a large collection.
  select (select count(*)
            from (select
                    from holdfast.crawl c
                    where c.owner_id is null and c.retry_at <= statement_timestamp()
                      and c.status in ('queued', 'started')
                    limit 100) x) as crawls_due,
         (select coalesce(sum(n.due), 0)
            from (select q.crawl_id
                    from holdfast.crawl_queue q
                    where q.ready_at <= statement_timestamp()
                    limit 50) w
            cross join lateral (
              select count(*) as due
                from (select
                        from holdfast.crawl_lane l
                        join holdfast.snapshot_queue s
                          on s.crawl_id = l.crawl_id and s.host = l.host and s.owner_id is null
                        where l.crawl_id = w.crawl_id and l.next_at <= statement_timestamp()
                          and s.retry_at <= statement_timestamp()
                        limit 200) y) n)
           + count(*) filter (where i.process_id is null) as snapshots_due,
         (select count(*) from holdfast.snapshot_queue q where q.owner_id is not null)
           + (select count(*) from holdfast.crawl c where c.owner_id is not null)
           + count(*) filter (where i.process_id is not null) as held,
         count(*) > 0
           or exists (select from holdfast.collection a where a.paused_at is null)
              and exists (
                select
                  from holdfast.crawl c
                  where c.status in ('queued', 'started') and holdfast.crawl_unfinished(c)) as unfinished
    from holdfast.persona_sign_in i
    where i.problem is null and i.deadline > statement_timestamp();
comment on view holdfast.v_backlog is 'Counts of due and held pages, and whether any unpaused page is left.';
comment on column holdfast.v_backlog.crawls_due is 'Crawls whose seeds are to be expanded, at most 100.';
comment on column holdfast.v_backlog.snapshots_due is
  'Snapshots that are due, at most 200 of each of 50 crawls, and sign-ins that wait for a browser.';
comment on column holdfast.v_backlog.held is
  'Claimed snapshots, crawls being expanded, and sign-ins that have a browser.';
comment on column holdfast.v_backlog.unfinished is
  'True if any page is left, now or later, that is not paused, nor its host; or if a user signs in.';
