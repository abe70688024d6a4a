-- Index of WARC files: rows of holdfast.capture, written with the seal, and look-ups for replay tools.
--
-- A revisit record may refer to a record of another URL (refers_to): Browsertrix writes such records.

create or replace function holdfast.same_payload(
    p_key text, p_digest text, p_other_key text, p_other_digest text)
  returns boolean language sql immutable parallel safe as $$
  -- Looked up by a hash, then compared as one text: as two columns, it could be looked for among all captures
  -- of the URL.
  select hashtextextended(p_key || ' ' || p_digest, 0)
           = hashtextextended(p_other_key || ' ' || p_other_digest, 0)
     and p_key || ' ' || p_digest = p_other_key || ' ' || p_other_digest
$$;

create or replace function holdfast.captures_add(p_snapshot uuid, p_crawl uuid, p_captures jsonb)
  returns void language plpgsql as $$
-- Stores the index of the WARC files of a sealed page.
begin
  insert into holdfast.capture (
      snapshot_id, crawl_id, file, record_offset, record_length,
      url_key, at, url, status, mime, digest, refers_to)
    select p_snapshot, p_crawl, c.file, c.record_offset, c.record_length,
           c.url_key, c.at, c.url, c.status, c.mime, c.digest, c.refers_to
      from jsonb_to_recordset(p_captures) as c(
        file text, record_offset bigint, record_length bigint, url_key text, at timestamptz, url text,
        status integer, mime text, digest text, refers_to text)
    on conflict do nothing;
end $$;

create or replace function holdfast.keep_captures(p_pages holdfast.finished_page[])
  returns void language plpgsql as $$
-- Only for pages that were sealed with their files.
begin
  perform holdfast.captures_add(p.snapshot, p.crawl, p.captures)
    from unnest(p_pages) p
    where p.captures <> '[]'
      and p.outcome in ('succeeded', 'partial', 'failed')
      and p.directory <> '';
end $$;

create or replace function holdfast.count_saved(p_pages holdfast.finished_page[])
  returns void language plpgsql as $$
-- Sixteen rows, so that crawls rarely wait for each other; updated in their order, to avoid deadlock.
begin
  insert into holdfast.tally as t (name, value)
    select 'bytes_saved/' || abs(hashtext(p.crawl::text)) % 16,
           sum(holdfast.fact_integer(p.facts, 'bytes_saved'))
      from unnest(p_pages) p
      where p.facts ? 'bytes_saved' and p.outcome in ('succeeded', 'partial', 'failed') and p.directory <> ''
      group by 1
      order by 1
    on conflict (name) do update set value = t.value + excluded.value;
end $$;

create or replace function holdfast.kept_directory(p_snapshot uuid, p_crawl uuid, p_position integer)
  returns text language sql immutable as $$
  -- The depth equals that of the directory of a snapshot.
  select 'kept/' || p_crawl || '/' || p_snapshot || '/' || p_position
$$;
comment on function holdfast.kept_directory is
  'Returns the directory, below the archive root, of a record of a removed snapshot to which others refer.';

create or replace function holdfast.kept_file(p_snapshot uuid, p_crawl uuid, p_position integer)
  returns text language sql immutable as $$
  select holdfast.kept_directory(p_snapshot, p_crawl, p_position) || '/record.warc.gz'
$$;
comment on function holdfast.kept_file is 'Returns the file of such a record.';

create or replace view holdfast.capture_of_page as
  select c.url_key, c.at, c.url, c.status, c.mime, c.digest,
         e.directory || '/' || c.file as file, c.record_offset, c.record_length, e.snapshot_id, e.crawl_id,
         c.refers_to, false as removed
    from holdfast.capture c
    join holdfast.snapshot_sealed e on e.snapshot_id = c.snapshot_id and e.crawl_id = c.crawl_id
  union all
  select c.url_key, c.at, c.url, c.status, c.mime, c.digest,
         e.directory || '/' || c.file, c.record_offset, c.record_length, e.snapshot_id, e.crawl_id,
         c.refers_to, true
    from holdfast.removed_capture c
    join holdfast.removed_page e on e.snapshot_id = c.snapshot_id and e.crawl_id = c.crawl_id;
comment on view holdfast.capture_of_page is
  'Records of the WARC files of pages; removed: of a month that was removed, and waits for purge_fill().';

create or replace view holdfast.v_capture as
  select p.url_key, p.at, p.url, p.status, p.mime, p.digest, p.file, p.record_offset, p.record_length,
         p.snapshot_id, p.crawl_id, p.refers_to
    from holdfast.capture_of_page p
  union all
  select k.url_key, k.at, k.url, k.status, k.mime, k.digest,
         case when k.moved then holdfast.kept_file(k.snapshot_id, k.crawl_id, k.position)
              else k.source_file end,
         case when k.moved then 0 else k.source_offset end, k.record_length, k.snapshot_id, k.crawl_id,
         null::text
    from holdfast.kept_capture k;
comment on view holdfast.v_capture is
  'Records of WARC files that can be replayed, by URL key and time, as in a CDX index. Includes records of removed '
  'snapshots to which revisit records refer.';
comment on column holdfast.v_capture.url_key is 'The URL by the SURT rules: com,example)/path.';
comment on column holdfast.v_capture.at is 'Time of the capture.';
comment on column holdfast.v_capture.url is 'The URL.';
comment on column holdfast.v_capture.mime is 'Media type, warc/revisit or unk.';
comment on column holdfast.v_capture.digest is 'Digest of the payload.';
comment on column holdfast.v_capture.file is 'The WARC file, below the archive root.';
comment on column holdfast.v_capture.record_offset is 'Offset of the record in the file.';
comment on column holdfast.v_capture.record_length is 'Length of the record in bytes.';
comment on column holdfast.v_capture.snapshot_id is 'Snapshot of the record.';
comment on column holdfast.v_capture.refers_to is
  'For a revisit record: the URL key whose record has the payload, if it differs from url_key.';

create or replace function holdfast.captures_stored(
    p_keys text[], p_digests text[], p_crawl uuid, p_least bigint)
  returns setof holdfast.v_capture
  language plpgsql stable as $$
-- Kept records are left out: they go when what refers to them goes.
begin
  return query
    select c.url_key, c.at, c.url, c.status, c.mime, c.digest, e.directory || '/' || c.file, c.record_offset,
           c.record_length, c.snapshot_id, c.crawl_id, c.refers_to
      from unnest(p_keys, p_digests) p(url_key, digest)
      cross join lateral (
        select o.*
          from holdfast.capture o
          where holdfast.same_payload(o.url_key, o.digest, p.url_key, p.digest)
            and o.mime <> 'warc/revisit' and o.status = 200 and o.record_length >= p_least
            and (p_crawl is null or o.crawl_id = p_crawl)
          limit 1) c
      cross join lateral (select o.directory
                            from holdfast.snapshot_sealed o
                            where o.snapshot_id = c.snapshot_id and o.crawl_id = c.crawl_id
                            limit 1) e;
end $$;
comment on function holdfast.captures_stored is
  'For payloads (URL keys and digests): sealed records, of a crawl (NULL: of all), that hold them.';

create or replace function holdfast.originals_hold(p_pages holdfast.finished_page[])
  returns void language plpgsql as $$
-- Called by finish for pages whose files refer to records of other crawls ("originals"). A removal locks its
-- crawl for update, then looks for records that refer to it: it sees this page, or this page sees that the
-- records are gone. The worker then captures the page again.
declare
  v_gone uuid;
begin
  perform from holdfast.crawl c
    where c.id in (select o.crawl
                     from unnest(p_pages) p
                     cross join lateral jsonb_to_recordset(p.originals) o(crawl uuid))
    order by c.id
    for key share;
  select o.snapshot into v_gone
    from unnest(p_pages) p
    cross join lateral jsonb_to_recordset(p.originals) o(crawl uuid, snapshot uuid)
    where p.outcome is not null
      and not exists (select from holdfast.snapshot_sealed e
                        where e.snapshot_id = o.snapshot and e.crawl_id = o.crawl)
    limit 1;
  if found then
    raise exception 'its WARC files refer to records of snapshot %, which was removed meanwhile', v_gone
      using errcode = 'HF004';
  end if;
end $$;

create or replace function holdfast.is_referred_to(
    p_key text, p_digest text, p_first uuid, p_last uuid, p_snapshot uuid)
  returns boolean language sql stable as $$
  -- Returns true if a revisit record refers to a payload that no other record holds, apart from the records
  -- of snapshot p_snapshot (NULL: of all snapshots) of the crawls from p_first to p_last.
  select exists (select
                   from holdfast.capture r
                   where holdfast.same_payload(coalesce(r.refers_to, r.url_key), r.digest, p_key, p_digest)
                     and r.mime = 'warc/revisit'
                     and not (r.crawl_id between p_first and p_last
                              and (p_snapshot is null or r.snapshot_id = p_snapshot)))
     and not exists (select
                       from holdfast.capture o
                       where holdfast.same_payload(o.url_key, o.digest, p_key, p_digest)
                         and o.mime <> 'warc/revisit'
                         and not (o.crawl_id between p_first and p_last
                                  and (p_snapshot is null or o.snapshot_id = p_snapshot)))
$$;

create or replace function holdfast.captures_leaving(
    p_first uuid, p_last uuid, p_snapshot uuid, p_removed uuid[])
  returns setof holdfast.v_capture language sql stable as $$
  -- Records of snapshots that are deleted, named as for is_referred_to; or of p_removed, which are in
  -- removed_page.
  select c.url_key, c.at, c.url, c.status, c.mime, c.digest, c.file, c.record_offset, c.record_length,
         c.snapshot_id, c.crawl_id, c.refers_to
    from holdfast.capture_of_page c
    where not c.removed and p_removed is null and c.crawl_id between p_first and p_last
      and (p_snapshot is null or c.snapshot_id = p_snapshot)
  union all
  select c.url_key, c.at, c.url, c.status, c.mime, c.digest, c.file, c.record_offset, c.record_length,
         c.snapshot_id, c.crawl_id, c.refers_to
    from holdfast.capture_of_page c
    where c.removed and c.snapshot_id = any (p_removed)
$$;

create or replace function holdfast.captures_kept(
    p_first uuid, p_last uuid, p_snapshot uuid, p_removed uuid[])
  returns void language plpgsql as $$
-- Called before snapshots are deleted, named as for captures_leaving: records to which others refer stay, and
-- records that only these referred to are deleted. The caller has locked their crawls for update (see
-- originals_hold), or the crawls are gone.
begin
  insert into holdfast.kept_capture (
      snapshot_id, position, crawl_id,
      source_file, source_offset, record_length,
      url_key, at, url, status, mime, digest)
    select k.snapshot_id, row_number() over (partition by k.snapshot_id order by k.file, k.record_offset),
           k.crawl_id, k.file, k.record_offset, k.record_length,
           k.url_key, k.at, k.url, k.status, k.mime, k.digest
      from (select distinct on (c.url_key, c.digest) c.*
              from holdfast.captures_leaving(p_first, p_last, p_snapshot, p_removed) c
              where c.mime <> 'warc/revisit'
                and holdfast.is_referred_to(c.url_key, c.digest, p_first, p_last, p_snapshot)
                and not exists (select
                                  from holdfast.kept_capture o
                                  where holdfast.same_payload(o.url_key, o.digest, c.url_key, c.digest))
              order by c.url_key, c.digest, c.at) k;
  with dropped as (
    delete from holdfast.kept_capture k
      using (select distinct coalesce(c.refers_to, c.url_key) as url_key, c.digest
               from holdfast.captures_leaving(p_first, p_last, p_snapshot, p_removed) c
               where c.mime = 'warc/revisit') r
      where holdfast.same_payload(k.url_key, k.digest, r.url_key, r.digest)
        and not holdfast.is_referred_to(k.url_key, k.digest, p_first, p_last, p_snapshot)
      returning k.snapshot_id, k.crawl_id, k.position)
  insert into holdfast.purge (directory)
    select holdfast.kept_directory(d.snapshot_id, d.crawl_id, d.position) from dropped d
    on conflict do nothing;
end $$;

create or replace function holdfast.captures_to_move(p_directories text[])
  returns table (snapshot_id uuid, "position" integer, file text, source_file text, source_offset bigint,
                 record_length bigint)
  language sql stable as $$
  select k.snapshot_id, k.position, holdfast.kept_file(k.snapshot_id, k.crawl_id, k.position), k.source_file,
         k.source_offset, k.record_length
    from unnest(p_directories) d(directory)
    join holdfast.kept_capture k on k.snapshot_id::text = split_part(d.directory, '/', 4)
    where not k.moved and d.directory not like 'kept/%'
    order by k.snapshot_id, k.position
$$;
comment on function holdfast.captures_to_move is
  'Records that must get a file of their own before these directories are deleted.';

create or replace function holdfast.captures_moved(p_snapshot uuid, p_position integer)
  returns void language sql as $$
  update holdfast.kept_capture set moved = true where snapshot_id = p_snapshot and position = p_position
$$;
comment on function holdfast.captures_moved is 'Records that kept records have files of their own.';

create or replace function holdfast.originals_of(p_snapshots uuid[])
  returns setof holdfast.v_capture language sql stable as $$
  -- One row for each payload that is not in its own snapshot.
  select v.*
    from (select distinct r.snapshot_id, coalesce(r.refers_to, r.url_key) as url_key, r.digest
            from holdfast.capture r
            where r.snapshot_id = any (p_snapshots) and r.mime = 'warc/revisit'
              and not exists (select from holdfast.capture o
                                where o.snapshot_id = r.snapshot_id and o.crawl_id = r.crawl_id
                                  and o.digest = r.digest and o.mime <> 'warc/revisit')) r
    cross join lateral (select o.*
                          from holdfast.v_capture o
                          where holdfast.same_payload(o.url_key, o.digest, r.url_key, r.digest)
                            and o.mime <> 'warc/revisit'
                          limit 1) v
$$;
comment on function holdfast.originals_of is
  'Records of other snapshots to which revisit records of these refer.';

create or replace function holdfast.capture_in(p_snapshot uuid, p_key text)
  returns setof holdfast.v_capture language sql stable rows 1 as $$
  -- A whole answer before a part, a redirect or an error.
  with own as materialized (
    select v.*
      from holdfast.v_capture v
      where v.snapshot_id = p_snapshot and v.url_key = p_key
      order by coalesce(v.status, 200) = 200 desc, coalesce(v.status, 200) < 400 desc, v.status = 206,
               v.at desc
      limit 1)
  select o.* from own o where o.mime <> 'warc/revisit'
  union all
  select x.*
    from own r
    cross join lateral (select o.*
                          from holdfast.v_capture o
                          where holdfast.same_payload(o.url_key, o.digest,
                                                      coalesce(r.refers_to, r.url_key), r.digest)
                            and o.mime <> 'warc/revisit'
                          limit 1) x
    where r.mime = 'warc/revisit'
$$;
comment on function holdfast.capture_in is
  'Returns the record that holds what a URL answered with in a snapshot; no row: it did not ask for it.';

create or replace function holdfast.revisits_broken(p_snapshot uuid)
  returns setof holdfast.v_capture language sql stable as $$
  -- A revisit record may also refer to another URL of its own snapshot: the answer to a POST, for example.
  select r.*
    from holdfast.v_capture r
    where r.snapshot_id = p_snapshot and r.mime = 'warc/revisit'
      and not exists (select
                        from holdfast.v_capture o
                        where holdfast.same_payload(o.url_key, o.digest,
                                                    coalesce(r.refers_to, r.url_key), r.digest)
                          and o.mime <> 'warc/revisit')
      and not exists (select
                        from holdfast.capture o
                        where o.snapshot_id = p_snapshot and o.crawl_id = r.crawl_id
                          and o.digest = r.digest and o.url_key <> r.url_key)
    order by r.file, r.record_offset
$$;
comment on function holdfast.revisits_broken is
  'Revisit records of a snapshot to which no record holds the payload.';

create or replace function holdfast.capture_passes(p_capture holdfast.v_capture, p_filters jsonb)
  returns boolean language sql stable as $$
  -- A pattern matches from the beginning of the field.
  select not exists (
    select
      from jsonb_to_recordset(p_filters) f(field text, how text, negated boolean, value text)
      cross join lateral (
        select case f.field
                 when 'url' then p_capture.url when 'urlkey' then p_capture.url_key
                 when 'status' then coalesce(p_capture.status::text, '-') when 'mime' then p_capture.mime
                 when 'digest' then p_capture.digest
                 else to_char(p_capture.at at time zone 'UTC', 'YYYYMMDDHH24MISS') end as field) x
      where f.negated = case f.how when 'equals' then x.field = f.value
                                   when 'matches' then x.field ~ ('^(?:' || f.value || ')')
                                   else position(f.value in x.field) > 0 end)
$$;
comment on function holdfast.capture_passes is
  'Returns true if a capture passes all filters: objects with field, how (equals, matches, contains), negated, value.';

create or replace function holdfast.has_whole(p_snapshot uuid, p_key text)
  returns boolean language sql stable as $$
  select exists (select from holdfast.capture c
                   where c.url_key = p_key and c.snapshot_id = p_snapshot and c.status = 200)
$$;
comment on function holdfast.has_whole is
  'Returns true if a snapshot has the whole file at a URL. Players that are offered pieces of it beside it show nothing.';

create or replace function holdfast.captures(
    p_first text, p_end text, p_from timestamptz, p_to timestamptz, p_filters jsonb, p_newest boolean,
    p_offset bigint, p_limit bigint)
  returns setof holdfast.v_capture language plpgsql stable as $$
-- By key and time; p_newest: the latest first, for each key from the last.
begin
  perform '' ~ f.value  -- a wrong pattern is an error, also where no capture meets it
    from jsonb_to_recordset(p_filters) f(how text, value text)
    where f.how = 'matches';
  if p_newest then
    return query
      select v.*
        from holdfast.v_capture v
        where v.url_key >= p_first collate "C" and v.url_key < p_end collate "C"
          and v.at >= p_from and v.at <= p_to
          and (p_filters = '[]' or holdfast.capture_passes(v, p_filters))
          and (v.status is distinct from 206 or not holdfast.has_whole(v.snapshot_id, v.url_key))
        order by v.url_key desc, v.at desc, v.snapshot_id desc, v.record_offset desc
        offset p_offset limit p_limit;
    return;
  end if;
  return query
    select v.*
      from holdfast.v_capture v
      where v.url_key >= p_first collate "C" and v.url_key < p_end collate "C"
        and v.at >= p_from and v.at <= p_to
        and (p_filters = '[]' or holdfast.capture_passes(v, p_filters))
        and (v.status is distinct from 206 or not holdfast.has_whole(v.snapshot_id, v.url_key))
      order by v.url_key, v.at, v.snapshot_id, v.record_offset
      offset p_offset limit p_limit;
end $$;
comment on function holdfast.captures is
  'Captures whose URL key k has p_first <= k < p_end, of a time, that pass filters; see capture_passes().';

create or replace function holdfast.captures_count(
    p_first text, p_end text, p_from timestamptz, p_to timestamptz, p_filters jsonb)
  returns bigint language sql stable as $$
  select count(*)
    from holdfast.v_capture v
    where v.url_key >= p_first collate "C" and v.url_key < p_end collate "C"
      and v.at >= p_from and v.at <= p_to
      and (p_filters = '[]' or holdfast.capture_passes(v, p_filters))
      and (v.status is distinct from 206 or not holdfast.has_whole(v.snapshot_id, v.url_key))
$$;
comment on function holdfast.captures_count is 'Returns the number of rows that captures() has.';

create or replace function holdfast.captures_closest(
    p_key text, p_at timestamptz, p_from timestamptz, p_to timestamptz, p_filters jsonb, p_limit bigint)
  returns setof holdfast.v_capture language sql stable as $$
  -- Half of them before the time and half after it are read, so that it is quick for a URL with many.
  select n.*
    from ((select v.*
             from holdfast.v_capture v
             where v.url_key = p_key collate "C" and v.at <= p_at and v.at >= p_from and v.at <= p_to
               and (p_filters = '[]' or holdfast.capture_passes(v, p_filters))
               and (v.status is distinct from 206 or not holdfast.has_whole(v.snapshot_id, v.url_key))
             order by v.at desc limit p_limit)
          union all
          (select v.*
             from holdfast.v_capture v
             where v.url_key = p_key collate "C" and v.at > p_at and v.at >= p_from and v.at <= p_to
               and (p_filters = '[]' or holdfast.capture_passes(v, p_filters))
               and (v.status is distinct from 206 or not holdfast.has_whole(v.snapshot_id, v.url_key))
             order by v.at limit p_limit)) n
    order by abs(extract(epoch from n.at - p_at)), n.at limit p_limit
$$;
comment on function holdfast.captures_closest is 'Captures of a URL key, the closest to a time first.';
