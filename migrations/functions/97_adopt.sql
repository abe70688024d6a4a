-- Rows of sealed pages that are made from files: of an archive whose database is lost (holdfast adopt; only
-- the owner may), and of pages that other programs have archived (holdfast import).

create or replace function holdfast.directories_unknown(p_directories text[])
  returns setof text language sql stable as $$
  select d.directory
    from unnest(p_directories) with ordinality d(directory, n)
    where not exists (select from holdfast.snapshot s where s.id = split_part(d.directory, '/', 4)::uuid)
      and not exists (select from holdfast.purge p where p.directory = d.directory)
      and not exists (select from holdfast.removed_page r
                        where r.snapshot_id = split_part(d.directory, '/', 4)::uuid)
    order by d.n
$$;
comment on function holdfast.directories_unknown is
  'Returns those of these directories of snapshots that no row names: <yyyy>/<mm>/<host>/<id>.';

create or replace function holdfast.collection_adopt(p_id uuid)
  returns boolean language plpgsql as $$
-- Gives an empty collection the identity that an archive carries. Returns false if it has it already.
begin
  perform from holdfast.collection where id <> p_id for update;
  if not found then return false; end if;
  if exists (select from holdfast.crawl) then
    raise exception 'the archive belongs to collection %, and this one holds crawls of its own', p_id
      using errcode = 'HF004', hint = 'Adopt it into a new data directory or an empty database.';
  end if;
  update holdfast.collection set id = p_id;
  return true;
end $$;

create or replace function holdfast.time_of_id(p_id uuid)
  returns timestamptz language sql immutable as $$
  -- Returns the time of an id of version 7.
  select to_timestamp(('x' || left(replace(p_id::text, '-', ''), 12))::bit(48)::bigint / 1000.0)
$$;

create or replace function holdfast.store_crawl(
    p_crawl uuid, p_facts jsonb, p_first_url text, p_event text, p_detail text)
  returns void language plpgsql as $$
-- Stores a sealed crawl without snapshots, unless it exists. p_facts: its crawl.json, or NULL; then only its
-- creation time is known, from its id.
declare
  v_added constant timestamptz := holdfast.time_of_id(p_crawl);
  v_facts holdfast.v_crawl;
begin
  perform from holdfast.crawl where id = p_crawl for no key update;
  if found then return; end if;
  v_facts := jsonb_populate_record(null::holdfast.v_crawl, coalesce(p_facts, '{}'));
  insert into holdfast.crawl (
      id, label, notes, tags, plugins,
      max_depth, priority, created_by,
      first_url, created_at, started_at,
      sealed_at, status, retry_at, outcome,
      stop_reason, retry_of, keep_until)
    values (
      p_crawl, coalesce(v_facts.label, ''), coalesce(v_facts.notes, ''), coalesce(v_facts.tags, '{}'),
      coalesce(v_facts.plugins, '{}'),
      coalesce(v_facts.max_depth, 0), coalesce(v_facts.priority, 0), coalesce(v_facts.created_by, ''),
      coalesce(v_facts.first_url, p_first_url), coalesce(v_facts.created_at, v_added),
      coalesce(v_facts.started_at, v_added),
      coalesce(v_facts.sealed_at, v_added), 'sealed', null, 'empty',
      v_facts.stop_reason, v_facts.retry_of, v_facts.keep_until);
  insert into holdfast.event (lifecycle, object_id, crawl_id, event, to_state, detail)
    values ('crawl', p_crawl, p_crawl, p_event, 'sealed', p_detail);
end $$;

create or replace function holdfast.store_results(p_page jsonb, p_worker uuid)
  returns void language sql as $$
  insert into holdfast.archive_result (
      snapshot_id, crawl_id, fence, plugin, hook_name, status, process_id,
      started_at,
      ended_at,
      output, error,
      output_files, output_bytes, wall_ms, user_ms, system_ms, peak_memory_bytes)
    select p.id, p.crawl_id, p.fence, r.plugin, r.hook_name, r.status, p_worker,
           coalesce(r.ended_at, p.ended_at) - coalesce(r.wall_ms, 0) * interval '1 millisecond',
           coalesce(r.ended_at, p.ended_at),
           coalesce(r.output, ''),
           coalesce(nullif(r.error, ''), case r.status when 'failed' then 'not recorded' else '' end),
           coalesce(r.output_files, '[]'), coalesce(r.output_bytes, 0), r.wall_ms, r.cpu_ms, 0,
           r.peak_memory_bytes
      from jsonb_to_record(p_page) p(
        id uuid, crawl_id uuid, fence bigint, ended_at timestamptz, results jsonb)
      cross join lateral jsonb_to_recordset(p.results) r(
        plugin text, hook_name text, status text, output text, error text, output_files jsonb,
        output_bytes bigint, ended_at timestamptz, wall_ms bigint, cpu_ms bigint, peak_memory_bytes bigint)
$$;

create or replace function holdfast.page_place(p_id uuid, p_crawl uuid, p_url text, p_directory text)
  returns text language sql stable as $$
  -- Returns whether rows of this page can be made: known (there is such a snapshot), removed (its files wait
  -- to be deleted), taken (its crawl has another snapshot of the URL) or new. p_directory: perhaps with
  -- a<fence>.
  select case
           when exists (select from holdfast.purge p
                          where p.directory = regexp_replace(p_directory, '/a[0-9]+$', '')) then 'removed'
           when exists (select from holdfast.removed_page r where r.snapshot_id = p_id) then 'removed'
           when exists (select from holdfast.snapshot s where s.id = p_id) then 'known'
           when exists (select from holdfast.snapshot s
                          where s.url_hash = sha256(convert_to(p_url, 'UTF8')) and s.crawl_id = p_crawl)
             then 'taken'
           else 'new'
         end
$$;

create or replace function holdfast.store_page(p_page jsonb, p_event text)
  returns text language plpgsql as $$
-- Stores a sealed snapshot, its results and its captures, in a crawl that exists or is made. The worker is
-- unknown: an id made from the name of its machine stands for it. Returns the same as page_place(): new, if
-- it was stored.
declare
  v_page record;
  v_worker uuid;
  v_place text;
begin
  select p.* into strict v_page
    from jsonb_to_record(p_page) p(
      id uuid, crawl_id uuid, url text, title text, outcome text, depth integer, fence bigint, tags text[],
      started_at timestamptz, ended_at timestamptz, worker text, directory text, manifest text, bytes bigint,
      files bigint, facts jsonb, bookmarked_at timestamptz, source text, notes text, crawl jsonb);
  v_place := holdfast.page_place(v_page.id, v_page.crawl_id, v_page.url, v_page.directory);
  if v_place <> 'new' then return v_place; end if;
  v_worker := md5('adopted from ' || coalesce(v_page.worker, ''))::uuid;
  perform holdfast.store_crawl(v_page.crawl_id, v_page.crawl, v_page.url, p_event,
    coalesce('from ' || v_page.source, 'from the files of the archive'));
  insert into holdfast.snapshot (
      id, crawl_id, url, url_hash, depth, title,
      tags, created_at, bookmarked_at, source, notes)
    values (
      v_page.id, v_page.crawl_id, v_page.url, sha256(convert_to(v_page.url, 'UTF8')), v_page.depth,
      coalesce(v_page.title, ''),
      holdfast.tags_of(v_page.tags, null), holdfast.time_of_id(v_page.id), v_page.bookmarked_at,
      v_page.source,
      coalesce(v_page.notes, ''))
    on conflict (url_hash, crawl_id) do nothing;
  if not found then return 'taken'; end if;
  insert into holdfast.snapshot_sealed (
      snapshot_id, crawl_id, outcome, fence, owner_id, directory,
      manifest_sha256, bytes, files, title, facts, attempts,
      started_at, sealed_at)
    values (
      v_page.id, v_page.crawl_id, v_page.outcome, v_page.fence, v_worker, v_page.directory,
      v_page.manifest, v_page.bytes, v_page.files, coalesce(v_page.title, ''),
      coalesce(v_page.facts, '{}'), 1,
      v_page.started_at, v_page.ended_at);
  perform holdfast.sites_recount(v_page.crawl_id, v_page.id, 1);
  perform holdfast.store_results(p_page, v_worker);
  perform holdfast.captures_add(v_page.id, v_page.crawl_id, coalesce(p_page -> 'captures', '[]'));
  update holdfast.crawl c
    set snapshots_total = c.snapshots_total + 1,
        seeds_total = c.seeds_total + (v_page.depth = 0)::integer,
        bytes = c.bytes + v_page.bytes,
        snapshots_succeeded = c.snapshots_succeeded + (v_page.outcome = 'succeeded')::integer,
        snapshots_partial = c.snapshots_partial + (v_page.outcome = 'partial')::integer,
        snapshots_failed = c.snapshots_failed + (v_page.outcome = 'failed')::integer,
        max_depth = greatest(c.max_depth, v_page.depth),
        sealed_at = case when c.status = 'sealed' then greatest(c.sealed_at, v_page.ended_at) end
    where c.id = v_page.crawl_id;
  update holdfast.crawl c
    set outcome = coalesce(nullif(v_page.crawl ->> 'outcome', 'empty'),
                           case when c.snapshots_succeeded + c.snapshots_partial = 0 then 'failed'
                                when c.snapshots_partial + c.snapshots_failed = 0 then 'succeeded'
                                else 'partial' end)
    where c.id = v_page.crawl_id and c.status = 'sealed';
  insert into holdfast.event (lifecycle, object_id, crawl_id, event, to_state, detail)
    values ('snapshot', v_page.id, v_page.crawl_id, p_event, 'sealed',
            concat_ws(', from ', v_page.directory, v_page.source));
  return 'new';
end $$;

create or replace function holdfast.adopt(p_page jsonb)
  returns text language sql as $$
  -- Stores a snapshot from an attempt's index.jsonl. Returns adopted, known or removed.
  select case a.place when 'new' then 'adopted' when 'taken' then 'known' else a.place end
    from holdfast.store_page(p_page, 'adopt') a(place)
$$;

create or replace function holdfast.adopt_kept(p_directory text, p_record jsonb)
  returns boolean language plpgsql as $$
-- A record of a removed snapshot, in kept/<crawl>/<snapshot>/<position>, unless nothing refers to it.
-- p_record: as captures_add() takes them. After the snapshots.
declare
  v_parts constant text[] := string_to_array(p_directory, '/');
  v_crawl constant uuid := v_parts[2];
  v_snapshot constant uuid := v_parts[3];
  v_position constant integer := v_parts[4];
begin
  insert into holdfast.kept_capture (
      snapshot_id, position, crawl_id, source_file, source_offset, record_length, moved,
      url_key, at, url, status, mime, digest)
    select v_snapshot, v_position, v_crawl, holdfast.kept_file(v_snapshot, v_crawl, v_position), 0,
           c.record_length, true, c.url_key, c.at, c.url, c.status, c.mime, c.digest
      from jsonb_populate_record(null::holdfast.capture, p_record) c
      where holdfast.is_referred_to(c.url_key, c.digest, v_crawl, v_crawl, v_snapshot)
    on conflict do nothing;
  return found;
end $$;
comment on function holdfast.adopt_kept is 'Adds a kept record, whose file is in the archive, to the index again.';

create or replace function holdfast.import_check(p_pages jsonb)
  returns table (n bigint, place text) language sql stable as $$
  select p.n, holdfast.page_place((p.page ->> 'id')::uuid, (p.page ->> 'crawl_id')::uuid, p.page ->> 'url',
                                  p.page ->> 'directory')
    from jsonb_array_elements(p_pages) with ordinality p(page, n)
    order by p.n
$$;
comment on function holdfast.import_check is
  'Returns for pages [{id, crawl_id, url, directory}] to be imported: new, known, taken (the crawl has another '
  'snapshot of the URL) or removed (files wait to be deleted).';

create or replace function holdfast.import_pages(p_pages jsonb)
  returns table (n bigint, place text) language plpgsql as $$
-- In the order of crawls and ids, so that concurrent calls lock crawls in one order.
declare
  v_page record;
begin
  for v_page in
    select p.page, p.n
      from jsonb_array_elements(p_pages) with ordinality p(page, n)
      order by (p.page ->> 'crawl_id')::uuid, (p.page ->> 'id')::uuid
  loop
    if coalesce(v_page.page ->> 'source', '') = '' then
      raise exception 'an imported page needs a source' using errcode = 'HF004';
    end if;
    n := v_page.n;
    place := holdfast.store_page(
      jsonb_set(v_page.page, '{crawl}',
                holdfast.crawl_by_caller(coalesce(nullif(v_page.page -> 'crawl', 'null'), '{}'))),
      'import');
    if place = 'new' then perform holdfast.crawl_page_changes((v_page.page ->> 'crawl_id')::uuid); end if;
    return next;
  end loop;
end $$;
comment on function holdfast.import_pages is
  'Stores sealed pages that another program has archived, whose files are in the archive; answers as '
  'import_check(). May be repeated.';
