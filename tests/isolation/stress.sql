-- Random calls from many sessions: `run.py --stress SECONDS` lets 16 sessions call stress.step() as
-- fast as they can. A step is one call, in one transaction, by a worker that may have lapsed
-- without knowing it. Afterwards stress.drain() finishes everything that is open. What must hold:
-- check_invariants() is empty, everything ends, and deadlocks are rare.
create schema stress;

create table stress.client (client integer primary key, worker uuid not null);
create table stress.tally (
  client integer, action text, answer text, times bigint not null default 1,
  primary key (client, action, answer)
);
update holdfast.collection
  set retry_base = '10 milliseconds', retry_max = '50 milliseconds', max_attempts = 3;

create function stress.join(p_client integer) returns uuid language plpgsql as $$
declare
  v_worker uuid := gen_random_uuid();
begin
  perform holdfast.process_join(v_worker, '{"machine": {"id": "machine", "hostname": "stress"}, "boot_id": "boot",
    "start_ticks": 1, "process_type": "worker", "worker_type": "snapshot", "version": "1", "slots": 8}'
    || jsonb_build_object('pid', p_client, 'label', 'client ' || p_client), '5 seconds');
  insert into stress.client values (p_client, v_worker)
    on conflict (client) do update set worker = excluded.worker;
  return v_worker;
end $$;

-- What is chosen at random ------------------------------------------------------------------------

create function stress.any_of(p_choices text[]) returns text language sql volatile as $$
  select p_choices[1 + floor(random() * cardinality(p_choices))]
$$;
create function stress.number(p_most integer) returns integer language sql volatile as $$
  select floor(random() * (p_most + 1))::integer
$$;
create function stress.host() returns text language sql volatile as $$
  select 'stress' || stress.number(4) || '.test'
$$;
create function stress.url() returns text language sql volatile as $$
  select 'https://' || stress.host() || '/' || stress.number(99)
$$;
create function stress.crawl(p_paused boolean) returns uuid language sql volatile as $$
  select id from holdfast.crawl where status <> 'sealed' and (status = 'paused' or not p_paused)
    order by random() limit 1
$$;

create function stress.page(p_id uuid, p_crawl uuid, p_fence bigint) returns jsonb
  language sql volatile as $$
  -- A page as a worker reports it, with any ending.
  select jsonb_build_object('snapshot', p_id, 'crawl', p_crawl, 'fence', p_fence,
      'reason', 'a reason',
      'links', (select coalesce(jsonb_agg(jsonb_build_object('url', stress.url())), '[]')
                  from generate_series(1, stress.number(5))),
      'results', (select coalesce(jsonb_agg(jsonb_build_object('plugin', 'plugin',
                           'hook', 'hook' || n, 'status', 'succeeded', 'output_bytes', 5)), '[]')
                    from generate_series(1, stress.number(2)) n))
    || case e.ending
         when 'sealed' then jsonb_build_object('outcome', 'succeeded', 'bytes', 10, 'files', 1,
           'manifest', 'sha', 'directory', format('2026/01/stress.test/%s/a%s', p_id, p_fence))
         when 'refused' then jsonb_build_object('outcome', 'refused')
         when 'failed' then jsonb_build_object('ending', 'released', 'spend', true)
         else jsonb_build_object('ending', e.ending, 'spend', false,
                                 'delay_ms', stress.number(50)) end
    from (select stress.any_of('{sealed, sealed, sealed, sealed, sealed, refused, failed, released,
                                 interrupted}') as ending) e
$$;

create function stress.pages(p_worker uuid) returns jsonb language sql volatile as $$
  -- Some of the worker's own pages; now and then another worker's, or with an old fence.
  select coalesce(jsonb_agg(stress.page(q.snapshot_id, q.crawl_id,
                                        q.fence - (random() < 0.02)::integer)), '[]')
    from (select * from holdfast.snapshot_queue q where q.owner_id = p_worker or random() < 0.001
            order by random() limit stress.number(5)) q
$$;

-- What a session does -----------------------------------------------------------------------------

create function stress.turn(p_worker uuid, p_pages jsonb) returns text language sql volatile as $$
  select case when bool_or(t.what = 'claimed') then 'claimed' else 'nothing' end
    from holdfast.worker_turn(p_worker, p_pages, 1 + stress.number(7), '{}', false,
                              random() < 0.1, 0, 20) t
$$;

create function stress.add() returns text language plpgsql as $$
-- A bounded amount of open work, so that crawls also end.
declare
  v_id constant uuid := gen_random_uuid();
begin
  if (select count(*) from holdfast.crawl where status <> 'sealed') >= 20 then
    return 'enough';
  end if;
  perform holdfast.crawl_add(v_id, jsonb_strip_nulls(jsonb_build_object(
    'max_depth', stress.number(2), 'max_urls', stress.number(2) * 20,
    'max_bytes', stress.number(2) * 200, 'max_parallel', nullif(stress.number(3), 0),
    'max_time', case when random() < 0.2 then '2 seconds' end, 'priority', stress.number(4) - 2,
    'max_snapshot_bytes', case when random() < 0.1 then 7 end, 'overwrite', random() < 0.2,
    'host_parallel', nullif(stress.number(7), 0))));
  perform holdfast.crawl_add_seeds(v_id,
    (select array_agg(stress.url()) from generate_series(0, stress.number(30))), '{}', null);
  return 'added';
end $$;

create function stress.expand(p_worker uuid) returns text language plpgsql as $$
-- The crawl that the worker has claimed; now and then another worker's.
declare
  v_crawl record;
begin
  select c.id, c.fence into v_crawl from holdfast.crawl c
    where c.owner_id = p_worker or (random() < 0.05 and c.owner_id is not null)
    order by random() limit 1;
  if not found then
    return (select 'claimed' from holdfast.crawl_claim(p_worker, '1 minute'));
  end if;
  perform holdfast.crawl_expand(p_worker, v_crawl.id, v_crawl.fence, 1 + stress.number(10));
  return 'expanded';
end $$;

create function stress.command() returns text language plpgsql as $$
declare
  v_order constant text := stress.any_of('{pause crawl, resume crawl, resume crawl, cancel crawl,
    deny, allow, pause page, resume page, resume page, cancel page, host, host, pause host,
    resume host, resume host, forget host, rate limit, pause worker, resume worker, resume worker,
    pause all, resume all, resume all, priority, robots}');
  v_resume constant boolean := starts_with(v_order, 'resume');
  v_crawl constant uuid := stress.crawl(v_resume);
  v_page constant uuid := (select snapshot_id from holdfast.snapshot_queue
                             where status = 'paused' or not v_resume order by random() limit 1);
  v_host constant text := coalesce((select name from holdfast.host
                                      where v_resume and paused order by random() limit 1),
                                   stress.host());
  v_worker constant uuid := coalesce(
    (select id from holdfast.process
       where v_resume and paused_at is not null and status = 'running' limit 1),
    (select worker from stress.client order by random() limit 1));
begin
  return v_order || ' ' || case v_order
    when 'pause crawl' then holdfast.crawl_pause(v_crawl, 'stress', '')::text
    when 'resume crawl' then holdfast.crawl_resume(v_crawl, 'stress', '')::text
    when 'cancel crawl' then
      sign(case when random() < 0.2 then holdfast.crawl_cancel(v_crawl, 'stress', '') end)::text
    when 'deny' then
      holdfast.crawl_scope(v_crawl, '{"deny": ["stress1.test"]}', '{}', 'stress')::text
    when 'allow' then
      holdfast.crawl_scope(v_crawl, '{}', '{"deny": ["stress1.test"]}', 'stress')::text
    when 'pause page' then holdfast.snapshot_command(v_page, 'pause', 'stress', '')::text
    when 'resume page' then holdfast.snapshot_command(v_page, 'resume', 'stress', '')::text
    when 'cancel page' then holdfast.snapshot_command(v_page, 'cancel', 'stress', '')::text
    when 'host' then
      holdfast.host_set(v_host, random() * interval '10 milliseconds', stress.number(3),
                        'stress')::text
    when 'pause host' then holdfast.host_pause(v_host, 'stress', '')::text
    when 'resume host' then holdfast.host_resume(v_host, 'stress', '')::text
    when 'forget host' then holdfast.host_forget(v_host, 'stress')::text
    when 'rate limit' then
      left(holdfast.host_rate_limited(v_host, 429, '10 milliseconds', 'stress')::text, 0)
    when 'pause worker' then holdfast.worker_pause(v_worker, 'stress', '')::text
    when 'resume worker' then holdfast.worker_resume(v_worker, 'stress', '')::text
    when 'pause all' then
      case when random() < 0.1 then holdfast.collection_pause('stress', '') end::text
    when 'resume all' then holdfast.collection_resume('stress', '')::text
    when 'priority' then holdfast.crawl_priority(v_crawl, stress.number(4) - 2, 'stress')::text
    when 'robots' then holdfast.robots_put(v_worker, 'https://' || v_host, v_host, 200, '', null,
                                           '5 milliseconds', '1 second')::text
  end;
end $$;

create function stress.act(p_action text, p_worker uuid) returns text language plpgsql as $$
begin
  case p_action
    when 'turn' then return stress.turn(p_worker, stress.pages(p_worker));
    when 'claim' then return stress.turn(p_worker, '[]');
    when 'finish' then
      return (select min(f.answer) from holdfast.finish(p_worker, stress.pages(p_worker)) f);
    when 'hooks' then
      perform holdfast.worker_hooks(p_worker, (
        select coalesce(jsonb_agg(jsonb_build_object('snapshot', q.snapshot_id, 'crawl', q.crawl_id,
                 'fence', q.fence, 'plugin', 'plugin', 'hook', 'hook',
                 'started_at', clock_timestamp())), '[]')
          from holdfast.snapshot_queue q where q.owner_id = p_worker));
    when 'heartbeat' then
      return (
        select max(b.kind) from holdfast.worker_heartbeat(p_worker, '5 seconds',
          array(select q.snapshot_id from holdfast.snapshot_queue q where q.owner_id = p_worker),
          array(select q.fence from holdfast.snapshot_queue q where q.owner_id = p_worker),
          '{}') b);
    when 'add' then return stress.add();
    when 'expand' then return stress.expand(p_worker);
    when 'command' then return stress.command();
    when 'lapse' then return sign(holdfast.lapse_process());
    when 'robots' then
      perform holdfast.robots_get(p_worker, gen_random_uuid(), gen_random_uuid(),
                                  'https://' || stress.host());
    when 'session' then
      perform holdfast.session_open(p_worker, gen_random_uuid(), c.id, 'directory')
        from stress.crawl(false) c(id)
        where c.id is not null and not exists (select from holdfast.session s where s.crawl_id = c.id
                            and s.process_id = p_worker and s.ended_at is null);
    when 'die' then
      update holdfast.process set lease_until = clock_timestamp()
        where id = p_worker and status = 'running';
    when 'leave' then perform holdfast.process_leave(p_worker, 0, 'done');
  end case;
  return 'done';
exception when sqlstate 'HF002' or sqlstate 'HF003' or sqlstate 'HF004' or lock_not_available then
  return sqlstate;
end $$;

create function stress.step(p_client integer) returns void language plpgsql as $$
declare
  v_worker uuid := (select worker from stress.client where client = p_client);
  v_action text := stress.any_of('{turn, turn, turn, turn, turn, turn, turn, turn, turn, claim,
    claim, finish, finish, hooks, hooks, lapse, heartbeat, heartbeat, add, expand, expand, expand, command,
    command, robots, session, die, leave}');
  v_answer text;
begin
  if not exists (select from holdfast.process where id = v_worker and status = 'running') then
    perform stress.join(p_client);
    return;
  end if;
  if v_action in ('die', 'leave', 'session') and random() < 0.9 then v_action := 'turn'; end if;
  v_answer := stress.act(v_action, v_worker);
  insert into stress.tally as t values (p_client, v_action, coalesce(v_answer, 'nothing'))
    on conflict (client, action, answer) do update set times = t.times + 1;
end $$;

-- Afterwards --------------------------------------------------------------------------------------

create function stress.open_work() returns text language sql as $$
  select coalesce(string_agg(line, E'\n'), 'no row is in a queue')
    from (
      select format('%s pages %s, host %s, due in %s to %s: %s', count(*), q.status, q.host,
                    min(q.retry_at) - clock_timestamp(), max(q.retry_at) - clock_timestamp(),
                    q.reason) as line
        from holdfast.snapshot_queue q group by q.status, q.host, q.reason
      union all
      select format('%s crawls %s, seeds left %s, due in %s', count(*), c.status, sum(c.seeds_left),
                    min(w.ready_at) - clock_timestamp())
        from holdfast.crawl c left join holdfast.crawl_queue w on w.crawl_id = c.id
       where c.status <> 'sealed' group by c.status
    ) lines
$$;

create procedure stress.drain() language plpgsql as $$
-- Everything is resumed, every worker of before lapses, and one worker finishes what is open. A
-- lost wake shows: nothing ends for five seconds and a hundred turns although something is open.
declare
  v_worker uuid;
  v_one record;
  v_left bigint;
  v_before bigint;
  v_since timestamptz := clock_timestamp();
  v_turns integer := 0; -- since then
begin
  perform holdfast.collection_resume('stress', '');
  for v_one in select name from holdfast.host loop
    perform holdfast.host_resume(v_one.name, 'stress', '');
    perform holdfast.host_set(v_one.name, '0', 2, 'stress');
  end loop;
  for v_one in select id from holdfast.crawl where status = 'paused' loop
    perform holdfast.crawl_resume(v_one.id, 'stress', '');
  end loop;
  for v_one in select snapshot_id from holdfast.snapshot_queue where status = 'paused' loop
    perform holdfast.snapshot_command(v_one.snapshot_id, 'resume', 'stress', '');
  end loop;
  update holdfast.process set lease_until = clock_timestamp() where status = 'running';
  v_worker := stress.join(0);
  perform holdfast.worker_resume(v_worker, 'stress', ''); -- it inherits the pause of the one before
  commit;
  loop
    perform holdfast.worker_heartbeat(v_worker, '1 hour', '{}', '{}', '{}');
    perform stress.act('expand', v_worker);
    commit;
    perform holdfast.worker_turn(v_worker, (
      select coalesce(jsonb_agg(stress.page(q.snapshot_id, q.crawl_id, q.fence)), '[]')
        from holdfast.snapshot_queue q where q.owner_id = v_worker), 20, '{}', false, false, 0, 20);
    commit;
    v_left := (select sum(1 + snapshots_open + seeds_left) from holdfast.crawl
                 where status <> 'sealed');
    exit when v_left is null;
    if v_left is distinct from v_before then
      v_since := clock_timestamp();
      v_turns := 0;
    end if;
    v_before := v_left;
    v_turns := v_turns + 1;
    if v_turns > 100 and v_since < clock_timestamp() - interval '5 seconds' then
      raise exception 'nothing has ended for 5 seconds; % crawls, pages and seeds are open', v_left
        using detail = stress.open_work();
    end if;
    perform pg_sleep(0.01);
  end loop;
end $$;
