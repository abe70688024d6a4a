-- Queries of holdfast export.

create or replace function holdfast.export_snapshots(
    p_ids uuid[], p_tag text, p_host text, p_since timestamptz, p_until timestamptz, p_after uuid,
    p_limit bigint)
  returns table (
    snapshot_id uuid, crawl_id uuid, url text, title text, captured_at timestamptz, directory text,
    tags text[], notes text, bookmarked_at timestamptz)
  language sql stable as $$
  with asked as (
    select s.*
      from holdfast.snapshot s
      where p_ids is null and (p_after is null or s.id > p_after)
    union all
    select s.*
      from holdfast.snapshot s
      where s.crawl_id = any (p_ids) and (p_after is null or s.id > p_after)
    union all
    select s.*
      from holdfast.snapshot s
      where s.id = any (p_ids) and s.crawl_id <> all (p_ids) and (p_after is null or s.id > p_after)
  )
  select s.id, s.crawl_id, s.url, coalesce(s.given_title, nullif(e.title, ''), s.title),
         coalesce(e.started_at, e.sealed_at), e.directory, s.tags, s.notes, s.bookmarked_at
    from asked s
    join holdfast.snapshot_sealed e on e.snapshot_id = s.id and e.crawl_id = s.crawl_id
    where e.directory is not null
      and (p_tag is null or p_tag = any (s.tags))
      and (p_host is null or s.host = p_host)
      and (p_since is null or coalesce(e.started_at, e.sealed_at) >= p_since)
      and (p_until is null or coalesce(e.started_at, e.sealed_at) < p_until)
    order by s.id limit p_limit
$$;
comment on function holdfast.export_snapshots is
  'Sealed snapshots with files, of crawls and snapshots p_ids (NULL: all), by id after p_after.';

create or replace function holdfast.captures_of(p_snapshots uuid[])
  returns setof holdfast.v_capture language sql stable as $$
  select v.*
    from holdfast.v_capture v
    where v.snapshot_id = any (p_snapshots)
    order by v.snapshot_id, v.file, v.record_offset
$$;
comment on function holdfast.captures_of is 'Captures of snapshots, file by file.';
