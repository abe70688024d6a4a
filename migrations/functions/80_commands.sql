-- Commands: pause, resume, cancel, priority. A command is one transaction. After its commit, no worker starts
-- work that it forbids. Running pages are taken from their workers. A worker learns of that from the
-- notification "control" or from its next heartbeat, and kills the hooks. Every command may be repeated: the
-- second time it changes nothing and returns 0.

create or replace function holdfast.who(p_said text)
  returns text language sql stable as $$
  -- Returns the name under which a command is given. A login gives it in its own name. A login with
  -- the role holdfast_serve, as holdfast serve has it, names its user, and so may the schema's owner.
  select case when pg_has_role(session_user, to_regrole('holdfast_owner')::oid, 'member')
                   or pg_has_role(session_user, to_regrole('holdfast_serve')::oid, 'member')
                   or pg_has_role(session_user, n.nspowner, 'member') then p_said
              else session_user end
    from pg_catalog.pg_namespace n
    where n.nspname = 'holdfast'
$$;

create or replace function holdfast.control_done(p_action text, p_kind text,
    p_target text, p_crawl uuid, p_who text, p_detail text, p_held bigint)
  returns bigint language sql as $$
  -- Records a command and makes every worker send a heartbeat at once; after a resume, also those that
  -- wait. Returns 1, as a command that has changed something does.
  insert into holdfast.control (action, kind, target, crawl_id, by_whom, detail, held)
    values (p_action, p_kind, p_target, p_crawl, coalesce(p_who, ''), nullif(p_detail, ''), p_held);
  select pg_notify('holdfast', 'control');
  select holdfast.notify_workers() where p_action = 'resume';
  select 1::bigint;
$$;

create or replace function holdfast.control_reason(p_action text, p_who text, p_why text)
  returns text language sql immutable as $$
  select p_action || coalesce(' by ' || nullif(p_who, ''), '') || coalesce(': ' || nullif(p_why, ''), '')
$$;

create or replace function holdfast.command_text(p_reason text)
  returns text language sql immutable as $$
  -- Takes from a reason of control_reason() the user who gave the command, and why.
  select coalesce(substring(p_reason from '((?: by |: ).*)$'), '')
$$;

create or replace function holdfast.crawl_lock(p_crawl uuid)
  returns holdfast.crawl language plpgsql as $$
declare
  v_crawl holdfast.crawl;
begin
  select * into v_crawl from holdfast.crawl where id = p_crawl for no key update;
  if not found then raise exception 'there is no crawl %', p_crawl using errcode = 'HF004'; end if;
  return v_crawl;
end $$;

create or replace function holdfast.crawl_held(p_crawl uuid)
  returns uuid[] language sql stable as $$
  select array(select q.snapshot_id
                 from holdfast.process p
                 join holdfast.snapshot_queue q on q.owner_id = p.id
                 where p.status = 'running' and q.crawl_id = p_crawl)
$$;

create or replace function holdfast.held_release(p_snapshots uuid[], p_reason text)
  returns bigint language plpgsql as $$
-- Takes snapshots from their workers and puts them back into the queue. Returns how many were in work.
declare
  v_ids constant uuid[] := holdfast.lock_held(p_snapshots);
begin
  perform holdfast.release_pages(holdfast.pages_of(v_ids, 'interrupted', null, p_reason));
  return cardinality(v_ids);
end $$;

create or replace function holdfast.control_apply(p_worker uuid)
  returns bigint language plpgsql as $$
-- Takes from a worker pages that it holds against a command: its claim was under way when the command came,
-- or a row was changed by hand. Waits for no lock. It leaves locked rows to the next heartbeat, and requests
-- that heartbeat.
declare
  v_ids uuid[] := array(select q.snapshot_id from holdfast.snapshot_queue q where q.owner_id = p_worker);
  v_row record;
  v_wrong uuid[];
  v_crawls uuid[];
begin
  perform holdfast.mine(p_worker);
  if v_ids = '{}' then return 0; end if;
  select array_agg(q.snapshot_id), array_agg(distinct q.crawl_id) into v_wrong, v_crawls
    from holdfast.snapshot_queue q
    join holdfast.crawl c on c.id = q.crawl_id
    join holdfast.process p on p.id = q.owner_id
    cross join holdfast.collection a
    left join holdfast.host h on h.name = q.host
    where q.snapshot_id = any (v_ids) and q.owner_id = p_worker
      and (c.status = 'paused' or c.stopping_at is not null or a.paused_at is not null
           or p.paused_at is not null or h.paused);
  if v_wrong is null then return 0; end if;
  v_crawls := array(
    select c.id
      from holdfast.crawl c
      where c.id = any (v_crawls)
      order by c.id for no key update skip locked);
  v_ids := array(
    select q.snapshot_id
      from holdfast.snapshot_queue q
      where q.snapshot_id = any (v_wrong) and q.crawl_id = any (v_crawls) and q.owner_id = p_worker
      order by q.crawl_id, q.snapshot_id for update skip locked);
  if cardinality(v_ids) < cardinality(v_wrong) then perform pg_notify('holdfast', 'control'); end if;
  perform holdfast.lock_for(v_crawls, v_ids);
  for v_row in
    select case when c.stopping_at is not null then 'cancelled' end as outcome,
           array_agg(q.snapshot_id) as ids,
           case when c.status = 'paused' or c.stopping_at is not null
                  then coalesce(c.reason, 'its crawl is paused')
                when a.paused_at is not null then a.paused_by
                when p.paused_at is not null then p.paused_by
                else coalesce(h.reason, 'its host is paused') end as reason
      from holdfast.snapshot_queue q
      join holdfast.crawl c on c.id = q.crawl_id
      join holdfast.process p on p.id = q.owner_id
      cross join holdfast.collection a
      left join holdfast.host h on h.name = q.host and h.paused
      where q.snapshot_id = any (v_ids)
      group by 1, 3
  loop
    perform holdfast.end_pages(holdfast.pages_of(v_row.ids, 'interrupted', v_row.outcome, v_row.reason));
  end loop;
  return cardinality(v_ids);
end $$;

-- Crawls -------------------------------------------------------------------------------------------------

create or replace function holdfast.crawl_pause(p_crawl uuid, p_by text, p_why text)
  returns bigint language plpgsql as $$
-- The crawl is parked and leaves crawl_queue, so that no claim sees it; its queued snapshots stay as they
-- are, however many.
declare
  v_crawl constant holdfast.crawl := holdfast.crawl_lock(p_crawl);
  v_reason constant text := holdfast.control_reason('paused', holdfast.who(p_by), p_why);
  v_held uuid[];
begin
  if v_crawl.status in ('paused', 'sealed') or v_crawl.stopping_at is not null then return 0; end if;
  v_held := holdfast.lock_held(holdfast.crawl_held(p_crawl));
  update holdfast.crawl
    set status = 'paused', event = 'pause', retry_at = holdfast.retry_at_max(), owner_id = null,
        paused_at = clock_timestamp(), changed_by = holdfast.who(p_by), reason = v_reason
    where id = p_crawl;
  perform holdfast.release_pages(holdfast.pages_of(v_held, 'interrupted', null, v_reason));
  -- The crawl gives the reason; its pages would keep it after a resume.
  update holdfast.snapshot_queue
    set reason = null
    where snapshot_id = any (v_held) and crawl_id = p_crawl and owner_id is null;
  perform holdfast.control_done('pause', 'crawl', p_crawl::text, p_crawl, holdfast.who(p_by), p_why,
    cardinality(v_held));
  perform pg_notify('holdfast', 'crawl_paused ' || p_crawl);
  return 1;
end $$;
comment on function holdfast.crawl_pause is
  'Pauses a crawl and releases its pages in work. Returns 0 if it was paused or ended already.';

create or replace function holdfast.resume_reason(p_at timestamptz, p_who text, p_why text)
  returns text language sql stable as $$
  -- Why what was resumed for a later time waits; NULL: it does not.
  select holdfast.control_reason('resumed', p_who, p_why) where p_at > clock_timestamp()
$$;

create or replace function holdfast.crawl_resume(
    p_crawl uuid, p_by text, p_why text, p_at timestamptz default null)
  returns bigint language plpgsql as $$
declare
  v_at constant timestamptz := greatest(p_at, clock_timestamp());
begin
  perform holdfast.resume_check(p_at);
  perform holdfast.crawl_lock(p_crawl);
  update holdfast.crawl
    set status = 'queued', event = 'resume', retry_at = v_at, resume_at = p_at, changed_by = holdfast.who(p_by),
        reason = holdfast.resume_reason(p_at, holdfast.who(p_by), p_why),
        deadline_at = deadline_at + coalesce(v_at - paused_at, '0'), paused_at = null
    where id = p_crawl and status = 'paused';
  if not found then return 0; end if;
  return holdfast.control_done('resume', 'crawl', p_crawl::text, p_crawl, holdfast.who(p_by),
    concat_ws(': ', 'from ' || holdfast.people_time(p_at) || ' on', nullif(p_why, '')), 0);
end $$;
comment on function holdfast.crawl_resume is
  'Resumes a paused crawl, not before p_at; its time limit stood still meanwhile. Returns 0 if it was not paused.';

create or replace function holdfast.resume_check(p_at timestamptz)
  returns void language plpgsql stable as $$
-- retry_at_max() stands for parked.
begin
  if p_at >= holdfast.retry_at_max() then
    raise exception 'the time of resume must be before 9999-01-01' using errcode = 'HF004',
      hint = 'for example 2h, or 2026-11-22 14:00';
  end if;
end $$;

create or replace function holdfast.crawl_priority(p_crawl uuid, p_priority integer, p_by text)
  returns bigint language plpgsql as $$
-- Takes effect with the next claim of any worker.
begin
  if p_priority is null then
    raise exception 'the priority must be a number' using errcode = 'HF004',
      hint = 'Above 0: before other crawls; below 0: after them.';
  end if;
  perform holdfast.crawl_lock(p_crawl);
  update holdfast.crawl
    set priority = p_priority
    where id = p_crawl and priority <> p_priority and status <> 'sealed';
  if not found then return 0; end if;
  return holdfast.control_done('priority', 'crawl', p_crawl::text, p_crawl, holdfast.who(p_by),
    'now ' || p_priority, 0);
end $$;
comment on function holdfast.crawl_priority is
  'Above 0: before other crawls; below 0: after them. Returns 0 if that changes nothing.';

create or replace function holdfast.crawl_stop(p_crawl uuid, p_stop_reason text,
    p_who text, p_why text, p_batch integer, p_take_held boolean default true)
  returns bigint language plpgsql as $$
-- From its commit on, nothing of the crawl begins. Seals as cancelled what was in work, and the first batch
-- of what waited. Returns what is left for crawl_stop_step. Without p_take_held, workers lose what is in work
-- with their next heartbeat: for a caller that holds locks which come after those of snapshots.
declare
  v_crawl constant holdfast.crawl := holdfast.crawl_lock(p_crawl);
  v_reason constant text := holdfast.control_reason(
    case p_stop_reason when 'cancelled' then 'cancelled' else 'its crawl was stopped' end, p_who, p_why);
  v_held uuid[];
  v_left bigint;
begin
  if v_crawl.status = 'sealed' then return 0; end if;
  if v_crawl.stopping_at is null then
    v_held := case when p_take_held then holdfast.lock_held(holdfast.crawl_held(p_crawl)) else '{}' end;
    update holdfast.crawl
      set stopping_at = clock_timestamp(), stop_reason = p_stop_reason, reason = v_reason, changed_by = p_who,
          owner_id = null, retry_at = case status when 'paused' then retry_at else clock_timestamp() end,
          judged_to = null
      where id = p_crawl;
    perform holdfast.seal_pages(holdfast.pages_of(v_held, null, 'cancelled', v_reason));
    perform holdfast.control_done('cancel', 'crawl', p_crawl::text, p_crawl, p_who,
      case p_stop_reason when 'cancelled' then p_why else p_stop_reason || ': ' || p_why end,
      cardinality(v_held));
  end if;
  v_left := holdfast.crawl_stop_step(p_crawl, p_batch);
  -- Workers continue with the rest, so the crawl must be due.
  update holdfast.crawl
    set status = 'queued', event = 'resume', retry_at = clock_timestamp(), paused_at = null
    where id = p_crawl and status = 'paused';
  return v_left;
end $$;
comment on function holdfast.crawl_stop is 'Begins to stop a crawl; returns what is left to be closed.';

create or replace function holdfast.crawl_stop_step(p_crawl uuid, p_batch integer)
  returns bigint language plpgsql as $$
-- Seals up to p_batch waiting snapshots of a crawl that is being stopped; then the crawl, if that was all.
-- Returns what is left. Called by the command that stops the crawl, and by workers (crawl_expand) for the
-- rest.
declare
  v_crawl holdfast.crawl;
  v_pages holdfast.finished_page[];
  v_seeds bigint;
begin
  select * into v_crawl from holdfast.crawl where id = p_crawl for no key update;
  if not found or v_crawl.status = 'sealed' or v_crawl.stopping_at is null then return 0; end if;
  delete from holdfast.crawl_seed
    where crawl_id = p_crawl
      and position in (select position
                         from holdfast.crawl_seed
                         where crawl_id = p_crawl
                         order by position limit p_batch);
  get diagnostics v_seeds = row_count;
  update holdfast.crawl set seeds_left = seeds_left - v_seeds where id = p_crawl and v_seeds > 0;
  v_pages := array(
    select jsonb_populate_record(null::holdfast.finished_page, jsonb_build_object(
             'snapshot', q.snapshot_id, 'crawl', q.crawl_id, 'fence', q.fence, 'outcome', 'cancelled',
             'reason', coalesce(case when q.excluded then q.reason end, v_crawl.reason,
                                'its crawl was stopped')))
      from holdfast.snapshot_queue q
      where q.crawl_id = p_crawl and q.owner_id is null
      limit p_batch for update skip locked);
  perform holdfast.seal_pages(v_pages);
  perform holdfast.crawl_settle(p_crawl);
  return (select snapshots_open + seeds_left from holdfast.crawl where id = p_crawl);
end $$;
comment on function holdfast.crawl_stop_step is
  'Closes the next batch of a crawl that is being stopped; returns what is left.';

create or replace function holdfast.crawl_cancel(p_crawl uuid, p_by text, p_why text)
  returns bigint language sql as $$
  select holdfast.crawl_stop(p_crawl, 'cancelled', holdfast.who(p_by), p_why, 1000)
$$;
comment on function holdfast.crawl_cancel is
  'Cancels a crawl; returns how many snapshots and seeds are left, which the workers close.';

-- Snapshots, hosts, workers, everything ------------------------------------------------------------------

create or replace function holdfast.snapshot_command(
    p_snapshot uuid, p_action text, p_by text, p_why text, p_at timestamptz default null)
  returns bigint language plpgsql as $$
-- A page that its crawl's scope excludes is not resumed: that takes a wider scope. p_at: of resume, not
-- before this.
declare
  v_crawl constant uuid := (select crawl_id from holdfast.snapshot where id = p_snapshot);
  v_row holdfast.snapshot_queue;
  v_pages holdfast.finished_page[];
begin
  perform holdfast.resume_check(p_at);
  if p_action is null or p_action not in ('pause', 'resume', 'cancel') then
    raise exception 'unknown action "%"', p_action using errcode = 'HF004',
      hint = 'pause, resume or cancel';
  end if;
  if v_crawl is null then
    raise exception 'there is no snapshot %', p_snapshot using errcode = 'HF004';
  end if;
  perform holdfast.lock_for(array[v_crawl], array[p_snapshot]);
  select * into v_row from holdfast.snapshot_queue where snapshot_id = p_snapshot and crawl_id = v_crawl;
  if not found or (p_action = 'pause' and v_row.status = 'paused')
     or (p_action = 'resume' and (v_row.status <> 'paused' or v_row.excluded)) then
    return 0;
  end if;
  if p_action = 'cancel' then
    perform holdfast.seal_pages(holdfast.pages_of(array[p_snapshot], null, 'cancelled',
      holdfast.control_reason('cancelled', holdfast.who(p_by), p_why)));
  elsif p_action = 'pause' then
    perform holdfast.release_pages(
      holdfast.pages_of(array[p_snapshot], 'interrupted', null,
                        holdfast.control_reason('paused', holdfast.who(p_by), p_why)), 'paused');
  else
    v_pages := holdfast.pages_of(array[p_snapshot], 'interrupted', null,
                                 holdfast.resume_reason(p_at, holdfast.who(p_by), p_why));
    v_pages[1].delay_ms := ceil(extract(epoch from greatest(p_at - clock_timestamp(), '0')) * 1000);
    update holdfast.snapshot set resume_at = p_at where id = p_snapshot and crawl_id = v_crawl;
    perform holdfast.release_pages(v_pages);
  end if;
  return holdfast.control_done(p_action, 'snapshot', p_snapshot::text, v_crawl, holdfast.who(p_by),
    concat_ws(': ', 'from ' || holdfast.people_time(p_at) || ' on', nullif(p_why, '')),
    (v_row.owner_id is not null)::integer);
end $$;
comment on function holdfast.snapshot_command is
  'Pauses, resumes (not before p_at) or cancels (p_action) one snapshot; returns 0 if that changes nothing.';

create or replace function holdfast.host_pause(p_host text, p_by text, p_why text)
  returns bigint language plpgsql as $$
declare
  v_reason constant text := holdfast.control_reason('its host was paused', holdfast.who(p_by), p_why);
  v_ids uuid[];
begin
  perform holdfast.host_check(p_host);
  if exists (select from holdfast.host where name = p_host and paused) then return 0; end if;
  -- Crawls and snapshots are locked before the host, also before a new one; the rest (crawl_queue) after it.
  v_ids := holdfast.host_held(p_host);
  perform from holdfast.crawl c
    where c.id in (select q.crawl_id from holdfast.snapshot_queue q where q.snapshot_id = any (v_ids))
    order by c.id for no key update;
  perform from holdfast.snapshot_queue q
    where q.snapshot_id = any (v_ids)
    order by q.crawl_id, q.snapshot_id for update;
  perform holdfast.host_enter(p_host, holdfast.who(p_by));
  update holdfast.host
    set paused = true, reason = v_reason, updated_by = holdfast.who(p_by), updated_at = clock_timestamp()
    where name = p_host;
  return holdfast.control_done('pause', 'host', p_host, null, holdfast.who(p_by), p_why,
    holdfast.held_release(v_ids, v_reason));
end $$;
comment on function holdfast.host_pause is 'Pauses a host: none of its pages starts, and pages in work are released.';

create or replace function holdfast.host_resume(p_host text, p_by text, p_why text)
  returns bigint language plpgsql as $$
-- Ends a back-off too: the user who resumes a host decides.
begin
  update holdfast.host
    set paused = false, reason = null, backoff_until = null, backoff_level = 0,
        updated_by = holdfast.who(p_by),
        updated_at = clock_timestamp()
    where name = p_host and (paused or backoff_until > clock_timestamp());
  if not found then return 0; end if;
  perform holdfast.host_wake(p_host);
  return holdfast.control_done('resume', 'host', p_host, null, holdfast.who(p_by), p_why, 0);
end $$;
comment on function holdfast.host_resume is
  'Ends the pause of a host, and its back-off. Returns 0 if there was neither.';

create or replace function holdfast.host_cancel(p_host text, p_by text, p_why text)
  returns bigint language plpgsql as $$
declare
  v_ids constant uuid[] := array(
    select q.snapshot_id from holdfast.snapshot_queue q where q.host = p_host limit 500);
  v_crawls constant uuid[] := array(
    select distinct q.crawl_id from holdfast.snapshot_queue q where q.snapshot_id = any (v_ids));
  v_held bigint;
  v_pages holdfast.finished_page[];
begin
  if v_ids = '{}' then return 0; end if;
  perform holdfast.lock_for(v_crawls, v_ids);
  v_pages := holdfast.pages_of(v_ids, null, 'cancelled',
    holdfast.control_reason('its host was cancelled', holdfast.who(p_by), p_why));
  v_held := (select count(*)
               from holdfast.snapshot_queue q
               where q.snapshot_id = any (v_ids) and q.owner_id is not null);
  perform holdfast.seal_pages(v_pages);
  perform holdfast.control_done('cancel', 'host', p_host, null, holdfast.who(p_by), p_why, v_held);
  return cardinality(v_pages);
end $$;
comment on function holdfast.host_cancel is
  'Cancels the next 500 open snapshots of a host, in every crawl; returns how many. Call it until it returns 0.';

create or replace function holdfast.worker_pause(p_worker uuid, p_by text, p_why text)
  returns bigint language plpgsql as $$
declare
  v_reason constant text := holdfast.control_reason('its worker was paused', holdfast.who(p_by), p_why);
begin
  if not exists (select from holdfast.process where id = p_worker and process_type = 'worker') then
    raise exception 'there is no worker %', p_worker using errcode = 'HF004';
  end if;
  update holdfast.process
    set paused_at = clock_timestamp(), paused_by = v_reason
    where id = p_worker and status = 'running' and paused_at is null;
  if not found then return 0; end if;
  return holdfast.control_done('pause', 'worker', p_worker::text, null, holdfast.who(p_by), p_why,
    holdfast.held_release(
      array(select snapshot_id from holdfast.snapshot_queue where owner_id = p_worker), v_reason));
end $$;
comment on function holdfast.worker_pause is
  'Pauses a worker: it releases its work and claims nothing until it is resumed; the process continues.';

create or replace function holdfast.worker_resume(p_worker uuid, p_by text, p_why text)
  returns bigint language plpgsql as $$
begin
  update holdfast.process
    set paused_at = null, paused_by = null
    where id = p_worker and paused_at is not null;
  if not found then return 0; end if;
  return holdfast.control_done('resume', 'worker', p_worker::text, null, holdfast.who(p_by), p_why, 0);
end $$;
comment on function holdfast.worker_resume is 'Resumes a paused worker.';

create or replace function holdfast.worker_cancel(p_worker uuid, p_by text, p_why text)
  returns bigint language plpgsql as $$
-- If the worker does not respond, others take over its work when its lease expires. It claims nothing from
-- now on, also before it receives the request.
begin
  update holdfast.process
    set request = 'stop', draining = true
    where id = p_worker and status = 'running' and process_type = 'worker'
      and request is distinct from 'stop';
  if not found then return 0; end if;
  return holdfast.control_done('cancel', 'worker', p_worker::text, null, holdfast.who(p_by), p_why,
    (select count(*) from holdfast.snapshot_queue where owner_id = p_worker));
end $$;
comment on function holdfast.worker_cancel is 'Requests a worker to release its work and to exit.';

create or replace function holdfast.worker_drain(p_worker uuid, p_by text, p_why text)
  returns bigint language plpgsql as $$
-- The worker finishes its pages within its drain_timeout. Also for runners.
begin
  if not exists (select from holdfast.process
                   where id = p_worker and process_type in ('worker', 'runner')) then
    raise exception 'there is no worker or runner %', p_worker using errcode = 'HF004';
  end if;
  update holdfast.process
    set request = 'drain', draining = true
    where id = p_worker and status = 'running'
      and (not draining or request is null or request not in ('drain', 'stop'));
  if not found then return 0; end if;
  return holdfast.control_done('drain', 'worker', p_worker::text, null, holdfast.who(p_by), p_why,
    (select count(*) from holdfast.snapshot_queue where owner_id = p_worker));
end $$;
comment on function holdfast.worker_drain is
  'Requests a worker to claim nothing more, to finish its pages, and to exit.';

create or replace function holdfast.collection_pause(p_by text, p_why text)
  returns bigint language plpgsql as $$
-- Crawls keep their state, so that resuming everything does not resume a crawl that was paused by itself.
declare
  v_reason constant text := holdfast.control_reason('everything was paused', holdfast.who(p_by), p_why);
begin
  update holdfast.collection set paused_at = clock_timestamp(), paused_by = v_reason where paused_at is null;
  if not found then return 0; end if;
  return holdfast.control_done('pause', 'all', 'everything', null, holdfast.who(p_by), p_why,
    holdfast.held_release(
      array(select snapshot_id from holdfast.snapshot_queue where owner_id is not null), v_reason));
end $$;
comment on function holdfast.collection_pause is 'Pauses everything: no worker claims.';

create or replace function holdfast.collection_resume(p_by text, p_why text)
  returns bigint language plpgsql as $$
begin
  update holdfast.collection set paused_at = null, paused_by = null where paused_at is not null;
  if not found then return 0; end if;
  return holdfast.control_done('resume', 'all', 'everything', null, holdfast.who(p_by), p_why, 0);
end $$;
comment on function holdfast.collection_resume is
  'Resumes everything, except for crawls, snapshots, hosts and workers that are paused by themselves.';

create or replace view holdfast.v_control as
  select c.id, c.at, c.action, c.kind, c.target, c.by_whom, c.detail, c.held, c.crawl_id
    from holdfast.control c;
comment on view holdfast.v_control is 'Commands given to the collection, and when each took effect.';
