-- Everything at once: `run.py --stress SECONDS` lets 16 sessions call stress.step() as fast as they can. A step is one random call, as
-- one transaction, by a node that may be dead without knowing it. What must hold: no deadlock, and check_invariants() stays empty.
create schema stress;

create table stress.client (client integer primary key, node uuid not null);
create table stress.tally (client integer, action text, answer text, times bigint not null default 1, primary key (client, action, answer));

create function stress.join(p_client integer) returns uuid language plpgsql as $$
declare
  v_node uuid := gen_random_uuid();
begin
  perform holdfast.node_join(v_node, '{"id": "machine", "hostname": "stress"}', 'boot', p_client, 1, null, 'worker', 'snapshot', 'client ' || p_client, '1', 8, interval '5 seconds');
  insert into stress.client values (p_client, v_node) on conflict (client) do update set node = excluded.node;
  return v_node;
end $$;

create function stress.urls(n integer) returns text[] language sql volatile as $$
  select coalesce(array_agg('https://stress' || floor(random() * 5) || '.test/' || floor(random() * 100)), '{}') from generate_series(1, n)
$$;
create function stress.hosts(urls text[]) returns text[] language sql immutable as $$ select coalesce(array_agg(split_part(u, '/', 3)), '{}') from unnest(urls) u $$;

create function stress.act(p_client integer, p_action text, p_node uuid) returns text language plpgsql as $$
declare
  v_held record;
  v_urls text[] := stress.urls((random() * 6)::integer);
  v_id uuid;
begin
  -- A snapshot of our own; now and then somebody else's, or with a fence that is out of date.
  select q.snapshot_id, q.crawl_id, q.fence - (random() < 0.03)::integer as fence, q.status into v_held from holdfast.snapshot_queue q
    where (q.owner_id = p_node or random() < 0.002) order by random() limit 1;
  case p_action
    when 'claim' then
      if random() < 0.4 then return (select sign(count(*)) from holdfast.work_take(p_node, (1 + random() * 7)::integer, '{}', false, 'oldest', 0, 20)); end if;
      if random() < 0.5 then return (select sign(count(*)) from holdfast.snapshot_take(p_node, (1 + random() * 7)::integer, '{}', false)); end if;
      return (select sign(count(*)) from holdfast.snapshot_claim(p_node, (1 + random() * 7)::integer, '{}'));
    when 'start' then perform holdfast.snapshot_start(p_node, v_held.snapshot_id, v_held.crawl_id, v_held.fence);
    when 'seal' then
      return (select crawl_sealed from holdfast.snapshot_seal(p_node, v_held.snapshot_id, v_held.crawl_id, v_held.fence, case when v_held.status = 'queued' then 'refused' else 'succeeded' end,
        'a reason', 'directory', 'manifest', 10, 1, 'title', '{tag}', v_urls, stress.hosts(v_urls), '{}'));
    when 'release' then
      perform holdfast.snapshot_release(p_node, v_held.snapshot_id, v_held.crawl_id, v_held.fence, 'released', random() * interval '100 milliseconds', 'put back', random() < 0.5);
    when 'hook' then perform holdfast.result_start(p_node, v_held.snapshot_id, v_held.crawl_id, v_held.fence, 'plugin', 'hook' || floor(random() * 2), 1, 1, 1, false);
    when 'finish' then
      perform holdfast.result_finish(p_node, v_held.snapshot_id, v_held.crawl_id, v_held.fence, r.plugin, r.hook_name, 'succeeded', '{}')
        from holdfast.archive_result r where r.snapshot_id = v_held.snapshot_id and r.fence = v_held.fence and r.ended_at is null;
    when 'die' then update holdfast.process set lease_until = clock_timestamp() where id = p_node and status = 'running';
    when 'lapse' then return sign(holdfast.lapse_nodes());
    when 'beat' then return (select max(b.kind) from holdfast.node_beat(p_node, interval '5 seconds', array[v_held.snapshot_id], array[v_held.fence], '{}') b);
    when 'add' then
      -- A bounded amount of open work, so that crawls also end.
      if (select count(*) from holdfast.crawl where status <> 'sealed') >= 12 then return 'enough'; end if;
      v_id := gen_random_uuid();
      v_urls := stress.urls((random() * 30)::integer);
      perform holdfast.crawl_add(v_id, jsonb_strip_nulls(jsonb_build_object('max_depth', floor(random() * 3), 'max_urls', floor(random() * 3) * 20,
        'max_bytes', floor(random() * 3) * 200, 'max_parallel', nullif(floor(random() * 4), 0), 'priority', floor(random() * 5) - 2,
        'max_time', case when random() < 0.2 then '2 seconds' end, 'host_parallel', nullif(floor(random() * 3), 0))));
      perform holdfast.crawl_add_seeds(v_id, v_urls, stress.hosts(v_urls), '{}', null);
    when 'claim_crawl' then return (select sign(count(*)) from holdfast.crawl_claim(p_node, interval '1 minute'));
    when 'expand' then
      select c.id, c.fence into v_held from holdfast.crawl c where c.owner_id = p_node or (random() < 0.05 and c.owner_id is not null) order by random() limit 1;
      if found then perform holdfast.crawl_expand(p_node, v_held.id, v_held.fence, (1 + random() * 10)::integer); end if;
    when 'leave' then perform holdfast.node_leave(p_node, 0, 'done');
    when 'order' then
      select c.id into v_id from holdfast.crawl c where c.status <> 'sealed' order by random() limit 1;
      if not found then return 'nothing open'; end if;
      case floor(random() * 6)
        when 0 then return 'pause ' || holdfast.crawl_pause(v_id, 'stress', '');
        when 1, 2 then return 'resume ' || holdfast.crawl_resume(v_id, 'stress', '');
        when 3 then return 'cancel ' || sign(case when random() < 0.3 then holdfast.crawl_cancel(v_id, 'stress', '') end);
        when 4 then return 'scope ' || holdfast.crawl_scope(v_id, '{"deny": ["stress1.test"]}', '{}', 'stress');
        else return 'scope ' || holdfast.crawl_scope(v_id, '{}', '{"deny": ["stress1.test"]}', 'stress');
      end case;
    when 'one' then
      return (select holdfast.snapshot_order(q.snapshot_id, (array['pause', 'resume', 'resume', 'cancel'])[1 + floor(random() * 4)], 'stress', '')
                from (select snapshot_id from holdfast.snapshot_queue order by random() limit 1) q);
    when 'host' then
      v_urls[1] := 'stress' || floor(random() * 5) || '.test';
      case floor(random() * 6)
        when 0 then perform holdfast.host_set(v_urls[1], random() * interval '20 milliseconds', floor(random() * 4)::integer, 'stress');
        when 1 then return 'pause ' || holdfast.host_pause(v_urls[1], 'stress', '');
        when 2, 3 then return 'resume ' || holdfast.host_resume(v_urls[1], 'stress', '');
        when 4 then return 'forget ' || holdfast.host_forget(v_urls[1], 'stress');
        else perform holdfast.host_rate_limited(v_urls[1], 429, random() * interval '20 milliseconds', 'stress');
      end case;
    when 'all' then
      case floor(random() * 4)
        when 0 then return 'pause ' || holdfast.node_pause((select node from stress.client order by random() limit 1), 'stress', '');
        when 1 then return 'pause all ' || case when random() < 0.1 then holdfast.collection_pause('stress', '') end;
        when 2 then return 'resume all ' || holdfast.collection_resume('stress', '');
        else perform holdfast.node_resume(id, 'stress', '') from holdfast.process where paused_at is not null;
      end case;
  end case;
  return 'done';
exception when sqlstate 'HF001' or sqlstate 'HF002' or sqlstate 'HF003' or sqlstate 'HF004' then
  return sqlstate;
end $$;

create function stress.step(p_client integer) returns void language plpgsql as $$
declare
  v_node uuid := (select node from stress.client where client = p_client);
  v_action constant text := (array['claim', 'claim', 'claim', 'claim', 'start', 'start', 'start', 'start', 'seal', 'seal', 'seal', 'seal', 'seal', 'release', 'hook', 'finish', 'finish',
    'lapse', 'beat', 'add', 'claim_crawl', 'claim_crawl', 'expand', 'expand', 'expand', 'die', 'leave', 'order', 'one', 'host', 'all', 'all'])[1 + floor(random() * 32)];
  v_answer text;
begin
  if v_node is null or not exists (select from holdfast.process where id = v_node and status = 'running') then
    perform stress.join(p_client);
    return;
  end if;
  v_answer := stress.act(p_client, case when v_action in ('die', 'leave') and random() < 0.9 then 'claim' else v_action end, v_node);
  insert into stress.tally as t values (p_client, v_action, coalesce(v_answer, 'nothing')) on conflict (client, action, answer) do update set times = t.times + 1;
end $$;
