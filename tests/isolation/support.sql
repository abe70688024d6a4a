-- Shared by all specs: short names for fixed ids, a state to start from, and one procedure for each
-- call of a worker. A procedure makes the call that it is named after and reports the answer in a
-- notice.
create schema race;

-- Names: worker 1, crawl 1, page 1 (https://1.race.test/1; https://race.test/1 after race.one_host()) ---

create function race.worker(n integer) returns uuid language sql immutable as $$
  select ('a0000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid
$$;
create function race.crawl(n integer) returns uuid language sql immutable as $$
  select ('c0000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid
$$;
create table race.place (hosts text not null);
insert into race.place values ('many');
-- All pages are of one host, so of one lane: what one claim looks at, no other sees until it has committed.
create procedure race.one_host() language sql as $$ update race.place set hosts = 'one' $$;
create function race.url(n integer) returns text language sql stable as $$
  select 'https://' || case hosts when 'one' then '' else n || '.' end || 'race.test/' || n from race.place
$$;
-- Lists are text, because a step of a spec must not hold a brace: '1 2 3', 'max_depth 1, robots 1'.
create function race.list(p_list text) returns integer[] language sql immutable as $$
  select string_to_array(p_list, ' ')::integer[]
$$;
create function race.urls(p_list text) returns text[] language sql stable as $$
  select coalesce(array_agg(race.url(n) order by o), '{}')
    from unnest(race.list(p_list)) with ordinality u(n, o)
$$;
create function race.settings(p_list text) returns jsonb language sql immutable as $$
  select coalesce(jsonb_object_agg(split_part(s, ' ', 1), split_part(s, ' ', 2)), '{}')
    from unnest(string_to_array(p_list, ', ')) s
$$;
create function race.page_id(n integer) returns uuid language sql stable as $$
  select coalesce((select id from holdfast.snapshot where url = race.url(n)), race.worker(0))
$$;
-- NULL of NULL.
create function race.page_ids(p_list text) returns uuid[] language sql stable as $$
  select array_agg(race.page_id(n)) from unnest(race.list(p_list)) n
$$;
create function race.crawl_of(n integer) returns uuid language sql stable as $$
  select coalesce((select crawl_id from holdfast.snapshot where url = race.url(n)), race.crawl(1))
$$;
create function race.number(url text) returns text language sql immutable as $$
  select substring(url from '[0-9]+$')
$$;
create function race.page_of(id uuid) returns text language sql stable as $$
  select race.number(url) from holdfast.snapshot s where s.id = page_of.id
$$;

create function race.tell(p_worker integer, p_answer text) returns void language plpgsql as $$
begin
  raise notice 'worker %: %', p_worker, coalesce(p_answer, 'nothing');
end $$;

-- Setting the stage -------------------------------------------------------------------------------

-- The tables that a race may fill, and what refers to them. To delete a few rows is much quicker than
-- to truncate so many tables.
create table race.emptied as
  with recursive emptied (name) as (
    select unnest('{machine,crawl,crawl_seed,snapshot,snapshot_queue,attempt,archive_result,
        snapshot_sealed,running_hook,capture,event,host,robots,control,purge,kept_capture,superseded,
        crawl_page_stale,webhook}'::name[])
      union
      select c.relname from emptied e
        join pg_constraint k on k.confrelid = ('holdfast.' || e.name)::regclass and k.contype = 'f'
        join pg_class c on c.oid = k.conrelid and not c.relispartition
  )
  select name from emptied;

-- Workers 1 to 3, and nothing else.
create procedure race.fresh() language plpgsql as $$
declare
  v_table name;
begin
  set local session_replication_role = replica;
  for v_table in select name from race.emptied loop
    execute format('delete from holdfast.%I', v_table);
  end loop;
  set local session_replication_role = origin;
  update holdfast.collection set paused_at = null, paused_by = null;
  update race.place set hosts = 'many';
  perform holdfast.process_join(race.worker(n), '{"machine": {"id": "machine", "hostname": "race"},
      "boot_id": "boot", "process_type": "worker", "worker_type": "snapshot", "version": "1", "slots": 8}'
      || jsonb_build_object('pid', n, 'start_ticks', n, 'label', 'worker ' || n), '1 hour')
    from generate_series(1, 3) n;
end $$;

-- A crawl that is not expanded yet.
create procedure race.queued(crawl integer, seeds text, settings text default '')
  language plpgsql as $$
begin
  perform holdfast.crawl_add(race.crawl(crawl), '{"host_parallel": 4}' || race.settings(settings));
  perform holdfast.crawl_add_seeds(race.crawl(crawl), race.urls(seeds), '{}', null);
end $$;

-- A crawl whose seeds have become pages.
create procedure race.started(crawl integer, pages text, settings text default '')
  language plpgsql as $$
begin
  call race.queued(crawl, pages, settings);
  perform holdfast.crawl_expand(race.worker(3), c.crawl_id, c.fence, 100)
    from holdfast.crawl_claim(race.worker(3), '1 minute') c;
  -- A claim walks the crawls from a random place. With these numbers it visits them in their order.
  update holdfast.crawl_queue set shuffle = case crawl when 1 then 1 else crawl - 10 end
    where crawl_id = race.crawl(crawl);
end $$;

-- The worker holds so many more pages.
create procedure race.holds(worker integer, room integer, crawl integer default 1)
  language plpgsql as $$
begin
  perform holdfast.claim(race.worker(worker), room, array[race.crawl(crawl)], true);
end $$;

create procedure race.add_seed(seed text) language plpgsql as $$
begin
  raise notice '% seeds', holdfast.crawl_add_seeds(race.crawl(1), race.urls(seed), '{}', null);
end $$;

create procedure race.expire(worker integer) language sql as $$
  update holdfast.process set lease_until = clock_timestamp() - interval '1 second'
    where id = race.worker(worker)
$$;

-- So much time passes, as crawls, lanes, hosts and pages see it.
create procedure race.pass(span interval) language sql as $$
  update holdfast.crawl_queue set ready_at = ready_at - span;
  update holdfast.crawl_lane set next_at = next_at - span, low_at = low_at - span;
  update holdfast.host set last_at = last_at - span, backoff_until = backoff_until - span;
  update holdfast.snapshot_queue set retry_at = retry_at - span where status = 'queued';
$$;

-- What workers call -------------------------------------------------------------------------------

-- A page as a worker reports it. Not sealed: ending says why it is released.
create function race.page(n integer, fence bigint, links text default '',
    ending text default 'sealed', delay interval default '0', bytes bigint default 10)
  returns jsonb language sql stable as $$
  select jsonb_build_object('snapshot', race.page_id(n), 'crawl', race.crawl_of(n), 'fence', fence,
      'links', (select coalesce(jsonb_agg(jsonb_build_object('url', u)), '[]')
                  from unnest(race.urls(links)) u),
      'results', '[{"plugin": "wget", "hook": "on_Snapshot__1", "status": "succeeded"}]'::jsonb)
    || case ending
         when 'sealed' then jsonb_build_object('outcome', 'succeeded', 'bytes', bytes, 'files', 1,
           'manifest', 'sha',
           'directory', format('2026/01/race.test/%s/a%s', race.page_id(n), fence))
         else jsonb_build_object('ending', ending, 'reason', 'put back', 'spend', true,
           'delay_ms', (extract(epoch from delay) * 1000)::bigint) end
$$;

create function race.answer(page uuid, answer text, children bigint, crawl_sealed boolean)
  returns text language sql stable as $$
  select coalesce(race.page_of(page), '?') || ' ' || answer
    || coalesce(' (' || nullif(children, 0) || ' new)', '')
    || case when crawl_sealed then ', ends its crawl' else '' end
$$;

create function race.finish_all(worker integer, pages jsonb) returns void language plpgsql as $$
begin
  perform race.tell(worker, (
    select string_agg(a.text, '; ' order by a.text)
      from holdfast.finish(race.worker(worker), pages) f
      cross join race.answer(f.snapshot_id, f.answer, f.children, f.crawl_sealed) a(text)));
end $$;

-- A page whose file has one record, which is the payload of a URL, or refers to that of page p_refers.
create procedure race.finish_record(worker integer, page integer, p_refers integer default null)
  language plpgsql as $$
begin
  perform race.finish_all(worker, jsonb_build_array(
    race.page(page, 1) || jsonb_build_object(
      'captures', jsonb_build_array(jsonb_build_object(
        'file', 'browser/page.warc.gz', 'record_offset', 0, 'record_length', 2000,
        'url_key', 'test,race)/picture', 'at', '2026-01-01T00:00:00Z',
        'url', 'https://race.test/picture', 'status', 200, 'digest', 'sha1:X',
        'mime', case when p_refers is null then 'image/png' else 'warc/revisit' end)))
    || case when p_refers is null then '{}' else jsonb_build_object(
         'originals', jsonb_build_array(jsonb_build_object(
           'crawl', race.crawl_of(p_refers), 'snapshot', race.page_id(p_refers)))) end));
exception when sqlstate 'HF004' then
  raise notice 'worker %: refused', worker;
end $$;

-- Records that can be replayed, and whether their page is still there.
create function race.records() returns table (mime text, has_page boolean) language sql stable as $$
  select c.mime, c.snapshot_id in (select s.id from holdfast.snapshot s)
    from holdfast.v_capture c
    order by c.mime
$$;

-- All are sealed, each with the fence at its place (without fences: 1) and with the same links.
create procedure race.finish(worker integer, pages text, fences text default '',
    links text default '') language plpgsql as $$
begin
  perform race.finish_all(worker, (
    select jsonb_agg(race.page(p.n, coalesce(p.fence, 1), links) order by p.place)
      from unnest(race.list(pages), race.list(fences)) with ordinality p(n, fence, place)));
end $$;

create procedure race.release(worker integer, page integer, fence bigint default 1,
    delay interval default '0', ending text default 'released') language plpgsql as $$
begin
  perform race.finish_all(worker, jsonb_build_array(race.page(page, fence, '', ending, delay)));
end $$;

-- crawl: the worker has a session open for this one and may open no other. named: only these pages.
create procedure race.claim(worker integer, room integer, crawl integer default null,
    seeds integer default 0, newest boolean default false, named text default null)
  language plpgsql as $$
begin
  perform race.tell(worker, (
    select 'claims ' || string_agg(race.number(c.url) || ' a' || c.fence, ', ' order by c.url)
      from holdfast.claim(race.worker(worker), room, array[race.crawl(crawl)], crawl is not null,
                          newest, 0, seeds, p_only => race.page_ids(named)) c));
end $$;

-- Seals pages, each with fence 1, and claims so many others.
create procedure race.turn(worker integer, pages text, room integer, crawl integer default null,
    seeds integer default 0, named text default null) language plpgsql as $$
declare
  v_pages constant jsonb := (
    select coalesce(jsonb_agg(race.page(p.n, 1) order by p.place), '[]')
      from unnest(race.list(pages)) with ordinality p(n, place));
begin
  perform race.tell(worker, (
    select string_agg(case when t.what = 'claimed' then 'claims ' || p.number || ' a' || t.fence
                        else race.answer(t.snapshot_id, t.what, t.children, t.crawl_sealed) end,
                      '; ' order by t.what = 'claimed', p.number)
      from holdfast.worker_turn(race.worker(worker), v_pages, room, array[race.crawl(crawl)],
                                crawl is not null, false, 0, seeds, race.page_ids(named)) t
      cross join lateral (select coalesce(race.number(t.claim ->> 'url'),
                                          race.page_of(t.snapshot_id)) as number) p
      where t.what <> 'wait'));
end $$;

-- pages: what the worker believes that it holds, with fence 1.
create procedure race.heartbeat(worker integer, pages text) language plpgsql as $$
begin
  perform race.tell(worker, (
    select 'hears ' || string_agg(concat_ws(' ', b.kind, race.page_of(b.snapshot_id), b.detail),
                                  ', ' order by b.kind, race.page_of(b.snapshot_id))
      from holdfast.worker_heartbeat(race.worker(worker), '1 hour',
        (select coalesce(array_agg(race.page_id(n)), '{}') from unnest(race.list(pages)) n),
        (select array_agg(1) from unnest(race.list(pages))), '{}') b));
end $$;

-- The worker runs a hook of this page.
create procedure race.hooks(worker integer, page integer, fence bigint default 1) language plpgsql as $$
begin
  perform holdfast.worker_hooks(race.worker(worker), jsonb_build_array(jsonb_build_object(
    'snapshot', race.page_id(page), 'crawl', race.crawl_of(page), 'fence', fence, 'plugin', 'wget',
    'hook', 'on_Snapshot__1', 'started_at', clock_timestamp())));
end $$;

create procedure race.lapse() language plpgsql as $$
begin
  raise notice '% released', holdfast.lapse_process();
end $$;

create procedure race.leave(worker integer) language plpgsql as $$
begin
  perform holdfast.process_leave(race.worker(worker), 0, 'done');
end $$;

create procedure race.claim_crawl(worker integer) language plpgsql as $$
begin
  perform race.tell(worker, (
    select format('owns crawl %s with fence %s', right(c.crawl_id::text, 1), c.fence)
      from holdfast.crawl_claim(race.worker(worker), '1 minute') c));
end $$;

create procedure race.expand(worker integer, fence bigint, batch integer, crawl integer default 1)
  language plpgsql as $$
begin
  perform race.tell(worker, (
    select format('%s new, %s left, %s', e.inserted, e.seeds_left, e.status)
      from holdfast.crawl_expand(race.worker(worker), race.crawl(crawl), fence, batch) e));
end $$;

-- Whatever is due: seeds become pages, changed scopes are applied, stopped crawls are closed.
create procedure race.expand_due(worker integer) language plpgsql as $$
declare
  v_crawl record;
begin
  for v_crawl in select * from holdfast.crawl_claim(race.worker(worker), '1 minute') loop
    perform holdfast.crawl_expand(race.worker(worker), v_crawl.crawl_id, v_crawl.fence, 100);
  end loop;
end $$;

create procedure race.want_binary() language sql as $$
  select holdfast.binary_want(race.worker(1), '[{"name": "wget"}]')
$$;

create procedure race.claim_binary(worker integer) language plpgsql as $$
begin
  perform race.tell(worker, (
    select format('looks for %s with fence %s', b.name, b.fence)
      from holdfast.binary_claim(race.worker(worker), 4) b));
end $$;

create procedure race.found_binary(worker integer, fence bigint, path text) language plpgsql as $$
begin
  perform holdfast.binary_set(race.worker(worker), 'wget', fence, jsonb_build_object('path', path));
end $$;

create procedure race.webhook() language plpgsql as $$
begin
  perform holdfast.webhook_set('hook', 'https://hook.test/', '{crawl.sealed}', 'ann');
  perform holdfast.webhook_test('hook', 'ann');
end $$;

create procedure race.claim_webhook(sender text) language plpgsql as $$
begin
  raise notice '% sends %', sender, coalesce((
    select string_agg(c.event || ' with fence ' || c.fence, ', ')
      from holdfast.webhook_claim(sender, null, '1 minute', 4) c), 'nothing');
end $$;

create procedure race.sent_webhook(fence bigint) language plpgsql as $$
begin
  raise notice 'counts: %',
    holdfast.webhook_report((select max(id) from holdfast.delivery), fence, 200, null, false);
end $$;

create procedure race.robots(worker integer) language plpgsql as $$
begin
  perform race.tell(worker, (
    select 'robots.txt is ' || g.state || case when g.to_fetch then ', to be fetched' else '' end
           || case when g.too_early then ', page 1 was claimed too early' else '' end
      from holdfast.robots_get(race.worker(worker), race.page_id(1), race.crawl(1),
                               'https://race.test') g));
end $$;

create procedure race.robots_put(worker integer, delay interval default null) language plpgsql as $$
begin
  perform holdfast.robots_put(race.worker(worker), 'https://race.test', 'race.test', 200, '', null,
                              delay, '1 hour');
end $$;

create procedure race.open_session(worker integer) language plpgsql as $$
begin
  perform holdfast.session_open(race.worker(worker), race.worker(worker), race.crawl(1), 'dir');
end $$;

create procedure race.session_ready(worker integer) language plpgsql as $$
begin
  perform holdfast.session_set(race.worker(worker), 'ready', null, null);
end $$;

-- Commands: to crawl 1, page 1 (held), page 2 (waiting), its host, worker 1, everything -------------

create procedure race.give(action text, kind text) language plpgsql as $$
declare
  v_changed bigint;
begin
  v_changed := case action || ' ' || kind
    when 'pause crawl' then holdfast.crawl_pause(race.crawl(1), 'ann', '')
    when 'resume crawl' then holdfast.crawl_resume(race.crawl(1), 'ann', '')
    when 'cancel crawl' then holdfast.crawl_cancel(race.crawl(1), 'ann', '')
    when 'exclude crawl' then
      holdfast.crawl_scope(race.crawl(1), '{"deny": ["race.test"]}', '{}', 'ann')
    when 'remove crawl' then holdfast.crawl_remove(race.crawl(1), 'ann')
    when 'pause worker' then holdfast.worker_pause(race.worker(1), 'ann', '')
    when 'resume worker' then holdfast.worker_resume(race.worker(1), 'ann', '')
    when 'pause host' then holdfast.host_pause(holdfast.host_of(race.url(2)), 'ann', '')
    when 'resume host' then holdfast.host_resume(holdfast.host_of(race.url(2)), 'ann', '')
    when 'cancel host' then holdfast.host_cancel(holdfast.host_of(race.url(2)), 'ann', '')
    when 'pause all' then holdfast.collection_pause('ann', '')
    when 'resume all' then holdfast.collection_resume('ann', '')
    else
      holdfast.snapshot_command(race.page_id(case kind when 'held' then 1 else 2 end), action,
                              'ann', '')
  end;
  raise notice '% %: %', action, kind, v_changed;
exception when sqlstate 'HF004' then
  raise notice '% %: %', action, kind, sqlerrm;
end $$;

create procedure race.host(parallel integer, delay interval default null) language plpgsql as $$
begin
  perform holdfast.host_set('race.test', delay, parallel, 'ann');
end $$;

-- The gate: a place inside a function -------------------------------------------------------------

-- A session that has set race.gate to the name of a table waits for advisory lock 1 when one of its
-- statements begins to write that table: it has its snapshot, and has looked at no row.
create function race.gate() returns trigger language plpgsql set lock_timeout = 0 as $$
begin
  if current_setting('race.gate', true) = tg_table_name then
    perform pg_advisory_xact_lock_shared(1);
  end if;
  return null;
end $$;
create trigger race_gate before update on holdfast.crawl
  for each statement execute function race.gate();
create trigger race_gate before update on holdfast.crawl_queue
  for each statement execute function race.gate();
create trigger race_gate before insert on holdfast.running_hook
  for each statement execute function race.gate();

create procedure race.shut() language plpgsql as $$ begin perform pg_advisory_lock(1); end $$;
create procedure race.open() language plpgsql as $$ begin perform pg_advisory_unlock(1); end $$;

-- How far claims have come, and when they look again ----------------------------------------------

create procedure race.low_at() language plpgsql as $$
begin
  raise notice 'low_at: %', (
    select case when l.low_at = '-infinity' then 'the beginning'
                else 'page ' || string_agg(race.page_of(s.snapshot_id), ', ') end
      from holdfast.crawl_lane l
      left join holdfast.snapshot_queue s on coalesce(s.due_at, s.retry_at) = l.low_at
      group by l.low_at);
end $$;

create procedure race.parked() language plpgsql as $$
begin
  raise notice 'parked for a minute: %',
    (select ready_at > clock_timestamp() + interval '30 seconds' from holdfast.crawl_queue);
end $$;

-- How it ended ------------------------------------------------------------------------------------

-- The state of each page: "2 queued a1 lost 1" waits after one attempt whose worker lapsed.
create function race.pages(crawl uuid) returns text language sql stable as $$
  select string_agg(concat_ws(' ', race.page_of(v.id), coalesce(v.outcome, v.status),
           'a' || v.fence, 'w' || right(v.owner_id::text, 1),
           case when v.status = 'queued' and v.retry_at > clock_timestamp() then 'later' end,
           'tried ' || nullif(v.attempts, case when v.owner_id is null then 0 else 1 end),
           'lost ' || nullif(v.lapses, 0)), ', ' order by race.page_of(v.id))
    from holdfast.v_snapshot v where v.crawl_id = crawl
$$;

create function race.broken() returns setof text language sql stable as $$
  select i.invariant || ': ' || i.detail from holdfast.check_invariants() i
  union all
  select e.lifecycle || ' sealed twice'
    from holdfast.event e left join unnest(e.objects) o(id) on true
    where e.to_state = 'sealed' group by e.lifecycle, coalesce(e.object_id, o.id)
    having count(*) > 1
$$;

-- Shown after every permutation; with the records of attempts and hooks if p_records. A row that
-- begins with "BROKEN" fails the spec, whatever is expected.
create function race.outcome(p_records boolean default false)
  returns table (what text, state text, pages text) language sql stable as $$
  (select 'crawl ' || right(c.id::text, 1),
          concat_ws(', ', concat_ws(' ', c.status, c.outcome),
            nullif(c.snapshots_open, 0) || ' open', nullif(c.seeds_left, 0) || ' seeds',
            'stopped by ' || c.stop_reason, 'expanded by ' || right(c.owner_id::text, 1)),
          race.pages(c.id)
     from holdfast.crawl c order by c.id)
  union all
  (select p.label, p.status, p.exit_reason from holdfast.process p
     where p.status <> 'running' order by 1)
  union all
  (select 'attempts',
          string_agg(concat_ws(' ', race.page_of(a.snapshot_id), 'a' || a.fence, a.ending), ', '
                     order by race.page_of(a.snapshot_id), a.fence),
          'ran ' || string_agg(nullif(array_to_string(a.hooks, ' '), ''), ' ')
     from holdfast.attempt a where p_records having count(*) > 0)
  union all
  (select 'results',
          string_agg(concat_ws(' ', race.page_of(r.snapshot_id), 'a' || r.fence, r.status), ', '
                     order by race.page_of(r.snapshot_id), r.fence), null
     from holdfast.archive_result r where p_records having count(*) > 0)
  union all
  (select 'runs now',
          string_agg(race.page_of(h.snapshot_id) || ' w' || right(h.process_id::text, 1), ', '
                     order by race.page_of(h.snapshot_id)), null
     from holdfast.running_hook h where p_records having count(*) > 0)
  union all
  (select 'BROKEN', b, null from race.broken() b)
$$;

-- Until nothing changes: workers 1 and 2 heartbeat, and worker 3 expands and closes what is due.
create procedure race.settle() language plpgsql as $$
declare
  v_worker integer;
begin
  for i in 1..5 loop
    foreach v_worker in array array[1, 2] loop
      begin
        perform holdfast.worker_heartbeat(race.worker(v_worker), '1 hour', array_agg(q.snapshot_id),
            array_agg(q.fence), '{}')
          from holdfast.snapshot_queue q where q.owner_id = race.worker(v_worker);
      exception when sqlstate 'HF002' then null; -- it has lapsed
      end;
    end loop;
    call race.expand_due(3);
  end loop;
end $$;

-- Runners: runner 1 is process 101, and so on, in the order in which they joined ------------------

create procedure race.runners(standby boolean[]) language plpgsql as $$
begin
  truncate holdfast.runner_term, holdfast.maintenance_run;
  update holdfast.maintenance_task set next_at = clock_timestamp() + interval '1 hour', runs = 0;
  perform holdfast.process_join(race.worker(100 + n::integer),
      '{"machine": {"id": "machine", "hostname": "race"}, "boot_id": "boot", "pid_namespace": "namespace",
        "process_type": "runner", "worker_type": "runner_waiting", "version": "1"}'
      || jsonb_build_object('pid', 100 + n, 'start_ticks', n, 'label', 'runner ' || n, 'standby', s), '1 hour')
    from unnest(standby) with ordinality u(s, n) order by n;
end $$;

create procedure race.enter(runner integer) language plpgsql as $$
begin
  raise notice 'runner %: %', runner, (
    select concat_ws(' ', e.answer, 'with epoch ' || e.epoch, 'because of ' || e.label)
      from holdfast.runner_enter(race.worker(100 + runner), '1 hour', '1 hour') e);
end $$;

create procedure race.task(runner integer, epoch bigint) language plpgsql as $$
begin
  raise notice 'runner %: %', runner, (
    select concat_ws(' ', d.task, d.error)
      from holdfast.runner_maintenance(race.worker(100 + runner), epoch, 'mend') d);
end $$;

create procedure race.runner_heartbeat(runner integer) language plpgsql as $$
begin
  raise notice 'runner %: %', runner, (
    select concat_ws(', ', case when b.leads then 'leads with epoch ' || b.epoch else 'waits' end,
                     'is asked to ' || b.request, 'rival ' || b.rival)
      from holdfast.runner_heartbeat(race.worker(100 + runner), '1 hour', '{}') b);
end $$;

create procedure race.runner_leave(runner integer) language plpgsql as $$
begin
  perform holdfast.runner_leave(race.worker(100 + runner), 0, 'asked to');
end $$;

create function race.gate_outcome() returns table (what text, state text) language sql stable as $$
  (select p.label, concat_ws(', ', p.status, p.worker_type, 'epoch ' || p.epoch,
                             'asked to ' || p.request, p.exit_reason)
     from holdfast.process p where p.process_type = 'runner' order by p.started_at)
  union all
  (select 'epoch ' || t.epoch, t.label || coalesce(', ' || t.ending, '')
     from holdfast.runner_term t order by t.epoch)
  union all
  (select 'task of epoch ' || r.epoch, r.task || coalesce(', ' || r.error, '')
     from holdfast.maintenance_run r order by r.id)
  union all
  (select 'BROKEN', b from race.broken() b)
$$;
