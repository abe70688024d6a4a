-- What an operator looks at first. Names and columns are stable, as those of 90_views.sql.
-- The time is that of the statement: an index serves no comparison with clock_timestamp(), which may change from row to row.

create or replace view holdfast.v_stuck as
  with late as (
    -- Crawls with due snapshots of which nobody takes any: the one that has waited longest stands for all.
    (select 'snapshot' as kind, d.snapshot_id as id, d.crawl_id, d.retry_at as since, 'due, but nobody takes it' as what
       from (select q.crawl_id from holdfast.crawl_queue q where q.ready_at <= statement_timestamp() order by q.ready_at limit 30) w
       cross join lateral (
         select x.snapshot_id, x.crawl_id, x.retry_at from (
           (select s.snapshot_id, s.crawl_id, s.retry_at from holdfast.snapshot_queue s
              where s.crawl_id = w.crawl_id and s.owner_id is null and not s.lane and s.retry_at < statement_timestamp() - interval '2 minutes'
              order by s.retry_at limit 1)
           union all
           -- Claims move a lane that has to wait; one that stays due is looked at by nobody.
           (select s.snapshot_id, s.crawl_id, s.retry_at
              from (select l.crawl_id, l.host from holdfast.crawl_lane l
                      where l.crawl_id = w.crawl_id and l.next_at < statement_timestamp() - interval '2 minutes' order by l.next_at limit 1) l
              cross join lateral (select q.snapshot_id, q.crawl_id, q.retry_at from holdfast.snapshot_queue q
                                    where q.crawl_id = l.crawl_id and q.host = l.host and q.owner_id is null and q.lane
                                      and q.retry_at < statement_timestamp() - interval '2 minutes' order by q.retry_at limit 1) s)) x
           order by x.retry_at limit 1) d
       where not exists (select from holdfast.process p join holdfast.snapshot_queue h on h.owner_id = p.id
                           where p.status = 'running' and h.crawl_id = w.crawl_id))
    union all
    (select 'crawl', c.id, c.id, c.retry_at, 'due, but nobody takes it' from holdfast.crawl c
       where c.owner_id is null and c.retry_at < statement_timestamp() - interval '2 minutes' and c.status in ('queued', 'started')
       order by c.retry_at limit 100)
    union all
    (select 'snapshot', r.snapshot_id, r.crawl_id, r.started_at, 'hook ' || r.plugin || '/' || r.hook_name || ' is past its time'
       from holdfast.archive_result r
       where r.ended_at is null and not r.background and r.started_at + r.timeout_ms * interval '1 millisecond' + interval '1 minute' < statement_timestamp() limit 100)
    union all
    (select 'snapshot', q.snapshot_id, q.crawl_id, q.claimed_at, 'in work for very long' from holdfast.snapshot_queue q
       where q.owner_id is not null and q.claimed_at < statement_timestamp() - interval '1 hour' order by q.claimed_at limit 100)
    union all
    (select 'process', p.id, null, p.lease_until, 'its lease has run out' from holdfast.process p
       where p.status = 'running' and p.lease_until < statement_timestamp() - interval '10 seconds' limit 100)
    union all
    (select 'crawl', s.crawl_id, s.crawl_id, s.opened_at, 'its crawl hooks do not get ready' from holdfast.crawl_session s
       where s.status = 'opening' and s.opened_at < statement_timestamp() - interval '5 minutes' limit 100)
    union all
    (select 'runner', null, null, min(p.started_at), 'nobody leads' from holdfast.process p
       where p.status = 'running' and p.process_type = 'worker' and p.lease_until > statement_timestamp()
         and not exists (select from holdfast.process r where r.worker_type = 'worker_runner' and r.status = 'running')
         and (select coalesce(max(d.last_run_at), '-infinity') from holdfast.duty d) < statement_timestamp() - interval '15 minutes'
       having min(p.started_at) < statement_timestamp() - interval '15 minutes')
  )
  select l.kind, l.id, coalesce(sn.url, c.first_url, p.label, 'the runner') as name, l.what, l.since, statement_timestamp() - l.since as stuck_for,
         case l.kind when 'runner' then 'No runner leads: schedules, retention and housekeeping wait, while nodes go on. Start one: holdfast runner, or holdfast run --daemon.'
           else w.reason end as reason, l.crawl_id
    from late l
    left join holdfast.snapshot sn on l.kind = 'snapshot' and sn.id = l.id and sn.crawl_id = l.crawl_id
    left join holdfast.crawl c on l.kind = 'crawl' and c.id = l.id
    left join holdfast.process p on l.kind = 'process' and p.id = l.id
    cross join lateral holdfast.why(l.id) w
    order by l.since;
comment on view holdfast.v_stuck is 'What has been due or running for much too long, and why. No row: nothing is.';
comment on column holdfast.v_stuck.what is 'What is wrong with it.';
comment on column holdfast.v_stuck.reason is 'As holdfast.why() says.';
comment on column holdfast.v_stuck.name is 'URL, or name of the process.';

create or replace view holdfast.v_process as
  with recursive tree as (
    select p.id, array[m.hostname, to_char(p.started_at at time zone 'UTC', 'YYYYMMDDHH24MISSUS'), p.id::text] as path, 0 as depth
      from holdfast.process p join holdfast.machine m on m.id = p.machine_id
      where p.status = 'running' and not exists (select from holdfast.process o where o.id = p.parent_id and o.status = 'running')
    union all
    select p.id, t.path || array[to_char(p.started_at at time zone 'UTC', 'YYYYMMDDHH24MISSUS'), p.id::text], t.depth + 1
      from tree t join holdfast.process p on p.parent_id = t.id and p.status = 'running'
  ), node as (
    select t.path, t.depth, m.hostname, p.pid, coalesce(nullif(p.label, ''), p.process_type) as name,
           case when p.lease_until <= statement_timestamp() then 'lost' when p.request is not null then 'asked to ' || p.request when p.draining then 'draining'
                when p.paused_at is not null then 'paused' when p.stats ->> 'not_claiming' is not null then 'not claiming'
                when p.worker_type = 'worker_runner' then 'leads' when p.worker_type = 'runner_waiting' then 'waits' else 'runs' end as state,
           statement_timestamp() - p.started_at as age, p.lease_until - statement_timestamp() as lease_left, p.id as process_id, null::uuid as snapshot_id, null::uuid as crawl_id
      from tree t join holdfast.process p on p.id = t.id join holdfast.machine m on m.id = p.machine_id
  )
  select repeat('   ', x.depth) || x.name as tree, x.state, x.hostname, x.pid, x.age, x.lease_left, x.process_id, x.snapshot_id, x.crawl_id
    from (
      select * from node
      union all
      select n.path || array['1', h.hook_name], n.depth + 1, n.hostname, h.pid, h.plugin || '/' || h.hook_name || ' for all of crawl ' || right(s.crawl_id::text, 8),
             'crawl hook', statement_timestamp() - h.started_at, null, n.process_id, null, s.crawl_id
        from holdfast.crawl_session s join node n on n.process_id = s.process_id
        join holdfast.crawl_session_hook h on h.session_id = s.id and h.ended_at is null where s.ended_at is null
      union all
      select n.path || array['2', r.snapshot_id::text, to_char(r.started_at at time zone 'UTC', 'YYYYMMDDHH24MISSUS')], n.depth + 1, n.hostname, r.pid,
             r.plugin || '/' || r.hook_name || ' on ' || sn.url, case when r.background then 'background' else 'hook' end, statement_timestamp() - r.started_at, null, n.process_id, r.snapshot_id, r.crawl_id
        from node n join holdfast.archive_result r on r.process_id = n.process_id and r.ended_at is null
        join holdfast.snapshot sn on sn.id = r.snapshot_id and sn.crawl_id = r.crawl_id
    ) x order by x.path;
comment on view holdfast.v_process is 'What runs, as a tree: machines'' processes, who started whom, and the hooks below each node.';
comment on column holdfast.v_process.tree is 'Name, indented below what it belongs to.';
comment on column holdfast.v_process.state is 'runs, leads, waits, draining, paused, not claiming, asked to ..., lost (its lease has run out); for hooks: hook, background or crawl hook.';

create or replace view holdfast.v_throughput as
  select date_trunc('minute', e.sealed_at) as minute, count(*) as sealed, count(*) filter (where e.outcome = 'succeeded') as succeeded,
         count(*) filter (where e.outcome = 'partial') as partial, count(*) filter (where e.outcome not in ('succeeded', 'partial')) as failed,
         coalesce(sum(e.bytes), 0) as bytes
    from holdfast.snapshot_sealed e where e.sealed_at > statement_timestamp() - interval '15 minutes' group by 1 order by 1 desc;
comment on view holdfast.v_throughput is 'Snapshots sealed in each of the last fifteen minutes.';

-- What dashboards ask: search, a page of snapshots, numbers for Prometheus --------------------------------------------------

create or replace function holdfast.search_window(p_before uuid, p_window bigint) returns uuid language sql stable as $$
  select x.id from (select s.id from holdfast.snapshot s where p_before is null or s.id < p_before order by s.id desc limit p_window) x
    order by x.id limit 1
$$;
comment on function holdfast.search_window(uuid, bigint) is 'The oldest of the p_window snapshots older than p_before (NULL: the newest); NULL: there are none.';

create or replace function holdfast.search(p_text text, p_before uuid, p_window bigint, p_limit bigint)
  returns setof holdfast.v_snapshot language plpgsql stable as $$
-- Snapshots whose URL or title contains the text, or that have it as a tag, newest first. Looks at p_window snapshots older than
-- p_before only, so that each call is quick however large the collection is; search_window() says where the next one goes on.
-- A whole URL is found at once, wherever it is.
declare
  v_text constant text := lower(btrim(p_text));
  v_last uuid;
begin
  if v_text = '' then return; end if;
  if p_before is null then
    return query
      select v.* from (select s.id, s.crawl_id from holdfast.snapshot s
              where s.url_hash in (sha256(convert_to(btrim(p_text), 'UTF8')), sha256(convert_to(btrim(p_text) || '/', 'UTF8'))) limit p_limit) hit
        join holdfast.v_snapshot v on v.id = hit.id and v.crawl_id = hit.crawl_id order by v.id desc;
    if found then return; end if;
  end if;
  v_last := holdfast.search_window(p_before, p_window);
  if v_last is null then return; end if;
  return query
    with hit as materialized (
      select s.id, s.crawl_id from holdfast.snapshot s
        left join holdfast.snapshot_sealed e on e.snapshot_id = s.id and e.crawl_id = s.crawl_id
        where s.id >= v_last and (p_before is null or s.id < p_before)
          and (position(v_text in lower(s.url)) > 0 or position(v_text in lower(coalesce(nullif(e.title, ''), s.title))) > 0
               or p_text = any (coalesce(e.tags, s.tags)))
        order by s.id desc limit p_limit)
    select v.* from hit join holdfast.v_snapshot v on v.id = hit.id and v.crawl_id = hit.crawl_id order by v.id desc;
end $$;
comment on function holdfast.search(text, uuid, bigint, bigint) is 'Snapshots by URL, title or tag, among p_window of them, newest first.';

create or replace function holdfast.crawl_snapshots(p_crawl uuid, p_before uuid, p_limit bigint)
  returns table (id uuid, url text, title text, status text, outcome text, depth integer, sealed_at timestamptz, directory text, bytes bigint,
                 reason text, thumbnail text) language sql stable as $$
  -- One page of a crawl's snapshots, newest first, with the picture to show for each. The ids of a crawl are found by the rows of
  -- its own: of what is open by its queue, of what is sealed by the time.
  select v.id, v.url, v.title, v.status, v.outcome, v.depth, v.sealed_at, v.directory, v.bytes, v.reason,
         (select r.plugin || '/' || (f.file ->> 'path') from holdfast.archive_result r cross join lateral jsonb_array_elements(r.output_files) f(file)
            where r.snapshot_id = v.id and r.crawl_id = v.crawl_id and r.fence = v.fence and r.plugin = 'screenshot'
              and f.file ->> 'type' like 'image/%' limit 1)
    from (select s.id, s.crawl_id from holdfast.snapshot s
            where s.crawl_id = p_crawl and (p_before is null or s.id < p_before) order by s.id desc limit p_limit) page
    join holdfast.v_snapshot v on v.id = page.id and v.crawl_id = page.crawl_id
    order by v.id desc
$$;
comment on function holdfast.crawl_snapshots(uuid, uuid, bigint) is 'A page of a crawl''s snapshots, with thumbnails.';

create or replace function holdfast.metrics() returns table (name text, type text, help text, labels jsonb, value double precision) language sql stable as $$
  -- Numbers of the collection, as Prometheus wants them named. Counters of the database, not of one process.
  select 'holdfast_nodes', 'gauge', 'Worker nodes whose lease holds.', '{}'::jsonb, s.nodes::double precision from holdfast.v_status s
  union all select 'holdfast_slots', 'gauge', 'Snapshots that these nodes can work on at once.', '{}', s.slots from holdfast.v_status s
  union all select 'holdfast_snapshots_held', 'gauge', 'Snapshots in work.', '{}', s.snapshots_held from holdfast.v_status s
  union all select 'holdfast_hooks_running', 'gauge', 'Hooks that run.', '{}', s.hooks_running from holdfast.v_status s
  union all
  select 'holdfast_crawls', 'gauge', 'Open crawls by state.', jsonb_build_object('state', w.state), count(c.id)
    from (values ('queued'), ('started'), ('paused')) w(state) left join holdfast.crawl c on c.status = w.state and c.status <> 'sealed' group by w.state
  union all
  select 'holdfast_queue_depth', 'gauge', 'What is not done yet, by kind.', '{"kind": "snapshot"}',
         coalesce(sum(c.snapshots_open), 0) from holdfast.crawl c where c.status <> 'sealed'
  union all
  select 'holdfast_queue_depth', 'gauge', 'What is not done yet, by kind.', '{"kind": "seed"}',
         coalesce(sum(c.seeds_left), 0) from holdfast.crawl c where c.status <> 'sealed'
  union all
  select 'holdfast_queue_age_seconds', 'gauge', 'How long the oldest thing that is due has been due, by kind.', '{"kind": "crawl"}',
         coalesce(greatest(extract(epoch from statement_timestamp() - min(c.retry_at)), 0), 0) from holdfast.crawl c
    where c.owner_id is null and c.retry_at <= statement_timestamp() and c.status in ('queued', 'started')
  union all
  select 'holdfast_queue_age_seconds', 'gauge', 'How long the oldest thing that is due has been due, by kind.', '{"kind": "snapshot"}',
         coalesce(greatest(extract(epoch from statement_timestamp() - min(d.retry_at)), 0), 0)
    from (select q.crawl_id from holdfast.crawl_queue q where q.ready_at <= statement_timestamp() order by q.ready_at limit 200) w
    cross join lateral (
      (select s.retry_at from holdfast.snapshot_queue s
         where s.crawl_id = w.crawl_id and s.owner_id is null and not s.lane and s.retry_at <= statement_timestamp() order by s.retry_at limit 1)
      union all
      (select greatest(s.retry_at, l.next_at) from (select * from holdfast.crawl_lane l where l.crawl_id = w.crawl_id and l.next_at <= statement_timestamp() order by l.next_at limit 1) l
         cross join lateral (select q.retry_at from holdfast.snapshot_queue q
                               where q.crawl_id = l.crawl_id and q.host = l.host and q.owner_id is null and q.lane and q.retry_at <= statement_timestamp() order by q.retry_at limit 1) s)) d
  union all
  select 'holdfast_queue_age_seconds', 'gauge', 'How long the oldest thing that is due has been due, by kind.', '{"kind": "delivery"}',
         coalesce(greatest(extract(epoch from statement_timestamp() - min(d.retry_at)), 0), 0) from holdfast.webhook w
    cross join lateral (select o.retry_at from holdfast.delivery o where o.webhook = w.name and o.status = 'waiting' and o.retry_at <= statement_timestamp() order by o.retry_at limit 1) d
    where w.enabled
  union all
  select 'holdfast_queue_depth', 'gauge', 'What is not done yet, by kind.', '{"kind": "crawl"}', count(*) from holdfast.crawl c where c.status <> 'sealed'
  union all
  select 'holdfast_queue_depth', 'gauge', 'What is not done yet, by kind.', '{"kind": "delivery"}', coalesce(sum(w.waiting), 0) from holdfast.v_webhook w
  union all
  select 'holdfast_deliveries_total', 'counter', 'Deliveries to webhooks that have ended, by outcome.', jsonb_build_object('webhook', w.name, 'outcome', o.outcome), o.value
    from holdfast.webhook w cross join lateral (values ('delivered', w.delivered), ('given_up', w.given_up)) o(outcome, value)
  union all
  select 'holdfast_nodes_lost_total', 'counter', 'Nodes and runners whose lease has lapsed.', '{}', t.value from holdfast.tally t where t.name = 'nodes_lost'
  union all
  select 'holdfast_takeovers_total', 'counter', 'Snapshots taken from nodes that were lost, for others.', '{}', t.value from holdfast.tally t where t.name = 'takeovers'
  union all
  select 'holdfast_runner_leads', 'gauge', 'Whether a runner with a good lease leads.', '{}',
         (exists (select from holdfast.v_runner r where r.state = 'leads' and r.healthy))::integer
  union all
  select 'holdfast_duty_failing', 'gauge', 'Whether the last run of a duty failed.', jsonb_build_object('duty', d.name), (d.error is not null)::integer from holdfast.duty d
  union all
  select 'holdfast_duty_runs_total', 'counter', 'Runs of a duty.', jsonb_build_object('duty', d.name), d.runs from holdfast.duty d
  union all
  select 'holdfast_recent_snapshots', 'gauge', 'Snapshots sealed in the last minute, by outcome.', jsonb_build_object('outcome', o.outcome), coalesce(e.count, 0)
    from (values ('succeeded'), ('partial'), ('failed'), ('refused'), ('quarantined'), ('cancelled')) o(outcome)
    left join (select s.outcome, count(*) as count from holdfast.snapshot_sealed s where s.sealed_at > statement_timestamp() - interval '1 minute' group by 1) e
      on e.outcome = o.outcome
  union all
  select 'holdfast_hosts_held_back', 'gauge', 'Web sites that are paused or left in peace.', '{}', count(*) from holdfast.host h where h.paused or h.backoff_until > statement_timestamp()
$$;
comment on function holdfast.metrics() is 'Numbers of the whole collection for Prometheus: one row a sample.';

create or replace function holdfast.node_metrics(p_hostname text, p_pid integer)
  returns table (name text, type text, help text, labels jsonb, value double precision) language sql stable as $$
  -- Numbers of one node for its own endpoint. No row: no node with this pid runs on that machine.
  with me as (
    select p.* from holdfast.process p join holdfast.machine m on m.id = p.machine_id
      where p.status = 'running' and p.process_type = 'worker' and p.lease_until > statement_timestamp() and p.pid = p_pid and m.hostname = p_hostname
      order by p.started_at desc limit 1)
  select 'holdfast_node_lease_left_seconds', 'gauge', 'How long its work is still covered.', '{}'::jsonb, extract(epoch from me.lease_until - statement_timestamp())::double precision from me
  union all select 'holdfast_node_beat_age_seconds', 'gauge', 'How long ago it last renewed its lease.', '{}', extract(epoch from statement_timestamp() - me.beat_at) from me
  union all select 'holdfast_node_slots', 'gauge', 'Snapshots it can work on at once.', '{}', me.slots from me
  union all select 'holdfast_node_snapshots_held', 'gauge', 'Snapshots it has.', '{}', count(q.snapshot_id) from me left join holdfast.snapshot_queue q on q.owner_id = me.id group by me.id
  union all select 'holdfast_node_hooks_running', 'gauge', 'Hooks that run below it, by plugin.', jsonb_build_object('plugin', r.plugin), count(*)
    from me join holdfast.archive_result r on r.process_id = me.id and r.ended_at is null group by r.plugin
  union all select 'holdfast_node_snapshots_sealed_total', 'counter', 'Snapshots it has sealed since it joined.', '{}', coalesce((me.stats ->> 'sealed')::double precision, 0) from me
  union all select 'holdfast_node_free_bytes', 'gauge', 'Space left in its work directory.', '{}', (me.stats ->> 'free_bytes')::double precision from me where me.stats ->> 'free_bytes' is not null
  union all select 'holdfast_node_claiming', 'gauge', 'Whether it takes work: 0 when it drains, is paused or says why not.', '{}',
    (not me.draining and me.request is null and me.paused_at is null and me.stats ->> 'not_claiming' is null)::integer from me
$$;
comment on function holdfast.node_metrics(text, integer) is 'Numbers of one node for Prometheus: one row a sample.';

create or replace function holdfast.reference() returns table (kind text, name text, about text, part text, type text, part_about text) language sql stable as $$
  -- What people read and call, with its comments: of a view one row a column, which says what the column of the table behind it says if
  -- it has no comment of its own.
  (with shown as (
     select c.oid, c.relname::text as view, a.attnum, a.attname::text as part, format_type(a.atttypid, a.atttypmod) as type, col_description(c.oid, a.attnum) as own
       from pg_catalog.pg_class c join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum > 0
       where c.relnamespace = 'holdfast'::regnamespace and c.relkind = 'v')
   select 'view', s.view, obj_description(s.oid, 'pg_class'), s.part, s.type,
          coalesce(s.own, (select min(col_description(t.oid, b.attnum))
             from (select distinct d.refobjid, d.refobjsubid from pg_catalog.pg_depend d join pg_catalog.pg_rewrite r on r.oid = d.objid
                     where r.ev_class = s.oid and d.classid = 'pg_catalog.pg_rewrite'::regclass and d.refclassid = 'pg_catalog.pg_class'::regclass and d.refobjsubid > 0) d
             join pg_catalog.pg_class t on t.oid = d.refobjid
             join pg_catalog.pg_attribute b on b.attrelid = t.oid and b.attnum = d.refobjsubid
             where b.attname = s.part having count(distinct col_description(t.oid, b.attnum)) = 1))
     from shown s order by s.view collate "C", s.attnum)
  union all
  (select 'function', f.name, f.about, null, min(f.role), null
     from (select p.proname || '(' || pg_get_function_identity_arguments(p.oid) || ')' as name, obj_description(p.oid, 'pg_proc') as about,
                  case r.rolname when 'holdfast_reader' then 'everybody' else 'operator' end as role
             from pg_catalog.pg_proc p join pg_catalog.pg_roles r on r.rolname in ('holdfast_reader', 'holdfast_operator')
             where p.pronamespace = 'holdfast'::regnamespace and has_function_privilege(r.oid, p.oid, 'execute') and p.proname not like 'list\_%') f
     group by f.name, f.about order by f.name collate "C")
$$;
comment on function holdfast.reference() is 'The views and the functions for people, with their comments: holdfast inspect reference views.';
