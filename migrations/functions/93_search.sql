-- Finding snapshots, and pages of them: what an id names, search, the pages of a crawl.

create or replace function holdfast.find(p_text text)
  returns table (kind text, id uuid, crawl_id uuid) language plpgsql stable as $$
-- The newest first. A whole id, a label and a URL (in its canonical spelling) are found by an index. A
-- shortened id (head or tail, at least four hexadecimal digits) is searched among the newest 10,000 crawls,
-- snapshots and processes, so that it stays quick in a large collection.
#variable_conflict use_column
declare
  v_hex constant text := lower(replace(p_text, '-', ''));
begin
  if p_text ~ '^https?://' then
    return query
      select 'snapshot', s.id, s.crawl_id
        from holdfast.snapshot s
        where s.url_hash in (sha256(convert_to(p_text, 'UTF8')), sha256(convert_to(p_text || '/', 'UTF8')))
        order by s.id desc limit 10;
    return;
  end if;
  if v_hex !~ '^[0-9a-f]{4,32}$' then
    return query
      select 'crawl', c.id, c.id
        from holdfast.crawl c
        where c.label = p_text and c.label <> ''
        order by c.id desc limit 10;
    return;
  end if;
  if length(v_hex) = 32 then
    return query
      select 'crawl', c.id, c.id from holdfast.crawl c where c.id = v_hex::uuid
      union all select 'snapshot', s.id, s.crawl_id from holdfast.snapshot s where s.id = v_hex::uuid
      union all select 'process', p.id, null::uuid from holdfast.process p where p.id = v_hex::uuid;
    return;
  end if;
  return query
    select o.kind, o.id, o.crawl_id
      from ((select 'crawl' as kind, c.id, c.id as crawl_id
               from holdfast.crawl c
               order by c.id desc limit 10000)
            union all
            (select 'snapshot', s.id, s.crawl_id
               from holdfast.snapshot s
               order by s.id desc limit 10000)
            union all
            (select 'process', p.id, null::uuid
               from holdfast.process p
               order by p.id desc limit 10000)) o
      cross join lateral (select replace(o.id::text, '-', '') as hex) x
      where x.hex like v_hex || '%' or x.hex like '%' || v_hex
      limit 10;
end $$;
comment on function holdfast.find is
  'Returns the objects that an id, whole or shortened, a URL or the label of a crawl names.';

create or replace function holdfast.search_window(p_before uuid, p_window bigint)
  returns uuid language sql stable as $$
  select x.id
    from (select s.id
            from holdfast.snapshot s
            where p_before is null or s.id < p_before
            order by s.id desc limit p_window) x
    order by x.id limit 1
$$;
comment on function holdfast.search_window is
  'The oldest of the p_window snapshots older than p_before (NULL: the newest); NULL: there are none.';

create or replace function holdfast.search_names(p_text text, p_before uuid, p_window bigint, p_limit bigint)
  returns setof holdfast.v_snapshot language plpgsql stable as $$
-- Reads only p_window snapshots older than p_before, so that each call is quick however large the collection
-- is; search_window() returns where the next call continues. A whole URL is found by an index.
declare
  v_text constant text := lower(btrim(p_text));
  v_last uuid;
begin
  if v_text = '' then return; end if;
  if p_before is null then
    return query
      select v.*
        from (select s.id, s.crawl_id
                from holdfast.snapshot s
                where s.url_hash in (sha256(convert_to(btrim(p_text), 'UTF8')),
                                     sha256(convert_to(btrim(p_text) || '/', 'UTF8')))
                limit p_limit) hit
        join holdfast.v_snapshot v on v.id = hit.id and v.crawl_id = hit.crawl_id
        order by v.id desc;
    if found then return; end if;
  end if;
  v_last := holdfast.search_window(p_before, p_window);
  if v_last is null then return; end if;
  return query
    with hit as materialized (
      select s.id, s.crawl_id
        from holdfast.snapshot s
        left join holdfast.snapshot_sealed e on e.snapshot_id = s.id and e.crawl_id = s.crawl_id
        where s.id >= v_last and (p_before is null or s.id < p_before)
          and (position(v_text in lower(s.url)) > 0
               or position(v_text in lower(coalesce(s.given_title, nullif(e.title, ''), s.title))) > 0
               or p_text = any (s.tags))
        order by s.id desc limit p_limit)
    select v.*
      from hit
      join holdfast.v_snapshot v on v.id = hit.id and v.crawl_id = hit.crawl_id
      order by v.id desc;
end $$;
comment on function holdfast.search_names is
  'Returns snapshots whose URL or title contains a text, or that have it as a tag, among p_window of them, newest '
  'first.';

create or replace function holdfast.thumbnail(p_snapshot uuid, p_crawl uuid, p_fence bigint)
  returns text language sql stable as $$
  -- Only our screenshot plugin makes a thumbnail. Another picture is shown if it is small, because a list has
  -- up to a hundred.
  select r.plugin || '/' || (f.file ->> 'path')
    from holdfast.archive_result r
    cross join lateral jsonb_array_elements(r.output_files) f(file)
    where r.snapshot_id = p_snapshot and r.crawl_id = p_crawl and r.fence = p_fence
      and r.plugin = 'screenshot' and f.file ->> 'type' like 'image/%' and (f.file ->> 'size')::bigint <= 262144
    order by f.file ->> 'path' <> 'thumbnail.jpg' limit 1
$$;
comment on function holdfast.thumbnail is
  'Returns the thumbnail of a snapshot, as a path below its directory. NULL: it has none.';

create or replace function holdfast.crawl_snapshots(p_crawl uuid, p_after uuid, p_limit bigint)
  returns table (id uuid, url text, title text, status text, outcome text, depth integer,
                 sealed_at timestamptz, directory text, bytes bigint, reason text, thumbnail text)
  language sql stable as $$
  select v.id, v.url, v.title, v.status, v.outcome, v.depth, v.sealed_at, v.directory, v.bytes, v.reason,
         holdfast.thumbnail(v.id, v.crawl_id, v.fence)
    from (select s.id, s.crawl_id
            from holdfast.snapshot s
            where s.crawl_id = p_crawl and (p_after is null or s.id > p_after)
            order by s.id limit p_limit) page
    join holdfast.v_snapshot v on v.id = page.id and v.crawl_id = page.crawl_id
    order by v.id
$$;
comment on function holdfast.crawl_snapshots is
  'A page of a crawl''s snapshots in the order of their addition, with thumbnails.';

create or replace function holdfast.crawl_entries(p_crawl uuid, p_limit bigint)
  returns table (url text, title text, outcome text, depth integer,
                 bytes bigint, directory text, thumbnail text)
  language sql stable as $$
  select s.url, coalesce(s.given_title, nullif(e.title, ''), s.title), e.outcome, s.depth, e.bytes,
         e.directory,
         holdfast.thumbnail(s.id, s.crawl_id, e.fence)
    from holdfast.snapshot s
    join holdfast.snapshot_sealed e on e.snapshot_id = s.id and e.crawl_id = s.crawl_id
    where s.crawl_id = p_crawl
    order by s.depth, s.created_at, s.id limit p_limit
$$;
comment on function holdfast.crawl_entries is
  'Returns sealed snapshots of a crawl for its page: seeds first, in the order in which they were found.';

create or replace function holdfast.crawl_seeds(p_crawl uuid, p_limit bigint)
  returns setof text language sql stable as $$
  select s.url
    from holdfast.snapshot s
    where s.crawl_id = p_crawl and s.depth = 0
    order by s.created_at, s.id limit p_limit
$$;
comment on function holdfast.crawl_seeds is 'The seeds of a crawl that became snapshots.';

create or replace function holdfast.sealed_files(p_id uuid, p_after uuid, p_limit integer)
  returns table (snapshot_id uuid, url text, created_at timestamptz, directory text, manifest_sha256 text)
  language sql stable as $$
  select s.id, s.url, s.created_at, e.directory, e.manifest_sha256
    from holdfast.snapshot s
    join holdfast.snapshot_sealed e on e.snapshot_id = s.id and e.crawl_id = s.crawl_id
    where (p_id is null or s.id = p_id or s.crawl_id = p_id) and (p_after is null or s.id > p_after)
    order by s.id limit p_limit
$$;
comment on function holdfast.sealed_files is
  'Returns the directories of sealed snapshots (one, of a crawl, or all), by id after p_after, for holdfast verify.';
