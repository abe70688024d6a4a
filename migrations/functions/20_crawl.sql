-- Crawls: adding, claiming, turning seeds into snapshots.

create or replace function holdfast.crawl_add(p_id uuid, p_crawl jsonb) returns boolean language plpgsql as $$
-- Adds an empty crawl; seeds follow in the same transaction (crawl_add_seeds). False if the id is there already: adding may
-- be repeated. Keys of p_crawl: label, notes, tags, persona, plugins, options, max_depth, max_urls, priority, created_by, max_bytes,
-- max_time, max_parallel, scope, host_delay, host_parallel, only_new, only_new_age, retry_of, keep, max_snapshot_bytes, robots, only_complete,
-- wanted, overwrite.
begin
  perform holdfast.scope_check(coalesce(p_crawl -> 'scope', '{}'));
  insert into holdfast.crawl (id, label, notes, tags, persona, plugins, options, max_depth, max_urls, priority, created_by, max_bytes,
      max_time, max_parallel, scope, host_delay, host_parallel, only_new, only_new_age, retry_of, keep_until,
      max_snapshot_bytes, robots, only_complete, wanted, overwrite)
    values (p_id, coalesce(p_crawl ->> 'label', ''), coalesce(p_crawl ->> 'notes', ''),
      coalesce((select array_agg(t) from jsonb_array_elements_text(p_crawl -> 'tags') t), '{}'),
      coalesce(p_crawl ->> 'persona', 'Default'),
      coalesce((select array_agg(t) from jsonb_array_elements_text(p_crawl -> 'plugins') t), '{}'),
      coalesce(p_crawl -> 'options', '{}'), coalesce((p_crawl ->> 'max_depth')::integer, 0),
      coalesce((p_crawl ->> 'max_urls')::bigint, 0), coalesce((p_crawl ->> 'priority')::integer, 0),
      coalesce(p_crawl ->> 'created_by', ''), coalesce((p_crawl ->> 'max_bytes')::bigint, 0),
      coalesce((p_crawl ->> 'max_time')::interval, '0'), (p_crawl ->> 'max_parallel')::integer, coalesce(p_crawl -> 'scope', '{}'),
      coalesce((p_crawl ->> 'host_delay')::interval, '0'), (p_crawl ->> 'host_parallel')::integer,
      coalesce((p_crawl ->> 'only_new')::boolean, false), (p_crawl ->> 'only_new_age')::interval, (p_crawl ->> 'retry_of')::uuid,
      clock_timestamp() + (p_crawl ->> 'keep')::interval, coalesce((p_crawl ->> 'max_snapshot_bytes')::bigint, 0),
      coalesce((p_crawl ->> 'robots')::boolean, false), coalesce((p_crawl ->> 'only_complete')::boolean, false),
      coalesce((select array_agg(t order by t) from jsonb_array_elements_text(p_crawl -> 'wanted') t), '{}'),
      coalesce((p_crawl ->> 'overwrite')::boolean, false))
    on conflict (id) do nothing;
  if not found then return false; end if;
  insert into holdfast.event (lifecycle, object_id, crawl_id, event, to_state, detail)
    values ('crawl', p_id, p_id, 'add', 'queued', p_crawl ->> 'created_by');
  perform holdfast.ring();
  return true;
end $$;
comment on function holdfast.crawl_add(uuid, jsonb) is 'Adds a crawl, queued and due at once.';

create or replace function holdfast.crawl_add_seeds(p_crawl uuid, p_urls text[], p_hosts text[], p_titles text[], p_tags jsonb)
  returns bigint language plpgsql set plan_cache_mode = force_generic_plan as $$
-- Appends seeds, in the order given. p_titles may be empty; p_tags: one array of tags a seed, or NULL. Returns how many seeds the crawl now has.
declare
  v_seeds bigint;
begin
  select seeds_total into v_seeds from holdfast.crawl where id = p_crawl and status = 'queued' for no key update;
  if not found then
    raise exception 'crawl % takes no more seeds', p_crawl using errcode = 'HF004', hint = 'Only a queued crawl does.';
  end if;
  if p_tags is null then
    insert into holdfast.crawl_seed (crawl_id, position, url, host, title)
      select p_crawl, v_seeds + u.ordinality, u.url, u.host, coalesce(u.title, '')
        from unnest(p_urls, p_hosts, p_titles) with ordinality u(url, host, title, ordinality);
  else
    insert into holdfast.crawl_seed (crawl_id, position, url, host, title, tags)
      select p_crawl, v_seeds + u.ordinality, u.url, u.host, coalesce(u.title, ''), array(select jsonb_array_elements_text(u.tags))
        from rows from (unnest(p_urls, p_hosts, p_titles), jsonb_array_elements(p_tags)) with ordinality u(url, host, title, tags, ordinality)
        where u.ordinality <= cardinality(p_urls);
  end if;
  update holdfast.crawl set seeds_total = seeds_total + cardinality(p_urls), seeds_left = seeds_left + cardinality(p_urls),
      first_url = case first_url when '' then coalesce(p_urls[1], '') else first_url end
    where id = p_crawl returning seeds_total into v_seeds;
  return v_seeds;
end $$;
comment on function holdfast.crawl_add_seeds(uuid, text[], text[], text[], jsonb) is 'Appends seeds to a queued crawl.';

create or replace function holdfast.crawl_claim(p_node uuid, p_lease interval) returns table (crawl_id uuid, fence bigint, seeds_left bigint)
  language plpgsql as $$
-- One due crawl, to be expanded. Its retry_at moves into the future and its fence grows.
begin
  if not holdfast.node_may_claim(p_node) then return; end if;
  return query
    with due as (
      select c.id from holdfast.crawl c
        where c.owner_id is null and c.retry_at <= clock_timestamp() and c.status in ('queued', 'started')
        order by c.retry_at limit 1 for update skip locked
    )
    update holdfast.crawl c set owner_id = p_node, fence = c.fence + 1, retry_at = clock_timestamp() + p_lease, reason = null
      from due where c.id = due.id returning c.id, c.fence, c.seeds_left;
end $$;
comment on function holdfast.crawl_claim(uuid, interval) is 'Takes one crawl whose seeds wait to be expanded.';

create or replace function holdfast.crawl_hand_back(p_node uuid) returns bigint language plpgsql as $$
-- A node expands one crawl at a time, so before it claims the next one it may own none: what it does own is what it was given
-- and does not know of.
declare
  v_count bigint;
begin
  update holdfast.crawl set owner_id = null, retry_at = clock_timestamp(), reason = 'the answer to its claim was lost'
    where owner_id = p_node and status in ('queued', 'started');
  get diagnostics v_count = row_count;
  return v_count;
end $$;
comment on function holdfast.crawl_hand_back(uuid) is 'Gives back a crawl whose claim''s answer was lost; returns how many.';

create or replace function holdfast.crawl_seeds_take(p_crawl uuid, p_batch integer)
  returns table (depth integer, urls text[], hosts text[], titles text[], tags jsonb)
  language plpgsql set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set jit = off set plan_cache_mode = force_generic_plan as $$
-- Takes the first seeds away, as many of one depth as come in a row. Told to read them in the order of the key: a plan that collects and
-- sorts all that are left would do so for each batch.
#variable_conflict use_column
declare
  v_depth integer;
  v_last bigint;
begin
  select s.depth into v_depth from holdfast.crawl_seed s where s.crawl_id = p_crawl order by s.crawl_id, s.position limit 1;
  select max(n.position) into v_last
    from (select s.position, bool_and(s.depth = v_depth) over (order by s.position) as alike
            from (select position, depth from holdfast.crawl_seed where crawl_id = p_crawl order by crawl_id, position limit p_batch) s) n
    where n.alike;
  return query
    with taken as (
      delete from holdfast.crawl_seed s where s.crawl_id = p_crawl and s.position <= v_last returning s.position, s.url, s.host, s.title, s.tags
    )
    select v_depth, array_agg(t.url order by t.position), array_agg(t.host order by t.position), array_agg(t.title order by t.position),
           coalesce(case when bool_or(t.tags <> '{}') then jsonb_agg(to_jsonb(t.tags) order by t.position) end, '[]')
      from taken t;
end $$;
comment on function holdfast.crawl_seeds_take(uuid, integer) is 'Takes the next seeds of a locked crawl away, to be made snapshots.';

create or replace function holdfast.crawl_expand_seeds(p_node uuid, p_crawl holdfast.crawl, p_batch integer) returns bigint
  language plpgsql set enable_bitmapscan = off as $$
-- For whoever holds the crawl's row lock and has seen that it may go on: starts it if it is queued, judges what is open by a changed scope,
-- turns the next seeds (of one depth) into snapshots, and lets go of it when none is left. Returns how many snapshots it has more.
#variable_conflict use_column
declare
  v_depth integer;
  v_urls text[];
  v_hosts text[];
  v_titles text[];
  v_tags jsonb;
  v_inserted bigint := 0;
  v_left bigint;
  v_open bigint;
  v_cut boolean;
begin
  -- Before the crawl comes into crawl_queue: the order of everybody's locks.
  if p_crawl.seeds_left > 0 and (p_crawl.host_delay > '0' or p_crawl.host_parallel is not null) then
    perform holdfast.hosts_enter(array_fill(p_crawl.id, array[cardinality(h.names)]), h.names)
      from (select array_agg(distinct s.host) as names
              from (select host from holdfast.crawl_seed where crawl_id = p_crawl.id order by crawl_id, position limit p_batch) s) h;
  end if;
  if p_crawl.status = 'queued' and (p_crawl.seeds_left > 0 or p_crawl.snapshots_open > 0) then
    perform set_config('holdfast.event', 'start', true);
    update holdfast.crawl set status = 'started', started_at = coalesce(started_at, clock_timestamp()), owner_id = p_node, reason = null,
        deadline_at = coalesce(deadline_at, case when max_time > '0' then clock_timestamp() + max_time end)
      where id = p_crawl.id;
  end if;
  if p_crawl.judged_to is not null and not holdfast.crawl_judge_step(p_crawl.id, p_batch) then return 0; end if;
  if p_crawl.seeds_left > 0 then
    select t.depth, t.urls, t.hosts, t.titles, t.tags into v_depth, v_urls, v_hosts, v_titles, v_tags
      from holdfast.crawl_seeds_take(p_crawl.id, p_batch) t;
    if v_urls is not null then
      v_inserted := holdfast.snapshot_insert(p_crawl.id, null, v_depth, v_urls, v_hosts, v_titles, v_tags);
    end if;
  end if;
  -- Once the cap has cut something, the rest would be cut as well.
  update holdfast.crawl c
    set seeds_left = n.seeds_left, owner_id = case when n.seeds_left > 0 then c.owner_id end,
        retry_at = case when n.seeds_left > 0 or c.stopping_at is not null then c.retry_at else c.deadline_at end -- judging may have ended it
    from (select o.id, case when o.stop_reason = 'max_urls' then 0 else o.seeds_left - coalesce(cardinality(v_urls), 0) end as seeds_left
            from holdfast.crawl o where o.id = p_crawl.id) n
    where c.id = n.id and c.status <> 'sealed'
    returning n.seeds_left, c.snapshots_open - c.snapshots_excluded, coalesce(c.stop_reason = 'max_urls', false) into v_left, v_open, v_cut;
  if v_cut then delete from holdfast.crawl_seed where crawl_id = p_crawl.id; end if;
  if v_left = 0 and v_open <= 0 then perform holdfast.crawl_settle(p_crawl.id); end if;
  return v_inserted;
end $$;
comment on function holdfast.crawl_expand_seeds(uuid, holdfast.crawl, integer) is 'Starts a locked crawl and turns its next seeds into snapshots.';

create or replace function holdfast.crawl_expand(p_node uuid, p_crawl uuid, p_fence bigint, p_batch integer)
  returns table (seeds_left bigint, inserted bigint, status text) language plpgsql as $$
-- What a crawl has to have done to it in batches: its seeds are turned into snapshots of depth 0; a changed scope is applied to
-- what is open; a crawl that is to stop is closed. With the first batch of seeds the crawl is started and its snapshots can be
-- claimed; with the last one it is idle until its deadline (its last snapshot will seal it), or sealed if there is no snapshot.
-- seeds_left: what is still to be done, 0: nothing now.
#variable_conflict use_column
declare
  v_crawl holdfast.crawl;
  v_inserted bigint;
  v_left bigint;
begin
  select * into v_crawl from holdfast.crawl c where c.id = p_crawl for no key update;
  if not found or v_crawl.owner_id is distinct from p_node or v_crawl.fence <> p_fence then
    raise exception 'crawl % is no longer held by % with fence %', p_crawl, p_node, p_fence using errcode = 'HF003';
  end if;
  if v_crawl.stopping_at is null and v_crawl.deadline_at <= clock_timestamp() then
    perform holdfast.crawl_stop(p_crawl, 'max_time', '', 'its time is over', p_batch);
    return query select 0::bigint, 0::bigint, c.status from holdfast.crawl c where c.id = p_crawl;
    return;
  end if;
  if v_crawl.stopping_at is not null then
    v_left := holdfast.crawl_stop_step(p_crawl, p_batch);
    -- What is left may be in work on a node that gives it back with its next beat: then look again in a second.
    if v_left > 0 and not exists (select from holdfast.crawl_seed where crawl_id = p_crawl)
       and v_left <= (select count(*) from holdfast.snapshot_queue q where q.owner_id is not null and q.crawl_id = p_crawl) then
      update holdfast.crawl set owner_id = null, retry_at = clock_timestamp() + interval '1 second' where id = p_crawl;
      v_left := 0;
    end if;
    return query select v_left, 0::bigint, c.status from holdfast.crawl c where c.id = p_crawl;
    return;
  end if;
  v_inserted := holdfast.crawl_expand_seeds(p_node, v_crawl, p_batch);
  return query select case when c.judged_to is null then c.seeds_left else greatest(c.seeds_left, 1) end, v_inserted, c.status
    from holdfast.crawl c where c.id = p_crawl;
end $$;
comment on function holdfast.crawl_expand(uuid, uuid, bigint, integer) is 'Turns seeds of a claimed crawl into snapshots.';

create or replace function holdfast.crawl_open_small(p_node uuid, p_seeds integer) returns uuid language plpgsql as $$
-- For a claim, which has asked node_may_claim and holds no lock besides: a due crawl that is new, of at most p_seeds seeds and to be expanded
-- without a second thought, becomes snapshots in the claim's own transaction. Nobody can see it half done, so it needs no owner and no
-- fence: its row lock does. Everything else is left to crawl_claim, and so is what comes behind many others that are due.
-- Nobody is woken: the claim will, if it leaves anything of it.
declare
  v_crawl holdfast.crawl;
begin
  select c.* into v_crawl from holdfast.crawl c
    where c.id = any (array(select d.id from holdfast.crawl d where d.owner_id is null and d.retry_at <= clock_timestamp() order by d.retry_at limit 16))
      and c.owner_id is null and c.retry_at <= clock_timestamp() and c.status = 'queued' and c.seeds_left between 1 and p_seeds
      and c.snapshots_total = 0 and c.stopping_at is null and c.judged_to is null and c.deadline_at is null and c.scope = '{}' and not c.only_new
    order by c.retry_at limit 1 for no key update skip locked;
  if not found then return null; end if;
  perform set_config('holdfast.quiet', 'on', true);
  perform holdfast.crawl_expand_seeds(p_node, v_crawl, p_seeds);
  perform set_config('holdfast.quiet', 'off', true);
  -- Of several depths: the rest goes the other way.
  update holdfast.crawl set owner_id = null where id = v_crawl.id and owner_id is not null;
  return v_crawl.id;
end $$;
comment on function holdfast.crawl_open_small(uuid, integer) is 'Turns one due crawl of few seeds into snapshots, for a claim that takes them at once.';

create or replace function holdfast.work_take(p_node uuid, p_room integer, p_near uuid[], p_near_only boolean, p_order text, p_pool integer,
    p_seeds integer)
  returns table (snapshot_id uuid, crawl_id uuid, fence bigint, url text, host text, depth integer, title text, tags text[],
                 created_at timestamptz, attempts integer, owners_lost integer, plugins text[], options jsonb, persona text, max_depth integer,
                 robots boolean, max_snapshot_bytes bigint, archived text[])
  language plpgsql as $$
-- snapshot_take that first opens a new crawl, if one is due that has at most p_seeds seeds (0: none): of a new URL, one commit less to wait
-- for than if it were claimed and expanded before, twice.
begin
  perform set_config('holdfast.claim_opens', p_seeds::text, true);
  return query select * from holdfast.snapshot_take(p_node, p_room, p_near, p_near_only, p_order, p_pool);
  perform set_config('holdfast.claim_opens', '', true);
end $$;
comment on function holdfast.work_take(uuid, integer, uuid[], boolean, text, integer, integer) is 'Takes due snapshots for a node and starts them, of a new small crawl too.';
