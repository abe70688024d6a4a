-- From seeds and links to snapshots: a worker claims a crawl and expands its seeds batch by batch.

create or replace function holdfast.is_wanted(
    p_crawl holdfast.crawl, p_url text, p_url_hash bytea, p_host text)
  returns boolean language sql stable as $$
  -- Returns true if a URL is in the scope of a crawl and, with only_new, not in the collection yet.
  select holdfast.scope_refusal(p_crawl.scope, p_url, p_host) is null
     and case
           when not p_crawl.only_new then true
           when p_crawl.wanted <> '{}'
             then not p_crawl.wanted
                      <@ holdfast.archived_plugins(p_url_hash, p_crawl.id, p_crawl.max_age)
           else not exists (
             select from holdfast.snapshot s
               join holdfast.snapshot_sealed e
                 on e.snapshot_id = s.id and e.crawl_id = s.crawl_id
                   and (e.outcome = 'succeeded'
                        or (e.outcome = 'partial' and p_crawl.only_complete is not true)
                        or (e.outcome = 'failed' and p_crawl.revisit
                            and e.sealed_at > clock_timestamp() - interval '1 day'))
               where s.url_hash = p_url_hash
                 and s.crawl_id <> p_crawl.id
                 and (p_crawl.max_age is null or e.sealed_at > clock_timestamp() - p_crawl.max_age))
         end
$$;

create or replace function holdfast.seeds_archived(p_crawl jsonb, p_urls text[])
  returns table (url text, snapshot_id uuid, sealed_at timestamptz, directory text)
  language plpgsql stable as $$
-- p_crawl: as for crawl_add().
declare
  v_crawl constant holdfast.crawl := jsonb_populate_record(null::holdfast.crawl, jsonb_strip_nulls(p_crawl)
    || jsonb_build_object('id', holdfast.new_uuid(), 'scope', '{}'::jsonb));
begin
  return query
    select u.url, n.id, n.sealed_at, n.directory
      from (select g.url, min(g.n) as first
              from unnest(p_urls) with ordinality g(url, n)
              group by g.url) u
      cross join lateral (select sha256(convert_to(u.url, 'UTF8')) as url_hash) h
      cross join lateral (select s.id, e.sealed_at, e.directory
                            from holdfast.snapshot s
                            join holdfast.snapshot_sealed e
                              on e.snapshot_id = s.id and e.crawl_id = s.crawl_id
                            where s.url_hash = h.url_hash and e.outcome in ('succeeded', 'partial')
                            order by e.sealed_at desc limit 1) n
      where not holdfast.is_wanted(v_crawl, u.url, h.url_hash, holdfast.host_of(u.url))
      order by u.first;
end $$;
comment on function holdfast.seeds_archived is
  'Seeds that a crawl with only_new would leave out, and the newest snapshot of each.';

create or replace function holdfast.snapshots_describe(
    p_crawl uuid, p_urls text[], p_titles text[], p_tags jsonb, p_bookmarked timestamptz[])
  returns void language plpgsql as $$
-- For URLs that the crawl has already and that are given again: each open one keeps the longest title, all
-- tags and the first bookmark. Row by row: no plan may read the whole crawl.
declare
  v_one record;
begin
  for v_one in
    with given as materialized (
      select u.url_hash,
             (array_agg(u.title order by length(u.title) desc))[1] as title,
             array(select distinct t.tag
                     from unnest(array_agg(u.n)) m(n)
                     cross join lateral jsonb_array_elements_text(p_tags -> (m.n - 1)::integer) t(tag)
                  ) as tags,
             min(u.bookmarked_at) as bookmarked_at
        from (select sha256(convert_to(g.url, 'UTF8')) as url_hash, coalesce(g.title, '') as title,
                     g.bookmarked_at, g.n
                from unnest(p_urls, p_titles, p_bookmarked) with ordinality g(url, title, bookmarked_at, n)) u
        group by u.url_hash
    )
    select s.id, g.title, g.tags, g.bookmarked_at
      from given g
      cross join lateral (select o.id, o.crawl_id, o.title, o.tags, o.bookmarked_at
                            from holdfast.snapshot o
                            where o.url_hash = g.url_hash
                            offset 0) s
      where s.crawl_id = p_crawl
        and (length(g.title) > length(s.title) or not g.tags <@ s.tags
             or g.bookmarked_at is distinct from least(g.bookmarked_at, s.bookmarked_at)
             or (s.bookmarked_at is null and g.bookmarked_at is not null))
  loop
    update holdfast.snapshot s
      set title = case when length(v_one.title) > length(s.title) then v_one.title else s.title end,
          tags = holdfast.tags_of(s.tags, v_one.tags),
          bookmarked_at = least(s.bookmarked_at, v_one.bookmarked_at)
      where s.id = v_one.id
        and s.crawl_id = p_crawl
        and exists (select from holdfast.snapshot_queue q
                      where q.snapshot_id = v_one.id and q.crawl_id = p_crawl);
  end loop;
end $$;

create or replace function holdfast.snapshots_add(
    p_crawl uuid, p_parent uuid, p_depth integer, p_urls text[], p_titles text[], p_tags jsonb,
    p_bookmarked timestamptz[], p_notify boolean default true)
  returns bigint language plpgsql as $$
-- New snapshots of a crawl, in the order given: each URL once, in scope, up to max_urls. The caller holds the
-- crawl's row lock, so "not there yet" and "room left" are exact, and has given the hosts their limits
-- (hosts_enter). Due times a microsecond apart keep the order. p_tags: an array of tags for each URL, or
-- NULL; p_bookmarked may be NULL. Returns how many are new. One long statement, because each more would cost
-- every page with links.
declare
  v_now constant timestamptz := clock_timestamp();
  v_crawl holdfast.crawl;
  v_filtered boolean;
  v_done record;
begin
  select * into strict v_crawl from holdfast.crawl where id = p_crawl;
  if v_crawl.stopping_at is not null then return 0; end if;
  v_filtered := v_crawl.scope <> '{}' or v_crawl.only_new;
  if v_crawl.snapshots_total > 0
     and (p_tags is not null or p_bookmarked is not null
          or exists (select from unnest(p_titles) t where t <> '')) then
    perform holdfast.snapshots_describe(p_crawl, p_urls, p_titles, p_tags, p_bookmarked);
  end if;
  with given as materialized (
    select u.url, sha256(convert_to(u.url, 'UTF8')) as url_hash, holdfast.host_of(u.url) as host,
           coalesce(u.title, '') as title, u.bookmarked_at, u.n
      from unnest(p_urls, p_titles, p_bookmarked) with ordinality u(url, title, bookmarked_at, n)
      where u.url is not null
  ), wanted as materialized ( -- in scope
    select g.*
      from given g
      where g.host is not null
        and (not v_filtered or v_crawl.revisit and p_depth = 0
             or holdfast.is_wanted(v_crawl, g.url, g.url_hash, g.host))
  ), same as materialized ( -- by the URL alone: no plan may read the whole crawl
    select s.url_hash, s.crawl_id
      from holdfast.snapshot s
      where v_crawl.snapshots_total > 0
        and s.url_hash = any (array(select w.url_hash from wanted w))
  ), fresh as materialized ( -- new to the crawl, each once, with its longest title
    select distinct on (w.url_hash) w.*, min(w.n) over same_url as first,
           min(w.bookmarked_at) over same_url as bookmarked
      from wanted w
      where not exists (select from same s where s.url_hash = w.url_hash and s.crawl_id = p_crawl)
      window same_url as (partition by w.url_hash)
      order by w.url_hash, length(w.title) desc, w.n
  ), ranked as (
    select f.*, row_number() over (order by f.first) as rank
      from fresh f
  ), room as materialized ( -- as many as max_urls allows
    select holdfast.new_uuid() as id, r.*
      from (select * from ranked order by rank) r -- so that ids have this order, too
      where v_crawl.max_urls = 0 or r.rank <= v_crawl.max_urls - v_crawl.snapshots_total
  ), cold as (
    insert into holdfast.snapshot (id, crawl_id, url, url_hash, depth, parent_id, title, bookmarked_at, tags)
      select r.id, p_crawl, r.url, r.url_hash, p_depth, p_parent, r.title, r.bookmarked,
             case
               when p_tags is null then v_crawl.tags
               else holdfast.tags_of(
                 v_crawl.tags,
                 array(select t.tag
                         from given g
                         cross join lateral jsonb_array_elements_text(p_tags -> (g.n - 1)::integer) t(tag)
                         where g.url_hash = r.url_hash))
             end
        from room r
        order by r.rank
  ), hot as (
    insert into holdfast.snapshot_queue (snapshot_id, crawl_id, host, retry_at)
      select r.id, p_crawl, r.host, v_now + (r.rank - n.count) * interval '1 microsecond'
        from room r
        cross join (select count(*) from room) n
        order by r.rank
      returning host, retry_at
  )
  select (select count(*) from given) - (select count(*) from wanted) as refused,
         (select count(*) from fresh) as wanted,
         count(*) as added,
         (select array_agg(h.host) from hot h) as hosts, (select array_agg(h.retry_at) from hot h) as due
    into v_done
    from room r;
  update holdfast.crawl
    set snapshots_total = snapshots_total + v_done.added,
        snapshots_open = snapshots_open + v_done.added,
        urls_refused = urls_refused + v_done.refused,
        stop_reason = case when v_done.added < v_done.wanted then 'max_urls' else stop_reason end
    where id = p_crawl and (v_done.wanted > 0 or v_done.refused > 0);
  if v_done.added > 0 then
    perform holdfast.crawl_wake(p_crawl, v_now - v_done.added * interval '1 microsecond', p_notify);
    perform holdfast.lane_open(p_crawl, v_done.hosts, v_done.due);
  end if;
  return v_done.added;
end $$;

create or replace function holdfast.crawl_claim(
    p_worker uuid, p_lease interval, p_only uuid[] default null)
  returns table (crawl_id uuid, fence bigint, seeds_left bigint) language plpgsql as $$
-- One due crawl, of p_only if that is not NULL, to be expanded. Its retry_at moves into the future and its
-- fence grows.
begin
  perform holdfast.lease_check(p_lease);
  if not holdfast.worker_may_claim(p_worker) then return; end if;
  return query
    with due as (
      select c.id
        from holdfast.crawl c
        where c.owner_id is null
          and c.retry_at <= clock_timestamp()
          and c.status in ('queued', 'started')
          and (p_only is null or c.id = any (p_only))
        order by c.retry_at
        limit 1
        for update skip locked
    )
    update holdfast.crawl c
      set owner_id = p_worker, fence = greatest(c.fence, holdfast.fence_floor()) + 1,
          retry_at = clock_timestamp() + p_lease, reason = null
      from due
      where c.id = due.id
      returning c.id, c.fence, c.seeds_left;
end $$;
comment on function holdfast.crawl_claim is 'Takes one crawl whose seeds wait to be expanded.';

create or replace function holdfast.crawl_release(p_worker uuid)
  returns bigint language plpgsql as $$
-- A worker expands one crawl at a time, so it owns none before it claims the next one. If it does own one,
-- the answer to an earlier call was lost.
declare
  v_count bigint;
begin
  perform holdfast.mine(p_worker);
  update holdfast.crawl
    set owner_id = null, retry_at = clock_timestamp(), reason = 'the answer to its claim was lost'
    where owner_id = p_worker and status in ('queued', 'started');
  get diagnostics v_count = row_count;
  return v_count;
end $$;
comment on function holdfast.crawl_release is 'Releases the crawl that a worker owns; returns how many.';

create or replace function holdfast.crawl_seeds_take(p_crawl uuid, p_batch integer)
  returns table (depth integer, urls text[], titles text[], tags jsonb, bookmarked timestamptz[],
                 notes text[])
  language plpgsql as $$
-- Deletes the first seeds, as many of one depth as come in a row. They are read in the order of the key: a
-- plan that sorts all remaining seeds would do so for each batch.
#variable_conflict use_column
declare
  v_depth integer;
  v_last bigint;
begin
  select s.depth
    into v_depth
    from holdfast.crawl_seed s
    where s.crawl_id = p_crawl
    order by s.crawl_id, s.position
    limit 1;
  select max(n.position)
    into v_last
    from (select s.position, bool_and(s.depth = v_depth) over (order by s.position) as alike
            from (select position, depth
                    from holdfast.crawl_seed
                    where crawl_id = p_crawl
                    order by crawl_id, position
                    limit p_batch) s) n
    where n.alike;
  return query
    with taken as (
      delete from holdfast.crawl_seed s
        where s.crawl_id = p_crawl and s.position <= v_last
        returning s.position, s.url, s.title, s.tags, s.bookmarked_at, s.notes
    )
    select v_depth,
           array_agg(t.url order by t.position),
           array_agg(t.title order by t.position),
           case when bool_or(t.tags <> '{}') then jsonb_agg(to_jsonb(t.tags) order by t.position) end,
           case when bool_or(t.bookmarked_at is not null)
                then array_agg(t.bookmarked_at order by t.position) end,
           case when bool_or(t.notes <> '') then array_agg(t.notes order by t.position) end
      from taken t;
end $$;

create or replace function holdfast.crawl_expand_seeds(
    p_worker uuid, p_crawl holdfast.crawl, p_batch integer, p_notify boolean default true)
  returns bigint language plpgsql as $$
-- The caller holds the crawl's row lock and has seen that it may go on. Starts the crawl if it is queued,
-- applies a changed scope to what is open, turns the next seeds (of one depth) into snapshots, and releases
-- the crawl when no seed is left. Returns how many snapshots it has more.
declare
  v_seeds record;
  v_taken bigint := 0;
  v_inserted bigint := 0;
  v_done record;
begin
  -- Before the crawl comes into crawl_queue: the order of locks (lock_for).
  if p_crawl.seeds_left > 0 and (p_crawl.host_delay > '0' or p_crawl.host_parallel is not null) then
    perform holdfast.hosts_enter(array_fill(p_crawl.id, array[cardinality(h.names)]), h.names)
      from (select array_agg(distinct holdfast.host_of(s.url)) as names
              from (select url
                      from holdfast.crawl_seed
                      where crawl_id = p_crawl.id
                      order by crawl_id, position
                      limit p_batch) s) h;
  end if;
  if p_crawl.status = 'queued' and (p_crawl.seeds_left > 0 or p_crawl.snapshots_open > 0) then
    update holdfast.crawl
      set status = 'started', event = 'start', started_at = coalesce(started_at, clock_timestamp()),
          owner_id = p_worker, reason = null,
          deadline_at = coalesce(deadline_at, case when max_time > '0' then clock_timestamp() + max_time end)
      where id = p_crawl.id;
    if p_notify then perform holdfast.notify_workers(); end if;
  end if;
  if p_crawl.judged_to is not null and not holdfast.crawl_judge_step(p_crawl.id, p_batch) then
    return 0;
  end if;
  if p_crawl.seeds_left > 0 then
    select t.* into v_seeds from holdfast.crawl_seeds_take(p_crawl.id, p_batch) t;
    v_taken := coalesce(cardinality(v_seeds.urls), 0);
    if v_taken > 0 then
      v_inserted := holdfast.snapshots_add(p_crawl.id, null, v_seeds.depth, v_seeds.urls, v_seeds.titles,
                                           v_seeds.tags, v_seeds.bookmarked, p_notify);
      if v_seeds.notes is not null then
        update holdfast.snapshot s
          set notes = n.notes
          from unnest(v_seeds.urls, v_seeds.notes) n(url, notes)
          where s.crawl_id = p_crawl.id and s.url_hash = sha256(convert_to(n.url, 'UTF8')) and s.notes = ''
            and n.notes <> '';
      end if;
    end if;
  end if;
  -- Once the cap has cut something, it would cut the rest as well.
  update holdfast.crawl c
    set seeds_left = n.seeds_left,
        owner_id = case when n.seeds_left > 0 then c.owner_id end,
        retry_at = case when n.seeds_left > 0 or c.stopping_at is not null then c.retry_at
                        else c.deadline_at end
    from (select case when o.stop_reason = 'max_urls' or p_crawl.seeds_left = 0 then 0
                      else o.seeds_left - v_taken end as seeds_left
            from holdfast.crawl o
            where o.id = p_crawl.id) n
    where c.id = p_crawl.id and c.status <> 'sealed' -- judging may have ended it
    returning n.seeds_left, c.snapshots_open - c.snapshots_excluded as open, c.stop_reason into v_done;
  if v_done.stop_reason = 'max_urls' then
    delete from holdfast.crawl_seed where crawl_id = p_crawl.id;
  end if;
  if v_done.seeds_left = 0 and v_done.open <= 0 then perform holdfast.crawl_settle(p_crawl.id); end if;
  return v_inserted;
end $$;

create or replace function holdfast.crawl_expand(
    p_worker uuid, p_crawl uuid, p_fence bigint, p_batch integer)
  returns table (seeds_left bigint, inserted bigint, status text) language plpgsql as $$
-- The next batch of what a claimed crawl needs: its seeds become snapshots of depth 0; a changed scope is
-- applied to what is open; a crawl that is to stop is closed. With the first batch of seeds its snapshots can
-- be claimed. After the last one it is idle until its deadline, and its last snapshot seals it. seeds_left:
-- what is still to be done; 0: nothing now.
#variable_conflict use_column
declare
  v_crawl holdfast.crawl;
  v_inserted bigint := 0;
  v_left bigint := 0;
begin
  perform holdfast.mine(p_worker);
  select * into v_crawl from holdfast.crawl c where c.id = p_crawl for no key update;
  if not found or v_crawl.owner_id is distinct from p_worker or v_crawl.fence <> p_fence then
    raise exception 'crawl % is not held by % with fence %', p_crawl, p_worker, p_fence
      using errcode = 'HF003';
  end if;
  if v_crawl.stopping_at is null and v_crawl.deadline_at <= clock_timestamp() then
    perform holdfast.crawl_stop(p_crawl, 'max_time', '', 'its time is over', p_batch);
  elsif v_crawl.stopping_at is not null then
    v_left := holdfast.crawl_stop_step(p_crawl, p_batch);
    -- A worker may still own the rest and release it with its next heartbeat: check again in a second.
    if v_left > 0
       and not exists (select from holdfast.crawl_seed where crawl_id = p_crawl)
       and v_left <= cardinality(holdfast.crawl_held(p_crawl)) then
      update holdfast.crawl
        set owner_id = null, retry_at = clock_timestamp() + interval '1 second'
        where id = p_crawl;
      v_left := 0;
    end if;
  else
    v_inserted := holdfast.crawl_expand_seeds(p_worker, v_crawl, p_batch);
    select case when c.judged_to is null then c.seeds_left else greatest(c.seeds_left, 1) end
      into v_left
      from holdfast.crawl c
      where c.id = p_crawl;
  end if;
  return query select v_left, v_inserted, c.status from holdfast.crawl c where c.id = p_crawl;
end $$;
comment on function holdfast.crawl_expand is 'Turns seeds of a claimed crawl into snapshots.';

create or replace function holdfast.crawl_open_small(p_worker uuid, p_seeds integer)
  returns uuid language plpgsql as $$
-- For a claim, which has called worker_may_claim and holds no other lock: turns a due crawl that is new and
-- has at most p_seeds seeds into snapshots in the claim's own transaction. No other transaction sees it half
-- done, so it needs no owner and no fence. All other crawls are left to crawl_claim. Does not notify: the
-- claim does if rows remain.
declare
  v_crawl holdfast.crawl;
begin
  select c.*
    into v_crawl
    from holdfast.crawl c
    where c.id = any (array(select d.id
                              from holdfast.crawl d
                              where d.owner_id is null and d.retry_at <= clock_timestamp()
                              order by d.retry_at
                              limit 16))
      and c.owner_id is null
      and c.retry_at <= clock_timestamp()
      and c.status = 'queued'
      and c.seeds_left between 1 and p_seeds
      and c.snapshots_total = 0
      and c.stopping_at is null
      and c.judged_to is null
      and c.deadline_at is null
      and c.scope = '{}'
      and not c.only_new
    order by c.retry_at
    limit 1
    for no key update skip locked;
  if not found then return null; end if;
  perform holdfast.crawl_expand_seeds(p_worker, v_crawl, p_seeds, false);
  -- The seeds may be of several depths: then crawl_claim takes the rest.
  update holdfast.crawl set owner_id = null where id = v_crawl.id and owner_id is not null;
  return v_crawl.id;
end $$;
