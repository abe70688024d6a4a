-- What the specs share: short names for fixed ids, and a state to start from. Every wrapper is one call of the function
-- that it is named after, so that a step locks exactly what the real call locks.
create schema race;

-- Claims prefer the crawls that a node has open, but only every other time; here always.
do $$ begin execute format('alter database %I set holdfast.claim_near = 1', current_database()); end $$;

create function race.node(n integer) returns uuid language sql immutable as $$ select ('a0000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid $$;
create function race.crawl(n integer) returns uuid language sql immutable as $$ select ('c0000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid $$;
create function race.snapshot(n integer) returns uuid language sql immutable as $$ select ('50000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid $$;
create function race.url(n integer) returns text language sql immutable as $$ select 'https://race.test/' || n $$;
create function race.urls(n integer[]) returns text[] language sql immutable as $$ select coalesce(array_agg(race.url(i) order by o), '{}') from unnest(n) with ordinality u(i, o) $$;
create function race.hosts(n integer[]) returns text[] language sql immutable as $$ select coalesce(array_agg('race.test'::text), '{}') from unnest(n) $$;

-- Setting the stage ------------------------------------------------------------------------------------------------------

create procedure race.fresh() language plpgsql as $$
begin
  truncate holdfast.machine, holdfast.crawl, holdfast.crawl_seed, holdfast.snapshot, holdfast.snapshot_queue, holdfast.archive_result, holdfast.attempt, holdfast.snapshot_sealed, holdfast.event, holdfast.host, holdfast.robots, holdfast.control, holdfast.purge, holdfast.superseded, holdfast.crawl_page_stale cascade;
  update holdfast.collection set paused_at = null, paused_by = null;
  perform holdfast.node_join(race.node(n), '{"id": "machine", "hostname": "race"}', 'boot', n, n, null, 'worker', 'snapshot', 'node ' || n, '1', 8, interval '1 hour')
    from generate_series(1, 3) n;
end $$;

-- A crawl that has not been expanded, with one seed for each number.
create procedure race.queued_crawl(crawl integer, seeds integer[], max_depth integer default 0, max_urls integer default 0) language plpgsql as $$
begin
  perform holdfast.crawl_add(race.crawl(crawl), jsonb_build_object('max_depth', max_depth, 'max_urls', max_urls));
  perform holdfast.crawl_add_seeds(race.crawl(crawl), race.urls(seeds), race.hosts(seeds), '{}', null);
end $$;

-- A crawl in the middle of its life, with snapshots of known ids, all due.
create procedure race.started_crawl(crawl integer, snapshots integer[], max_depth integer default 0, max_urls integer default 0) language plpgsql as $$
begin
  insert into holdfast.crawl (id, status, retry_at, started_at, max_depth, max_urls, snapshots_total, snapshots_open)
    values (race.crawl(crawl), 'started', null, clock_timestamp(), max_depth, max_urls, cardinality(snapshots), cardinality(snapshots));
  -- Claims walk the crawls from a random place; this way crawl 2 always comes before crawl 1.
  insert into holdfast.crawl_queue (crawl_id, ready_at, shuffle) values (race.crawl(crawl), clock_timestamp(), crawl - 1);
  insert into holdfast.snapshot (id, crawl_id, url, url_hash, host)
    select race.snapshot(n), race.crawl(crawl), race.url(n), sha256(convert_to(race.url(n), 'UTF8')), 'race.test' from unnest(snapshots) n;
  insert into holdfast.snapshot_queue (snapshot_id, crawl_id, host, retry_at)
    select race.snapshot(n), race.crawl(crawl), 'race.test', clock_timestamp() - interval '1 minute' + n * interval '1 second' from unnest(snapshots) n;
end $$;

-- The node holds this many more snapshots, and has begun to work on them.
create procedure race.holds(node integer, room integer, near integer default null) language plpgsql as $$
begin
  perform set_config('holdfast.claim_floors', '', false);
  perform holdfast.snapshot_start(race.node(node), c.snapshot_id, c.crawl_id, c.fence) from holdfast.snapshot_claim(race.node(node), room, array[race.crawl(near)]) c;
end $$;

create procedure race.hook(node integer, snapshot integer) language sql as $$
  select holdfast.result_start(race.node(node), q.snapshot_id, q.crawl_id, q.fence, 'plugin', 'on_Snapshot__1_hook', 1, 1, 1000, false)
    from holdfast.snapshot_queue q where q.snapshot_id = race.snapshot(snapshot)
$$;

create procedure race.expire(node integer) language sql as $$
  update holdfast.process set lease_until = clock_timestamp() - interval '1 second' where id = race.node(node)
$$;

-- Steps ------------------------------------------------------------------------------------------------------------------

create function race.claim(node integer, room integer, near integer default null) returns table (url text, fence bigint) language sql volatile as $$
  -- As a session that has not claimed for a second: how long a permutation takes must not decide which snapshots it gets.
  select set_config('holdfast.claim_floors', '', false);
  select c.url, c.fence from holdfast.snapshot_claim(race.node(node), room, array[race.crawl(near)]) c order by c.url
$$;

-- A claim that opens a new small crawl first.
create function race.work(node integer, room integer) returns table (url text, fence bigint) language sql volatile as $$
  select set_config('holdfast.claim_floors', '', false);
  select c.url, c.fence from holdfast.work_take(race.node(node), room, '{}', false, 'oldest', 0, 200) c order by c.url
$$;

create function race.release(node integer, snapshot integer, fence bigint, delay interval default '0') returns text language sql volatile as $$
  select 'released' from holdfast.snapshot_release(race.node(node), race.snapshot(snapshot), race.crawl(1), fence, 'released', delay, 'put back', true)
$$;

create function race.seal(node integer, snapshot integer, fence bigint, children integer[] default '{}') returns table (children bigint, crawl_sealed boolean) language sql volatile as $$
  select * from holdfast.snapshot_seal(race.node(node), race.snapshot(snapshot), race.crawl(1), fence, 'succeeded', null, 'directory', 'manifest', 10, 1, '', '{}',
    race.urls(children), race.hosts(children), '{}')
$$;

-- Several at once, each with its fence; snapshots 7 and up are of crawl 2.
create function race.seal_many(node integer, snapshots integer[], fences bigint[], children integer[] default '{}')
  returns table (snapshot integer, answer text, children bigint, crawl_sealed boolean) language sql volatile as $$
  select snapshots[m.number], m.answer, m.children, m.crawl_sealed
    from holdfast.snapshot_seal_many(race.node(node), (select jsonb_agg(jsonb_build_object('snapshot', race.snapshot(s),
        'crawl', race.crawl(case when s >= 7 then 2 else 1 end), 'fence', f, 'outcome', 'succeeded', 'directory', 'directory', 'manifest', 'manifest',
        'bytes', 10, 'files', 1, 'urls', race.urls(children), 'hosts', race.hosts(children), 'titles', '[]'::jsonb) order by n)
      from unnest(snapshots, fences) with ordinality u(s, f, n))) m order by m.number
$$;

create function race.finish(node integer, snapshot integer, fence bigint) returns text language sql volatile as $$
  select 'finished' from holdfast.result_finish(race.node(node), race.snapshot(snapshot), race.crawl(1), fence, 'plugin', 'on_Snapshot__1_hook', 'succeeded', '{"output": "done"}')
$$;

create function race.beat(node integer, snapshots integer[]) returns table (kind text, snapshot text) language sql volatile as $$
  select b.kind, coalesce(right(b.snapshot_id::text, 2), b.detail)
    from holdfast.node_beat(race.node(node), interval '1 hour', (select coalesce(array_agg(race.snapshot(n)), '{}') from unnest(snapshots) n),
      (select coalesce(array_agg(1::bigint), '{}') from unnest(snapshots)), '{}') b
    order by 1, 2
$$;

create function race.claim_crawl(node integer) returns table (crawl text, fence bigint, seeds_left bigint) language sql volatile as $$
  select right(c.crawl_id::text, 2), c.fence, c.seeds_left from holdfast.crawl_claim(race.node(node), interval '1 minute') c
$$;

create function race.expand(node integer, fence bigint, batch integer) returns table (seeds_left bigint, inserted bigint, status text) language sql volatile as $$
  select * from holdfast.crawl_expand(race.node(node), race.crawl(1), fence, batch)
$$;

-- The runner's gate. Runners have the ids of nodes 101 and up, and joined in the order of their numbers.
create procedure race.runners(standby boolean[]) language plpgsql as $$
begin
  truncate holdfast.runner_term, holdfast.duty_run;
  update holdfast.duty set next_at = clock_timestamp() + interval '1 hour', runs = 0;
  perform holdfast.runner_join(race.node(100 + n::integer), '{"id": "machine", "hostname": "race"}', 'boot', 100 + n::integer, n, 'namespace', 'runner ' || n, '1', s, interval '1 hour')
    from unnest(standby) with ordinality u(s, n) order by n;
end $$;

create function race.enter(runner integer) returns table (answer text, epoch bigint, because_of text) language sql volatile as $$
  select e.answer, e.epoch, e.label from holdfast.runner_enter(race.node(100 + runner), interval '1 hour') e
$$;

create function race.duty(runner integer, epoch bigint) returns table (duty text, error text) language sql volatile as $$
  select d.duty, d.error from holdfast.runner_duty(race.node(100 + runner), epoch, 'mend') d
$$;

-- Programs of the one machine that all nodes are on.
create procedure race.wanted() language sql as $$
  select holdfast.binary_want(race.node(1), '[{"name": "wget"}]')
$$;

create procedure race.looks_for(node integer) language sql as $$
  select holdfast.binary_claim(race.node(node), 4)
$$;

create function race.claim_binary(node integer) returns table (name text, fence bigint, path text) language sql volatile as $$
  select b.name, b.fence, b.path from holdfast.binary_claim(race.node(node), 4) b
$$;

create function race.set_binary(node integer, fence bigint, path text) returns text language sql volatile as $$
  select 'written' from holdfast.binary_set(race.node(node), 'wget', fence, jsonb_build_object('path', path, 'error', 'not here'))
$$;

create function race.binary_outcome() returns table (name text, status text, path text, owner text, fence bigint, failures integer, due boolean) language sql volatile as $$
  select b.name, b.status, b.path, right(b.owner_id::text, 1), b.fence, b.failures, b.retry_at <= clock_timestamp() from holdfast.binary b
$$;

create function race.runner_beat(runner integer) returns table (leads boolean, epoch bigint, request text, rival text) language sql volatile as $$
  select * from holdfast.runner_beat(race.node(100 + runner), interval '1 hour', '{}')
$$;

create function race.runner_leave(runner integer) returns text language sql volatile as $$
  select 'left' from holdfast.runner_leave(race.node(100 + runner), 0, 'asked to')
$$;

create function race.gate_outcome() returns table (what text, state text) language sql volatile as $$
  select * from (
    (select p.label as what, concat_ws(', ', p.status, p.worker_type, 'epoch ' || p.epoch, 'asked to ' || p.request, p.exit_reason) as state
      from holdfast.process p where p.process_type = 'orchestrator' order by p.started_at)
    union all
    (select 'epoch ' || t.epoch, t.label || coalesce(', ' || t.ending, '') from holdfast.runner_term t order by t.epoch)
    union all
    (select 'duty by epoch ' || r.epoch, r.duty || coalesce(', ' || r.error, '') from holdfast.duty_run r order by r.id)
    union all
    (select 'BROKEN: ' || i.invariant, 'see check_invariants' from holdfast.check_invariants() i order by 1)) o
$$;

-- Places to stop inside a function: a session that has set race.gate to the name of a table waits for advisory lock 1 when an
-- UPDATE of that table has begun, so with the snapshot it then has, and before that has looked at any row.
create function race.gate() returns trigger language plpgsql as $$
begin
  if current_setting('race.gate', true) = tg_table_name then perform pg_advisory_xact_lock_shared(1); end if;
  return null;
end $$;
create trigger race_gate before update on holdfast.crawl for each statement execute function race.gate();
create trigger race_gate before update on holdfast.crawl_queue for each statement execute function race.gate();

-- How it ended -----------------------------------------------------------------------------------------------------------

-- Printed after every permutation, so that the expected output pins the whole outcome, and any broken invariant shows.
create function race.outcome() returns table (what text, state text) language sql volatile as $$
  select * from (
    (select 'crawl ' || right(c.id::text, 1) as what,
           format('%s%s, %s of %s open, %s succeeded, seeds left %s, sealed %s times%s%s', c.status, ' ' || c.outcome, c.snapshots_open, c.snapshots_total, c.snapshots_succeeded,
             c.seeds_left, (select count(*) from holdfast.event e where e.object_id = c.id and e.to_state = 'sealed'), ', stopped by ' || c.stop_reason,
             ', expanded by ' || (select label from holdfast.process where id = c.owner_id)) as state
      from holdfast.crawl c order by 1)
    union all
    (select replace(v.url, 'https://race.test/', 'snapshot '),
           format('%s%s, fence %s, attempts %s, lost %s%s', v.status, ' ' || v.outcome, v.fence, v.attempts, v.owners_lost, ', ' || v.owner)
      from holdfast.v_snapshot v order by v.url)
    union all
    (select 'result of snapshot ' || right(r.snapshot_id::text, 1) || ' a' || r.fence, r.status from holdfast.archive_result r order by 1)
    union all
    (select p.label, p.status from holdfast.process p where p.status <> 'running' order by 1)
    union all
    (select 'BROKEN: ' || i.invariant, i.detail from holdfast.check_invariants() i order by 1, 2)) o
$$;

-- Orders ------------------------------------------------------------------------------------------------------------------

create function race.pause(crawl integer) returns text language sql volatile as $$
  select case holdfast.crawl_pause(race.crawl(crawl), 'ann', '') when 1 then 'paused' else 'nothing to do' end
$$;

create function race.resume(crawl integer) returns text language sql volatile as $$
  select case holdfast.crawl_resume(race.crawl(crawl), 'ann', '') when 1 then 'resumed' else 'nothing to do' end
$$;

create function race.cancel(crawl integer) returns text language sql volatile as $$
  select holdfast.crawl_cancel(race.crawl(crawl), 'ann', '') || ' left'
$$;

-- Expands, or goes on cancelling, whatever is due.
create function race.expand_due(node integer) returns table (crawl text, seeds_left bigint, status text) language sql volatile as $$
  select right(c.crawl_id::text, 2), e.seeds_left, e.status
    from holdfast.crawl_claim(race.node(node), interval '1 minute') c, holdfast.crawl_expand(race.node(node), c.crawl_id, c.fence, 100) e
$$;

create function race.host(parallel integer) returns text language sql volatile as $$
  select 'set' from holdfast.host_set('race.test', null, parallel, 'ann')
$$;

-- Any order to any kind of target: crawl 1, snapshot 1 (which node 1 holds) or 2 (which waits), the only host, node 1, everything.
create function race.give(action text, kind text) returns text language plpgsql as $$
declare
  v_changed bigint;
begin
  v_changed := case action || ' ' || kind
    when 'pause crawl' then holdfast.crawl_pause(race.crawl(1), 'ann', '')
    when 'resume crawl' then holdfast.crawl_resume(race.crawl(1), 'ann', '')
    when 'cancel crawl' then holdfast.crawl_cancel(race.crawl(1), 'ann', '')
    when 'pause node' then holdfast.node_pause(race.node(1), 'ann', '')
    when 'resume node' then holdfast.node_resume(race.node(1), 'ann', '')
    when 'cancel node' then holdfast.node_cancel(race.node(1), 'ann', '')
    when 'pause host' then holdfast.host_pause('race.test', 'ann', '')
    when 'resume host' then holdfast.host_resume('race.test', 'ann', '')
    when 'cancel host' then holdfast.host_cancel('race.test', 'ann', '')
    when 'pause all' then holdfast.collection_pause('ann', '')
    when 'resume all' then holdfast.collection_resume('ann', '')
    when 'exclude crawl' then holdfast.crawl_scope(race.crawl(1), '{"deny": ["race.test"]}', '{}', 'ann')
    when 'remove crawl' then holdfast.crawl_remove(race.crawl(1), 'ann')
    when 'remove held' then holdfast.snapshot_remove(race.snapshot(1), 'ann')
    when 'retry crawl' then holdfast.crawl_retry(race.crawl(9), array[race.crawl(1)], false, '{}', 'ann')
    else holdfast.snapshot_order(race.snapshot(case kind when 'held' then 1 else 2 end), action, 'ann', '')
  end;
  return action || ' ' || kind || ': ' || v_changed;
exception when sqlstate 'HF004' then
  return 'refused: ' || sqlerrm;
end $$;

-- Until nothing changes: what nodes 2 and 3 hold unawares goes with a beat, and what is due is expanded, judged or closed.
create function race.settle() returns text language plpgsql as $$
declare
  v_node integer;
  v_crawl record;
begin
  for i in 1..10 loop
    foreach v_node in array array[1, 2] loop
      begin
        perform holdfast.node_beat(race.node(v_node), interval '1 hour',
          (select coalesce(array_agg(q.snapshot_id), '{}') from holdfast.snapshot_queue q where q.owner_id = race.node(v_node)),
          (select coalesce(array_agg(q.fence), '{}') from holdfast.snapshot_queue q where q.owner_id = race.node(v_node)), '{}');
      exception when sqlstate 'HF002' then null; -- given up
      end;
    end loop;
    for v_crawl in select * from holdfast.crawl_claim(race.node(3), interval '1 minute') loop
      perform holdfast.crawl_expand(race.node(3), v_crawl.crawl_id, v_crawl.fence, 100);
    end loop;
  end loop;
  return 'settled';
end $$;
