-- Workers: their capabilities, heartbeats and running hooks.

create or replace function holdfast.can_run(p_capabilities jsonb, p_plugins text[])
  returns boolean language sql immutable as $$
  -- Returns true if a worker has the plugins that a crawl names; a crawl without names requires all enabled
  -- plugins.
  select case when p_plugins = '{}' then not p_capabilities ? 'lacks'
              else coalesce(p_capabilities -> 'plugins' ?& p_plugins, true) end
$$;
comment on function holdfast.can_run is
  'Returns true if a worker with these capabilities takes a crawl with these plugins.';

create or replace function holdfast.worker_able(p_id uuid, p_capabilities jsonb)
  returns void language plpgsql as $$
begin
  perform holdfast.mine(p_id);
  update holdfast.process set capabilities = p_capabilities where id = p_id and status = 'running';
  if not found then raise exception 'process % has lapsed', p_id using errcode = 'HF002'; end if;
end $$;
comment on function holdfast.worker_able is
  'Records that the capabilities of a worker have changed: its browser starts, or does not. Claims then skip crawls '
  'that the worker cannot take.';

create or replace function holdfast.archive_begun()
  returns boolean language sql stable as $$
  select exists (select from holdfast.snapshot_sealed where directory is not null)
$$;
comment on function holdfast.archive_begun is
  'Returns true if the collection has files: then its archive is never created again in an empty directory.';

create or replace function holdfast.worker_may_claim(p_worker uuid)
  returns boolean language plpgsql as $$
-- False while the worker drains or is paused; HF002 once it has lapsed. Locks the worker's row until the end
-- of the transaction, before any other lock: so lapsing the worker waits for its claim, or the claim for
-- that, but never both.
declare
  v_may boolean;
begin
  perform holdfast.mine(p_worker);
  select not p.draining and p.paused_at is null and a.paused_at is null
    into v_may
    from holdfast.process p
    cross join holdfast.collection a
    where p.id = p_worker and p.status = 'running' and p.lease_until > clock_timestamp()
    for key share of p;
  if found then return v_may; end if;
  -- A worker that drains only finishes; its fences protect what it writes.
  if exists (select from holdfast.process where id = p_worker and status = 'running' and draining) then
    return false;
  end if;
  raise exception 'worker % has lapsed', p_worker using errcode = 'HF002';
end $$;

create or replace function holdfast.worker_heartbeat(
    p_worker uuid, p_lease interval, p_snapshots uuid[], p_fences bigint[], p_stats jsonb)
  returns table (kind text, snapshot_id uuid, crawl_id uuid, fence bigint, detail text)
  language plpgsql as $$
-- Renews the lease, which covers everything the worker holds, and answers with what the worker must know:
--   lost       it believes that it holds this, but does not: stop that job, write nothing
--   extra      it holds this without knowing (the answer to its claim was lost): release it
--   request    it is asked to drain, stop or leave
--   log_level  the level at which it is asked to log
-- control_apply() releases what the worker holds against a command that came while its claim was under way.
#variable_conflict use_column
declare
  v_request text;
  v_draining boolean;
  v_lease timestamptz;
begin
  perform holdfast.mine(p_worker);
  perform holdfast.lease_check(p_lease);
  update holdfast.process
    set heartbeat_at = clock_timestamp(), lease_until = clock_timestamp() + p_lease, stats = p_stats
    where id = p_worker and status = 'running'
    returning request, draining, lease_until into v_request, v_draining, v_lease;
  if not found then
    raise exception 'worker % has lapsed', p_worker using errcode = 'HF002';
  end if;
  perform holdfast.control_apply(p_worker);
  -- Last, and of those that no other call is just changing: a heartbeat waits for none.
  update holdfast.snapshot_queue
    set retry_at = v_lease
    where snapshot_id = any (array(select q.snapshot_id
                                     from holdfast.snapshot_queue q
                                     where q.owner_id = p_worker for no key update skip locked));
  update holdfast.crawl
    set retry_at = v_lease
    where id = any (array(select c.id
                            from holdfast.crawl c
                            where c.owner_id = p_worker and c.status <> 'sealed'
                            for no key update skip locked));
  return query
    with held as materialized (
      select q.snapshot_id, q.crawl_id, q.fence from holdfast.snapshot_queue q where q.owner_id = p_worker)
    select 'lost', b.id, null::uuid, b.fence, null::text
      from unnest(p_snapshots, p_fences) b(id, fence)
      where not exists (select from held h where h.snapshot_id = b.id and h.fence = b.fence)
    union all
    select 'extra', h.snapshot_id, h.crawl_id, h.fence, null
      from held h
      where not (h.snapshot_id = any (p_snapshots))
    union all
    select 'request', null, null, null, coalesce(v_request, 'drain')
      where v_request is not null or v_draining
    union all
    select 'log_level', null, null, null, l.level
      from (select holdfast.log_level_of(p_worker) as level) l
      where l.level is not null;
end $$;
comment on function holdfast.worker_heartbeat is
  'Renews a worker''s lease. Returns what it lost, what it holds without a record of its own, and its commands.';

create or replace function holdfast.worker_hooks(p_worker uuid, p_hooks jsonb)
  returns void language plpgsql as $$
-- Replaces the rows of the hooks that the worker runs now, and of those that have ended while their page is
-- in work. They are live state, not history: the table is unlogged and the commit does not wait for the disk.
-- running_ms, still_ms: for how long a hook has run, and has made no progress. The worker's row is locked
-- first: a lapse comes before this call, which then does nothing, or after it, and then deletes the rows.
declare
  v_now constant timestamptz := clock_timestamp();
begin
  perform holdfast.mine(p_worker);
  perform set_config('synchronous_commit', 'off', true);
  perform from holdfast.process where id = p_worker and status = 'running' for key share;
  if not found then return; end if;
  delete from holdfast.running_hook where process_id = p_worker;
  insert into holdfast.running_hook as o (
      process_id, snapshot_id, crawl_id, fence, plugin, hook_name,
      background, pid, started_at, timeout_ms, no_progress_since, started_with, ended, ended_at)
    select p_worker, h.snapshot, h.crawl, h.fence, h.plugin, h.hook,
           coalesce(h.background, false), h.pid, v_now - greatest(h.running_ms, 0) * interval '1 millisecond',
           h.timeout_ms, v_now - h.still_ms * interval '1 millisecond',
           coalesce(h.started_with, h.ended -> 'started_with'), h.ended,
           v_now - (h.ended ->> 'ended_ago_ms')::bigint * interval '1 millisecond'
      from jsonb_to_recordset(p_hooks) as h(
        snapshot uuid, crawl uuid, fence bigint, plugin text, hook text,
        background boolean, pid integer, running_ms bigint, timeout_ms bigint, still_ms bigint,
        started_with jsonb, ended jsonb)
      cross join lateral (select o.owner_id
                            from holdfast.snapshot_queue o
                            where o.snapshot_id = h.snapshot and o.crawl_id = h.crawl
                            limit 1) q
      where q.owner_id = p_worker
    -- Overwrites a row that another worker left of an earlier attempt.
    on conflict (snapshot_id, plugin, hook_name) do update
      set process_id = excluded.process_id, fence = excluded.fence, background = excluded.background,
          pid = excluded.pid, started_at = excluded.started_at, timeout_ms = excluded.timeout_ms,
          no_progress_since = excluded.no_progress_since, started_with = excluded.started_with,
          ended = excluded.ended, ended_at = excluded.ended_at
      where o.fence <= excluded.fence;
end $$;
comment on function holdfast.worker_hooks is 'Replaces the report of a worker on its running hooks.';

create or replace function holdfast.hooks_of(p_snapshot uuid, p_fence bigint)
  returns text[] language sql stable as $$
  -- Returns the hooks that ran when the worker of an attempt lapsed: a hint to the cause.
  select coalesce(array_agg(h.plugin || '/' || h.hook_name order by h.started_at), '{}')
    from holdfast.running_hook h
    where h.snapshot_id = p_snapshot and h.fence = p_fence and h.ended_at is null
$$;
