-- Reading: what an id names, what a page shows, the collection in one row.

create or replace function holdfast.find(p_text text) returns table (kind text, id uuid, crawl_id uuid) language plpgsql stable as $$
-- A whole id is looked up; a shortened one (head or tail, at least four hexadecimal digits) is searched among crawls and the
-- newest 10,000 snapshots and processes, so that it stays quick in a large collection.
#variable_conflict use_column
declare
  v_hex constant text := lower(replace(p_text, '-', ''));
begin
  if v_hex !~ '^[0-9a-f]{4,32}$' then return; end if;
  if length(v_hex) = 32 then
    return query
      select 'crawl', c.id, c.id from holdfast.crawl c where c.id = v_hex::uuid
      union all select 'snapshot', s.id, s.crawl_id from holdfast.snapshot s where s.id = v_hex::uuid
      union all select 'process', p.id, null::uuid from holdfast.process p where p.id = v_hex::uuid;
    return;
  end if;
  return query
    select o.kind, o.id, o.crawl_id from (
      (select 'crawl' as kind, c.id, c.id as crawl_id from holdfast.crawl c order by c.id desc limit 10000)
      union all (select 'snapshot', s.id, s.crawl_id from holdfast.snapshot s order by s.id desc limit 10000)
      union all (select 'process', p.id, null::uuid from holdfast.process p order by p.id desc limit 10000)) o
    where replace(o.id::text, '-', '') like v_hex || '%' or replace(o.id::text, '-', '') like '%' || v_hex
    limit 10;
end $$;
comment on function holdfast.find(text) is 'What an id, whole or shortened, names.';

create or replace function holdfast.crawl_entries(p_crawl uuid, p_limit bigint) returns table (url text, title text, outcome text, depth integer,
    bytes bigint, directory text, thumbnail text) language sql stable as $$
  -- What a crawl's page shows: its sealed snapshots, seeds first, in the order in which they were found.
  select s.url, coalesce(nullif(e.title, ''), s.title), e.outcome, s.depth, e.bytes, e.directory,
         (select 'screenshot/' || (f.file ->> 'path') from holdfast.archive_result r cross join lateral jsonb_array_elements(r.output_files) f(file)
            where r.snapshot_id = s.id and r.crawl_id = s.crawl_id and r.fence = e.fence and r.plugin = 'screenshot'
              and f.file ->> 'type' like 'image/%' limit 1)
    from holdfast.snapshot s
    join holdfast.snapshot_sealed e on e.snapshot_id = s.id and e.crawl_id = s.crawl_id
    where s.crawl_id = p_crawl
    order by s.depth, s.created_at, s.id limit p_limit
$$;
comment on function holdfast.crawl_entries(uuid, bigint) is 'Sealed snapshots of a crawl, for its page.';

create or replace function holdfast.crawl_seeds(p_crawl uuid, p_limit bigint) returns setof text language sql stable as $$
  select s.url from holdfast.snapshot s where s.crawl_id = p_crawl and s.depth = 0 order by s.created_at, s.id limit p_limit
$$;
comment on function holdfast.crawl_seeds(uuid, bigint) is 'The seeds of a crawl that became snapshots.';

create or replace view holdfast.v_status as
  select (select count(*) from holdfast.process p where p.status = 'running' and p.process_type = 'worker' and p.lease_until > statement_timestamp()) as nodes,
         (select coalesce(sum(p.slots), 0) from holdfast.process p where p.status = 'running' and p.process_type = 'worker' and p.lease_until > statement_timestamp()) as slots,
         (select count(*) from holdfast.crawl c where c.status <> 'sealed') as crawls_open,
         (select coalesce(sum(c.snapshots_open + c.seeds_left), 0) from holdfast.crawl c where c.status <> 'sealed') as snapshots_open,
         (select count(*) from holdfast.snapshot_queue q where q.owner_id is not null) as snapshots_held,
         (select count(*) from holdfast.archive_result r where r.ended_at is null) as hooks_running,
         (select count(*) from holdfast.crawl c where c.status = 'paused') as crawls_paused,
         (select max(e.sealed_at) from holdfast.snapshot_sealed e where e.sealed_at > statement_timestamp() - interval '30 days') as last_sealed_at,
         (select count(*) from holdfast.crawl c where c.status in ('queued', 'started')) as crawls_to_do,
         (select c.paused_by from holdfast.collection c where c.paused_at is not null) as paused,
         (select count(*) from holdfast.process p where p.worker_type = 'worker_runner' and p.status = 'running' and p.lease_until > statement_timestamp()) as runners,
         (select count(*) from holdfast.process p where p.process_type = 'worker' and p.exit_reason = 'lease lapsed' and p.ended_at > statement_timestamp() - interval '1 hour') as nodes_lost;
comment on view holdfast.v_status is 'The collection in one row; cheap however large it is.';
