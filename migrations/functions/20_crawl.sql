-- Crawls: adding, claiming, turning seeds into snapshots.

create or replace function holdfast.crawl_add(p_id uuid, p_crawl jsonb) returns boolean language plpgsql as $$
-- Adds an empty crawl; seeds follow in the same transaction (crawl_add_seeds). False if the id is there already: adding may
-- be repeated. Keys of p_crawl: label, notes, tags, persona, plugins, options, max_depth, max_urls, priority, created_by.
begin
  insert into holdfast.crawl (id, label, notes, tags, persona, plugins, options, max_depth, max_urls, priority, created_by)
    values (p_id, coalesce(p_crawl ->> 'label', ''), coalesce(p_crawl ->> 'notes', ''),
      coalesce((select array_agg(t) from jsonb_array_elements_text(p_crawl -> 'tags') t), '{}'),
      coalesce(p_crawl ->> 'persona', 'Default'),
      coalesce((select array_agg(t) from jsonb_array_elements_text(p_crawl -> 'plugins') t), '{}'),
      coalesce(p_crawl -> 'options', '{}'), coalesce((p_crawl ->> 'max_depth')::integer, 0),
      coalesce((p_crawl ->> 'max_urls')::bigint, 0), coalesce((p_crawl ->> 'priority')::integer, 0),
      coalesce(p_crawl ->> 'created_by', ''))
    on conflict (id) do nothing;
  if not found then return false; end if;
  insert into holdfast.event (lifecycle, object_id, crawl_id, event, to_state, detail)
    values ('crawl', p_id, p_id, 'add', 'queued', p_crawl ->> 'created_by');
  perform holdfast.ring();
  return true;
end $$;
comment on function holdfast.crawl_add(uuid, jsonb) is 'Adds a crawl, queued and due at once.';

create or replace function holdfast.crawl_add_seeds(p_crawl uuid, p_urls text[], p_hosts text[], p_titles text[], p_tags jsonb)
  returns bigint language plpgsql set plan_cache_mode = force_custom_plan as $$
-- Appends seeds, in the order given. p_tags: one array of tags a seed, or NULL. Returns how many seeds the crawl now has.
declare
  v_seeds bigint;
begin
  select seeds_total into v_seeds from holdfast.crawl where id = p_crawl and status = 'queued' for update;
  if not found then
    raise exception 'crawl % takes no more seeds', p_crawl using errcode = 'HF004', hint = 'Only a queued crawl does.';
  end if;
  insert into holdfast.crawl_seed (crawl_id, position, url, host, title, tags)
    select p_crawl, v_seeds + u.ordinality, u.url, u.host, coalesce(u.title, ''),
           coalesce((select array_agg(t) from jsonb_array_elements_text(p_tags -> (u.ordinality - 1)::integer) t), '{}')
      from unnest(p_urls, p_hosts, p_titles) with ordinality u(url, host, title, ordinality);
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

create or replace function holdfast.crawl_expand(p_node uuid, p_crawl uuid, p_fence bigint, p_batch integer)
  returns table (seeds_left bigint, inserted bigint, status text) language plpgsql as $$
-- Turns the next seeds into snapshots of depth 0. With the first batch the crawl is started and its snapshots can be claimed;
-- with the last one the crawl is idle (its last snapshot will seal it), or sealed at once if there is no snapshot.
#variable_conflict use_column
declare
  v_crawl holdfast.crawl;
  v_taken record;
  v_inserted bigint := 0;
begin
  select * into v_crawl from holdfast.crawl c where c.id = p_crawl for update;
  if not found or v_crawl.owner_id is distinct from p_node or v_crawl.fence <> p_fence then
    raise exception 'crawl % is no longer held by % with fence %', p_crawl, p_node, p_fence using errcode = 'HF003';
  end if;
  if v_crawl.seeds_left > 0 then
    if v_crawl.status = 'queued' then
      perform set_config('holdfast.event', 'start', true);
      update holdfast.crawl set status = 'started', started_at = coalesce(started_at, clock_timestamp()) where id = p_crawl;
      insert into holdfast.crawl_queue (crawl_id) values (p_crawl) on conflict do nothing;
    end if;
    with taken as (
      delete from holdfast.crawl_seed where crawl_id = p_crawl and position in
        (select position from holdfast.crawl_seed where crawl_id = p_crawl order by position limit p_batch)
        returning position, url, host, title, tags
    )
    select count(*) as count, array_agg(url order by position) as urls, array_agg(host order by position) as hosts,
           array_agg(title order by position) as titles, jsonb_agg(to_jsonb(tags) order by position) as tags
      into v_taken from taken;
    update holdfast.crawl set seeds_left = seeds_left - v_taken.count where id = p_crawl;
    if v_taken.count > 0 then
      v_inserted := holdfast.snapshot_insert(p_crawl, null, 0, v_taken.urls, v_taken.hosts, v_taken.titles, v_taken.tags);
    end if;
    -- Once the cap has cut something, the rest would be cut as well.
    if exists (select from holdfast.crawl where id = p_crawl and stop_reason = 'max_urls') then
      delete from holdfast.crawl_seed where crawl_id = p_crawl;
      update holdfast.crawl set seeds_left = 0 where id = p_crawl;
    end if;
  end if;
  select * into v_crawl from holdfast.crawl c where c.id = p_crawl;
  if v_crawl.seeds_left = 0 then
    update holdfast.crawl set owner_id = null, retry_at = null where id = p_crawl;
    perform holdfast.crawl_settle(p_crawl);
  end if;
  return query select c.seeds_left, v_inserted, c.status from holdfast.crawl c where c.id = p_crawl;
end $$;
comment on function holdfast.crawl_expand(uuid, uuid, bigint, integer) is 'Turns seeds of a claimed crawl into snapshots.';
