-- Keeps every change of state legal, whether a function, a set of rows in one statement or a user of psql
-- makes it. The legal transitions are the rows of holdfast.lifecycle_edge; any other is refused with SQLSTATE
-- HF001.

create or replace function holdfast.lifecycle_guard()
  returns trigger language plpgsql as $$
-- Arguments: the lifecycle; "log" where each transition is written to holdfast.event. A function that changes
-- a status names the transition in the row's column "event". A change by hand leaves an old event there,
-- which does not lead from the old state to the new one, so it is recorded as "direct". Tables that are not
-- logged have no such column, and one transition between two states.
declare
  v_row jsonb := to_jsonb(new);
  v_events text[];
  v_event text := v_row ->> 'event';
begin
  select array_agg(e.event)
    into v_events
    from holdfast.lifecycle_edge e
    where e.lifecycle = tg_argv[0]
      and e.from_state = old.status
      and e.to_state = new.status;
  if v_events is null then
    raise exception 'illegal change of a %: % -> %', tg_argv[0], old.status, new.status
      using errcode = 'HF001', hint = 'The legal transitions are in holdfast.lifecycle_edge.';
  end if;
  if tg_argv[1] <> 'log' or not v_row ? 'event' then
    v_event := v_events[1];
  elsif not coalesce(v_event = any (v_events), false) then
    v_event := 'direct';
    new := jsonb_populate_record(new, '{"event": "direct"}');
  end if;
  if tg_argv[1] = 'log' then
    insert into holdfast.event (
        lifecycle, object_id, crawl_id, from_state, event, to_state, process_id, detail)
      values (
        tg_argv[0],
        coalesce(v_row ->> 'snapshot_id', v_row ->> 'id')::uuid,
        (v_row ->> case tg_argv[0] when 'crawl' then 'id' else 'crawl_id' end)::uuid,
        old.status, v_event, new.status,
        case tg_argv[0]
          when 'process' then v_row ->> 'id'
          else coalesce(v_row ->> 'owner_id', to_jsonb(old) ->> 'owner_id')
        end::uuid,
        coalesce(v_row ->> 'reason', v_row ->> 'stop_reason', v_row ->> 'exit_reason'));
  end if;
  return new;
end $$;

create or replace function holdfast.snapshots_leave()
  returns trigger language plpgsql as $$
-- A snapshot leaves the queue when the same statement writes its sealed row, or when the snapshot itself is
-- deleted.
declare
  v_wrong record;
begin
  select o.*
    into v_wrong
    from (select g.status, e.outcome, min(g.snapshot_id::text) as snapshot_id,
                 coalesce(bool_or(e.outcome is not null
                                  or exists (select from holdfast.snapshot s
                                               where s.id = g.snapshot_id and s.crawl_id = g.crawl_id)),
                          false) as there
            from gone g
            -- Joined by id alone: no plan may search everything that the crawl has sealed.
            left join lateral (select o.outcome, o.crawl_id
                                 from holdfast.snapshot_sealed o
                                 where o.snapshot_id = g.snapshot_id
                                 offset 0) e on e.crawl_id = g.crawl_id
            group by g.status, e.outcome) o
    where o.there
      and not exists (select from holdfast.lifecycle_edge l
                        where l.lifecycle = 'snapshot'
                          and l.from_state = o.status
                          and l.to_state = 'sealed'
                          and l.event = holdfast.seal_event(o.outcome)
                          and o.outcome is not null)
    limit 1;
  if found then
    raise exception 'illegal change of snapshot %: % -> %', v_wrong.snapshot_id, v_wrong.status,
      coalesce('sealed (' || v_wrong.outcome || ')', 'deleted from the queue')
      using errcode = 'HF001', hint = 'A snapshot leaves the queue by being sealed.';
  end if;
  return null;
end $$;

create or replace function holdfast.snapshots_sealed()
  returns trigger language plpgsql as $$
-- A snapshot is either open or sealed.
declare
  v_open uuid;
begin
  select f.snapshot_id
    into v_open
    from fresh f
    cross join lateral (select from holdfast.snapshot_queue q
                          where q.snapshot_id = f.snapshot_id and q.crawl_id = f.crawl_id
                          limit 1) q
    limit 1;
  if found then
    raise exception 'snapshot % is still in the queue', v_open
      using errcode = 'HF001',
        hint = 'Its row in snapshot_queue goes in the statement that writes the sealed row.';
  end if;
  return null;
end $$;

create or replace function holdfast.may_change_sealed()
  returns boolean language sql stable as $$
  -- A guard against mistakes in psql. The functions that remove pages switch it on for themselves.
  select coalesce(nullif(current_setting('holdfast.change_sealed', true), '')::boolean, false)
$$;

create or replace function holdfast.set_change_sealed(p_value text)
  returns text language plpgsql as $$
-- For functions that remove pages. Returns the value before, for the call that restores it. Not a SET clause
-- of those functions, because only a superuser may create a function with a custom setting.
declare
  v_before constant text := coalesce(current_setting('holdfast.change_sealed', true), '');
begin
  perform set_config('holdfast.change_sealed', p_value, true);
  return v_before;
end $$;

create or replace function holdfast.never_changes()
  returns trigger language plpgsql as $$
-- Sealed pages, their results and their attempts are written once. Snapshots that are still open may change.
-- The argument is the table, because a trigger of a partition receives the partition's name.
begin
  if tg_level = 'ROW' and tg_argv[0] = 'snapshot' then
    perform from holdfast.snapshot_sealed e where e.snapshot_id = old.id and e.crawl_id = old.crawl_id;
    if not found and tg_op = 'DELETE' then return old; end if;
    if not found then return new; end if;
  end if;
  raise exception '% of % refused: sealed pages never change (by hand: set holdfast.change_sealed = on)',
    lower(tg_op), tg_argv[0] using errcode = 'HF001',
    hint = 'holdfast.snapshot_remove() and holdfast.crawl_remove() delete a page or a crawl with its files.';
end $$;

create or replace function holdfast.snapshots_go()
  returns trigger language plpgsql as $$
-- Replaces a foreign key from snapshot_queue (see its comment).
begin
  delete from holdfast.snapshot_queue q
    using gone g
    where q.snapshot_id = any (array(select i.id from gone i))
      and q.snapshot_id = g.id
      and q.crawl_id = g.crawl_id;
  -- The fingerprint of a URL goes with its last snapshot.
  delete from holdfast.fingerprint f
    where f.url_hash = any (array(select g.url_hash from gone g))
      and not exists (select from holdfast.snapshot s where s.url_hash = f.url_hash);
  return null;
end $$;

create or replace function holdfast.crawls_go()
  returns trigger language plpgsql as $$
-- Replaces foreign keys from crawl_seed and snapshot (see their comments).
begin
  delete from holdfast.crawl_seed s where s.crawl_id = any (array(select g.id from gone g));
  delete from holdfast.snapshot s where s.crawl_id = any (array(select g.id from gone g));
  return null;
end $$;

do $$
declare
  v_lifecycle record;
begin
  for v_lifecycle in
    values ('crawl', 'log'), ('process', 'log'), ('session', 'log'), ('binary', 'quiet'), ('delivery', 'quiet')
  loop
    execute format(
      'create or replace trigger %1$s_lifecycle before update of status on holdfast.%1$s'
      ' for each row when (old.status is distinct from new.status)'
      ' execute function holdfast.lifecycle_guard(%1$L, %2$L)', v_lifecycle.column1, v_lifecycle.column2);
  end loop;
end $$;
-- A claim starts many snapshots in one statement and writes one event for all of them: queued to started is
-- legal.
create or replace trigger snapshot_lifecycle
  before update of status on holdfast.snapshot_queue
  for each row when (old.status is distinct from new.status
    and not (old.status = 'queued' and new.status = 'started' and new.event is not distinct from 'start'))
  execute function holdfast.lifecycle_guard('snapshot', 'log');

create or replace trigger snapshots_leave
  after delete on holdfast.snapshot_queue
  referencing old table as gone
  for each statement execute function holdfast.snapshots_leave();
create or replace trigger snapshots_sealed
  after insert on holdfast.snapshot_sealed
  referencing new table as fresh
  for each statement execute function holdfast.snapshots_sealed();
do $$
declare
  v_table text;
begin
  -- A cascade from a snapshot that may go is at depth 1.
  foreach v_table in array '{snapshot_sealed, archive_result, attempt}'::text[] loop
    execute format(
      'create or replace trigger %1$s_never_changes before update or delete on holdfast.%1$s'
      ' for each row when (pg_trigger_depth() = 0 and not holdfast.may_change_sealed())'
      ' execute function holdfast.never_changes(%1$L)', v_table);
  end loop;
  foreach v_table in array '{crawl, snapshot, snapshot_sealed, archive_result, attempt}'::text[] loop
    execute format(
      'create or replace trigger %1$s_not_truncated before truncate on holdfast.%1$s'
      ' for each statement when (not holdfast.may_change_sealed())'
      ' execute function holdfast.never_changes(%1$L)', v_table);
  end loop;
end $$;
-- Protects all columns but the tags, which users change at any time.
create or replace trigger snapshot_never_changes
  before delete or update of id, crawl_id, url, url_hash, depth, parent_id, found_on, title, created_at
  on holdfast.snapshot
  for each row when (not holdfast.may_change_sealed())
  execute function holdfast.never_changes('snapshot');
create or replace trigger snapshots_go
  after delete on holdfast.snapshot
  referencing old table as gone
  for each statement execute function holdfast.snapshots_go();
create or replace trigger crawls_go
  after delete on holdfast.crawl
  referencing old table as gone
  for each statement execute function holdfast.crawls_go();
