-- The file half of the invariants: what `holdfast verify` reads.

create or replace function holdfast.sealed_files(p_id uuid, p_after uuid, p_limit integer)
  returns table (snapshot_id uuid, url text, created_at timestamptz, directory text, manifest_sha256 text) language sql stable as $$
  -- Sealed snapshots in the order of their ids, after p_after; p_id: only this snapshot, or those of this crawl.
  select s.id, s.url, s.created_at, e.directory, e.manifest_sha256
    from holdfast.snapshot s
    join holdfast.snapshot_sealed e on e.snapshot_id = s.id and e.crawl_id = s.crawl_id
    where (p_id is null or s.id = p_id or s.crawl_id = p_id) and (p_after is null or s.id > p_after)
    order by s.id limit p_limit
$$;
comment on function holdfast.sealed_files(uuid, uuid, integer) is 'Where the files of sealed snapshots are, and the digest that was sealed with them.';
