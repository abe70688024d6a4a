-- Reading for the command line: what an id names, and lists with filters.

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
