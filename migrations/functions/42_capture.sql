-- The index of WARC files: rows of holdfast.capture, written with the seal, and how replay tools look them
-- up.

create or replace function holdfast.captures_add(p_snapshot uuid, p_crawl uuid, p_captures jsonb)
  returns void language sql as $$
  -- What a sealed page's WARC files hold.
  insert into holdfast.capture (
      snapshot_id, crawl_id, file, record_offset, record_length,
      url_key, at, url, status, mime, digest)
    select p_snapshot, p_crawl, c.file, c.record_offset, c.record_length,
           c.url_key, c.at, c.url, c.status, c.mime, c.digest
      from jsonb_to_recordset(p_captures) as c(
        file text, record_offset bigint, record_length bigint, url_key text, at timestamptz, url text,
        status integer, mime text, digest text)
    on conflict do nothing
$$;

create or replace function holdfast.keep_captures(p_pages holdfast.finished_page[])
  returns void language sql as $$
  -- Of the pages that were sealed with their files.
  select holdfast.captures_add(p.snapshot, p.crawl, p.captures)
    from unnest(p_pages) p
    where p.captures <> '[]'
      and p.outcome in ('succeeded', 'partial', 'failed')
      and p.directory <> ''
$$;

create or replace view holdfast.v_capture as
  select c.url_key, c.at, c.url, c.status, c.mime, c.digest,
         e.directory || '/' || c.file as file, c.record_offset, c.record_length, c.snapshot_id, c.crawl_id
    from holdfast.capture c
    join holdfast.snapshot_sealed e on e.snapshot_id = c.snapshot_id and e.crawl_id = c.crawl_id;
comment on view holdfast.v_capture is
  'Records of WARC files that can be replayed, by URL key and time: what a CDX index has.';
comment on column holdfast.v_capture.url_key is 'The URL by the SURT rules: com,example)/path.';
comment on column holdfast.v_capture.at is 'When it was captured.';
comment on column holdfast.v_capture.url is 'The URL.';
comment on column holdfast.v_capture.status is 'HTTP status; NULL: none.';
comment on column holdfast.v_capture.mime is 'Media type, warc/revisit or unk.';
comment on column holdfast.v_capture.digest is 'Digest of the payload.';
comment on column holdfast.v_capture.file is 'The WARC file, below the archive root.';
comment on column holdfast.v_capture.record_offset is 'Where the record begins there.';
comment on column holdfast.v_capture.record_length is 'Bytes that it takes there.';
comment on column holdfast.v_capture.snapshot_id is 'Its snapshot.';
comment on column holdfast.v_capture.crawl_id is 'Its crawl.';

create or replace function holdfast.captures(
    p_first text, p_end text, p_from timestamptz, p_to timestamptz, p_newest boolean, p_limit bigint)
  returns setof holdfast.v_capture language plpgsql stable as $$
-- By key and time; p_newest: the latest first, for each key from the last.
begin
  if p_newest then
    return query
      select v.*
        from holdfast.v_capture v
        where v.url_key >= p_first collate "C" and v.url_key < p_end collate "C"
          and v.at >= p_from and v.at <= p_to
        order by v.url_key desc, v.at desc limit p_limit;
    return;
  end if;
  return query
    select v.*
      from holdfast.v_capture v
      where v.url_key >= p_first collate "C" and v.url_key < p_end collate "C"
        and v.at >= p_from and v.at <= p_to
      order by v.url_key, v.at limit p_limit;
end $$;
comment on function holdfast.captures(text, text, timestamptz, timestamptz, boolean, bigint) is
  'Captures whose URL key k has p_first <= k < p_end, of a time.';

create or replace function holdfast.captures_closest(p_key text, p_at timestamptz, p_limit bigint)
  returns setof holdfast.v_capture language sql stable as $$
  -- Half of them before the time and half after it are read, so that it is quick for a URL with many.
  select n.*
    from ((select v.*
             from holdfast.v_capture v
             where v.url_key = p_key collate "C" and v.at <= p_at
             order by v.at desc limit p_limit)
          union all
          (select v.*
             from holdfast.v_capture v
             where v.url_key = p_key collate "C" and v.at > p_at
             order by v.at limit p_limit)) n
    order by abs(extract(epoch from n.at - p_at)), n.at limit p_limit
$$;
comment on function holdfast.captures_closest(text, timestamptz, bigint) is
  'Captures of a URL key, the closest to a time first.';
