-- Finished crawls: retry, tags, retention, removal. Removing rows lists their directories in holdfast.purge,
-- in the same transaction. The runner, or a worker that can reach the archive, deletes the files.

create or replace function holdfast.retry_seeds(
    p_new uuid, p_ids uuid[], p_failed boolean, p_plugins text[], p_max_depth integer)
  returns bigint language plpgsql as $$
-- Seeds of the new crawl: the URLs that crawl_retry was given. Returns how many.
declare
  v_count bigint;
begin
  insert into holdfast.crawl_seed (crawl_id, position, url, title, tags, bookmarked_at, notes, depth)
    select p_new, row_number() over (order by u.depth, u.id), u.url, u.title, u.tags, u.bookmarked_at,
           u.notes,
           -- The links of an archived page were followed.
           case when u.archived then p_max_depth else u.depth end
      from (select distinct on (s.url_hash)
                   s.id, s.url, coalesce(s.given_title, nullif(e.title, ''), s.title) as title, s.tags,
                   s.bookmarked_at, s.notes,
                   least(s.depth, p_max_depth) as depth,
                   e.outcome in ('succeeded', 'partial') as archived
              from unnest(p_ids) i(id)
              join holdfast.snapshot s on s.id = i.id or s.crawl_id = i.id
              join holdfast.snapshot_sealed e on e.snapshot_id = s.id and e.crawl_id = s.crawl_id
              where p_failed is not true or (p_plugins = '{}' and e.outcome <> 'succeeded')
                 or exists (select
                              from holdfast.archive_result r
                              where r.snapshot_id = s.id and r.crawl_id = s.crawl_id and r.fence = e.fence
                                and r.status = 'failed' and r.plugin = any (p_plugins))
              order by s.url_hash, s.depth) u;
  get diagnostics v_count = row_count;
  return v_count;
end $$;

create or replace function holdfast.crawl_retry(p_new uuid,
    p_ids uuid[], p_failed boolean, p_plugins text[], p_by text)
  returns bigint language plpgsql as $$
-- Sealed snapshots never change, so retrying adds a new crawl of their URLs, each at its old depth, with the
-- options of the first crawl in p_ids. May be repeated with the same p_new. Without URLs it adds nothing.
declare
  v_source holdfast.crawl;
  v_plugins constant text[] := coalesce(p_plugins, '{}');
  v_count bigint;
begin
  if p_new is null or p_new = any (p_ids) then
    raise exception 'the new crawl needs its own id'
      using errcode = 'HF004', hint = 'holdfast.new_uuid() makes one.';
  end if;
  select seeds_total into v_count from holdfast.crawl where id = p_new;
  if found then return v_count; end if;
  select c.* into v_source
    from unnest(p_ids) with ordinality i(id, n)
    join holdfast.crawl c
      on c.id = i.id or c.id = (select s.crawl_id from holdfast.snapshot s where s.id = i.id)
    order by i.n limit 1;
  if not found then raise exception 'there is no such crawl or snapshot' using errcode = 'HF004'; end if;
  perform holdfast.crawl_add(p_new,
    (select jsonb_object_agg(key, value)
       from jsonb_each(to_jsonb(v_source))
       where key = any (holdfast.crawl_option_names(p_retry => true)))
    || case when v_plugins <> '{}' then jsonb_build_object('plugins', v_plugins) else '{}' end
    || jsonb_build_object('label',
                          coalesce(regexp_replace(nullif(v_source.label, ''), '( \(again\))+$', '')
                                   || ' (again)', ''),
                          'retry_of', v_source.id, 'created_by', holdfast.who(p_by)));
  v_count := holdfast.retry_seeds(p_new, p_ids, p_failed, v_plugins, v_source.max_depth);
  if v_count = 0 then
    delete from holdfast.crawl where id = p_new;
    delete from holdfast.event where object_id = p_new;
    return 0;
  end if;
  update holdfast.crawl
    set seeds_total = v_count, seeds_left = v_count,
        first_url = (select url from holdfast.crawl_seed where crawl_id = p_new order by position limit 1),
        persona = case persona
                    when '' then holdfast.persona_of(array(
                      select s.url from holdfast.crawl_seed s where s.crawl_id = p_new))
                    else persona end
    where id = p_new;
  perform holdfast.control_done('retry', 'crawl', v_source.id::text, v_source.id, holdfast.who(p_by),
    format('%s, as crawl %s', holdfast.people_count(v_count, 'URL'), p_new), 0);
  return v_count;
end $$;
comment on function holdfast.crawl_retry is
  'Adds crawl p_new (holdfast.new_uuid()) of the URLs of crawls and snapshots p_ids; p_failed: only what '
  'failed, in one of p_plugins if there are any; p_plugins: run only these (''{}'': all). Returns how many '
  'URLs.';

create or replace function holdfast.crawl_options(p_crawl uuid)
  returns table (plugins text[], options jsonb, persona text) language sql stable as $$
  select c.plugins, c.options, c.persona from holdfast.crawl c where c.id = p_crawl
$$;
comment on function holdfast.crawl_options is 'Returns the options of a crawl, as they were when it was added.';

create or replace function holdfast.crawl_describe(p_crawl uuid,
    p_label text, p_notes text, p_add text[], p_remove text[], p_by text)
  returns bigint language plpgsql as $$
-- NULL: unchanged. The snapshots get the tags too, also sealed ones; returns how many changed.
declare
  v_crawl constant holdfast.crawl := holdfast.crawl_lock(p_crawl);
  v_changed uuid[];
begin
  update holdfast.crawl c
    set label = coalesce(p_label, c.label), notes = coalesce(p_notes, c.notes),
        tags = holdfast.tags_of(c.tags, p_add, p_remove)
    where c.id = p_crawl;
  with changed as (
    update holdfast.snapshot s
      set tags = holdfast.tags_of(s.tags, p_add, p_remove)
      where s.crawl_id = p_crawl
        and (not coalesce(p_add, '{}') <@ s.tags or s.tags && coalesce(p_remove, '{}'))
      returning s.id
  )
  select coalesce(array_agg(c.id), '{}') into v_changed from changed c;
  perform holdfast.text_again(p_crawl, v_changed);
  if v_crawl.status = 'sealed' then perform holdfast.crawl_page_changes(p_crawl); end if;
  perform holdfast.control_done('edit', 'crawl', p_crawl::text, p_crawl, holdfast.who(p_by),
    concat_ws(', ', holdfast.changed_text('label', v_crawl.label, coalesce(p_label, v_crawl.label)),
              holdfast.changed_text('notes', v_crawl.notes, coalesce(p_notes, v_crawl.notes)),
              '+' || nullif(array_to_string(p_add, ' +'), ''),
              '-' || nullif(array_to_string(p_remove, ' -'), '')), 0);
  return cardinality(v_changed);
end $$;
comment on function holdfast.crawl_describe is 'Changes label, notes and tags.';

create or replace function holdfast.changed_text(p_name text, p_from text, p_to text)
  returns text language sql immutable as $$
  -- For the record of an edit: what it was and what it is; NULL: it did not change.
  select format('%s "%s" -> "%s"', p_name, coalesce(p_from, ''), coalesce(p_to, ''))
    where p_from is distinct from p_to
$$;

create or replace function holdfast.snapshot_describe(
    p_snapshot uuid, p_title text, p_notes text, p_add text[], p_remove text[], p_by text)
  returns boolean language plpgsql as $$
-- Also changes a sealed page: these columns are not part of the seal. NULL: unchanged; an empty p_title: that
-- of the page again. Returns false if nothing changed. v_control has the old values.
declare
  v_was holdfast.snapshot;
  v_is holdfast.snapshot;
begin
  select * into v_was from holdfast.snapshot where id = p_snapshot for no key update;
  if not found then return false; end if;
  update holdfast.snapshot s
    set given_title = case when p_title is null then s.given_title else nullif(p_title, '') end,
        notes = coalesce(p_notes, s.notes),
        tags = case when coalesce(p_add, '{}') <@ s.tags and not s.tags && coalesce(p_remove, '{}') then s.tags
                    else holdfast.tags_of(s.tags, p_add, p_remove) end
    where s.id = p_snapshot and s.crawl_id = v_was.crawl_id
    returning * into v_is;
  if (v_is.given_title, v_is.notes, v_is.tags)
     is not distinct from (v_was.given_title, v_was.notes, v_was.tags) then
    return false;
  end if;
  perform holdfast.text_again(v_was.crawl_id, array[p_snapshot]);
  if v_is.given_title is distinct from v_was.given_title
     and exists (select from holdfast.crawl where id = v_was.crawl_id and status = 'sealed') then
    perform holdfast.crawl_page_changes(v_was.crawl_id);
  end if;
  perform holdfast.control_done('edit', 'snapshot', p_snapshot::text, v_was.crawl_id, holdfast.who(p_by),
    concat_ws(', ', holdfast.changed_text('title', v_was.given_title, v_is.given_title),
              holdfast.changed_text('notes', v_was.notes, v_is.notes),
              holdfast.changed_text('tags', array_to_string(v_was.tags, ' '),
                                    array_to_string(v_is.tags, ' '))), 0);
  return true;
end $$;
comment on function holdfast.snapshot_describe is 'Changes title, notes and tags of a snapshot.';

create or replace function holdfast.crawl_keep(p_crawl uuid, p_for interval)
  returns timestamptz language plpgsql as $$
declare
  v_until constant timestamptz := clock_timestamp() + p_for;
begin
  if p_for < '0' then
    raise exception 'keep must not be negative' using errcode = 'HF004', hint = 'for example 90d, or forever';
  end if;
  perform holdfast.crawl_lock(p_crawl);
  update holdfast.crawl set keep_until = v_until where id = p_crawl;
  return v_until;
end $$;
comment on function holdfast.crawl_keep is 'Sets how long a crawl is kept from now on; NULL: for ever.';

create or replace function holdfast.crawls_expired(p_limit bigint)
  returns setof uuid language sql stable as $$
  select id
    from holdfast.crawl
    where keep_until < clock_timestamp() and status = 'sealed'
    order by keep_until limit p_limit
$$;
comment on function holdfast.crawls_expired is 'Sealed crawls past keep_until.';

create or replace function holdfast.crawl_remove(p_crawl uuid, p_by text)
  returns bigint language plpgsql as $$
-- Returns 1, or 0 if there is no such crawl.
declare
  v_status text;
  v_count bigint;
  v_before text;
begin
  select status into v_status from holdfast.crawl where id = p_crawl for update;
  if not found then return 0; end if;
  if v_status <> 'sealed' then
    raise exception 'crawl % is not sealed', p_crawl using errcode = 'HF004', hint = 'Cancel it first.';
  end if;
  insert into holdfast.purge (directory)
    select regexp_replace(e.directory, '/a[0-9]+$', '')
      from holdfast.snapshot_sealed e
      where e.crawl_id = p_crawl and e.directory is not null
    on conflict do nothing;
  get diagnostics v_count = row_count;
  perform holdfast.captures_kept(p_crawl, p_crawl, null, null);
  perform holdfast.sites_recount(p_crawl, null, -1);
  v_before := holdfast.set_change_sealed('on');
  delete from holdfast.crawl where id = p_crawl;
  perform holdfast.set_change_sealed(v_before);
  perform holdfast.crawl_page_changes(p_crawl);
  return holdfast.control_done('remove', 'crawl', p_crawl::text, p_crawl, holdfast.who(p_by),
    v_count || ' directories', 0);
end $$;
comment on function holdfast.crawl_remove is 'Deletes a sealed crawl; its directories are listed in purge.';

create or replace function holdfast.snapshot_remove(p_snapshot uuid, p_by text)
  returns bigint language plpgsql as $$
-- Returns 1, or 0 if there is no such snapshot. Removing the last one removes the crawl. Pages that were
-- found on the removed one remember its URL.
declare
  v_crawl holdfast.crawl;
  v_sealed holdfast.snapshot_sealed;
  v_url text;
  v_before text;
begin
  select c.* into v_crawl
    from holdfast.crawl c
    where c.id = (select s.crawl_id from holdfast.snapshot s where s.id = p_snapshot)
    for update;
  if not found then return 0; end if;
  if v_crawl.status <> 'sealed' then
    raise exception 'snapshot % belongs to crawl %, which is not sealed', p_snapshot, v_crawl.id
      using errcode = 'HF004', hint = 'Wait until its crawl has ended, or cancel it.';
  end if;
  if v_crawl.snapshots_total = 1 then
    perform holdfast.crawl_remove(v_crawl.id, holdfast.who(p_by));
    return 1;
  end if;
  select * into strict v_sealed
    from holdfast.snapshot_sealed e
    where e.snapshot_id = p_snapshot and e.crawl_id = v_crawl.id;
  insert into holdfast.purge (directory)
    select regexp_replace(v_sealed.directory, '/a[0-9]+$', '') where v_sealed.directory is not null
    on conflict do nothing;
  perform holdfast.captures_kept(v_crawl.id, v_crawl.id, p_snapshot, null);
  perform holdfast.sites_recount(v_crawl.id, p_snapshot, -1);
  v_before := holdfast.set_change_sealed('on');
  delete from holdfast.snapshot where id = p_snapshot and crawl_id = v_crawl.id returning url into v_url;
  delete from holdfast.shelf_page where snapshot_id = p_snapshot and crawl_id = v_crawl.id;
  update holdfast.snapshot
    set parent_id = null, found_on = v_url
    where parent_id = p_snapshot and crawl_id = v_crawl.id;
  perform holdfast.set_change_sealed(v_before);
  update holdfast.crawl
    set snapshots_total = snapshots_total - 1, bytes = bytes - v_sealed.bytes,
        snapshots_succeeded = snapshots_succeeded - (v_sealed.outcome = 'succeeded')::integer,
        snapshots_partial = snapshots_partial - (v_sealed.outcome = 'partial')::integer,
        snapshots_cancelled = snapshots_cancelled - (v_sealed.outcome = 'cancelled')::integer,
        snapshots_failed = snapshots_failed
          - (v_sealed.outcome in ('failed', 'refused', 'quarantined'))::integer
    where id = v_crawl.id;
  perform holdfast.crawl_page_changes(v_crawl.id);
  return holdfast.control_done('remove', 'snapshot', p_snapshot::text, v_crawl.id, holdfast.who(p_by), v_url, 0);
end $$;
comment on function holdfast.snapshot_remove is 'Deletes a snapshot of a sealed crawl, as crawl_remove.';

create or replace function holdfast.snapshots_supersede(p_snapshots uuid[])
  returns void language sql as $$
  -- Called by a seal: for crawls that overwrite, marks older snapshots of the same URLs. Only marks, because
  -- their crawls cannot be locked after the sealing one. Of two in p_snapshots the later is newer. The order
  -- avoids deadlock.
  insert into holdfast.superseded (snapshot_id, crawl_id, by_id)
    select distinct on (o.id, o.crawl_id) o.id, o.crawl_id, n.snapshot_id
      from holdfast.snapshot_sealed n
      join holdfast.crawl c on c.id = n.crawl_id and c.overwrite
      join holdfast.snapshot s on s.id = n.snapshot_id and s.crawl_id = n.crawl_id
      join holdfast.snapshot o on o.url_hash = s.url_hash and o.id <> s.id and o.crawl_id <> s.crawl_id
      join holdfast.snapshot_sealed e on e.snapshot_id = o.id and e.crawl_id = o.crawl_id
      where n.snapshot_id = any (p_snapshots) and n.outcome in ('succeeded', 'partial')
        and coalesce(array_position(p_snapshots, o.id) < array_position(p_snapshots, s.id), true)
      order by o.id, o.crawl_id, array_position(p_snapshots, s.id) desc
    on conflict do nothing
$$;

create or replace function holdfast.superseded_remove(p_limit bigint)
  returns bigint language plpgsql as $$
-- Removes marked snapshots of sealed crawls; returns how many. An open crawl would replace a removed page
-- by another one.
declare
  v_row record;
  v_count bigint := 0;
begin
  for v_row in
    select u.snapshot_id, u.by_id
      from holdfast.superseded u
      left join holdfast.crawl c on c.id = u.crawl_id
      where coalesce(c.status, 'sealed') = 'sealed'
      order by u.crawl_id, u.snapshot_id limit p_limit
  loop
    perform holdfast.snapshot_remove(v_row.snapshot_id, 'overwritten by ' || v_row.by_id);
    delete from holdfast.superseded where snapshot_id = v_row.snapshot_id;
    v_count := v_count + 1;
  end loop;
  return v_count;
end $$;

create or replace function holdfast.purge_fill(p_limit bigint default 500)
  returns bigint language plpgsql as $$
-- Works in batches, so that purge stays small. When all pages of a month are listed, drops its tables. Others
-- may do the same at that moment; rows that they have locked are skipped.
declare
  c_none constant uuid := '00000000-0000-0000-0000-000000000000'; -- no crawl: these are gone already
  v_pages uuid[];
  v_table regclass;
  v_empty boolean;
begin
  if (select count(*) from (select from holdfast.purge limit p_limit) p) >= p_limit then return 0; end if;
  v_pages := array(select r.snapshot_id
                     from holdfast.removed_page r
                     order by r.snapshot_id limit p_limit for update skip locked);
  if v_pages <> '{}' then
    perform holdfast.captures_kept(c_none, c_none, null, v_pages);
    insert into holdfast.purge (directory, requested_at)
      select regexp_replace(r.directory, '/a[0-9]+$', ''), r.removed_at
        from holdfast.removed_page r
        where r.snapshot_id = any (v_pages) and r.directory is not null
      on conflict do nothing;
    delete from holdfast.removed_capture where snapshot_id = any (v_pages);
    delete from holdfast.removed_page where snapshot_id = any (v_pages);
    return cardinality(v_pages);
  end if;
  for v_table in
    select i.inhrelid
      from pg_catalog.pg_inherits i
      where i.inhparent in ('holdfast.removed_page'::regclass, 'holdfast.removed_capture'::regclass)
      order by i.inhrelid
  loop
    begin
      execute format('lock table %s in access exclusive mode nowait', v_table);
      execute format('select not exists (select from %s)', v_table) into v_empty;
      if v_empty then execute format('drop table %s', v_table); end if;
    exception
      when lock_not_available or undefined_table then null;
    end;
  end loop;
  return 0;
end $$;
comment on function holdfast.purge_fill is
  'Lists directories of removed months in purge, unless so many are listed already. Returns how many.';

create or replace function holdfast.purge_list(p_limit bigint, p_age interval default '0')
  returns setof text language sql stable as $$
  select p.directory
    from holdfast.purge p
    where p.requested_at <= clock_timestamp() - p_age
    order by p.requested_at limit p_limit
$$;
comment on function holdfast.purge_list is 'Directories to be deleted, listed for at least p_age.';

create or replace function holdfast.purge_done(p_directories text[])
  returns void language sql as $$
  delete from holdfast.purge where directory = any (p_directories)
$$;
comment on function holdfast.purge_done is 'Records that these directories have been deleted.';

create or replace view holdfast.v_purge as
  select p.directory, p.requested_at, clock_timestamp() - p.requested_at as waits
    from holdfast.purge p
    order by p.requested_at;
comment on view holdfast.v_purge is 'Directories of removed snapshots that must still be deleted.';
comment on column holdfast.v_purge.waits is 'Time since the removal.';

create or replace function holdfast.crawl_page_changes(p_crawl uuid)
  returns void language sql as $$
  -- The page of a crawl must be written again.
  insert into holdfast.crawl_page_stale (crawl_id) values (p_crawl)
    on conflict (crawl_id) do update set since = clock_timestamp()
$$;

create or replace function holdfast.crawl_pages_stale(p_limit bigint, p_age interval, p_crawl uuid)
  returns table (crawl_id uuid, since timestamptz, there boolean) language sql stable as $$
  -- p_crawl: only of this crawl. there: false if the crawl was removed, so its page must be deleted.
  select p.crawl_id, p.since, exists (select from holdfast.crawl c where c.id = p.crawl_id)
    from holdfast.crawl_page_stale p
    where p.since <= clock_timestamp() - p_age and (p_crawl is null or p.crawl_id = p_crawl)
    order by p.since limit p_limit
$$;
comment on function holdfast.crawl_pages_stale is 'Pages of crawls to be written or deleted.';

create or replace function holdfast.crawl_page_made(p_crawl uuid, p_since timestamptz)
  returns void language sql as $$
  delete from holdfast.crawl_page_stale where crawl_id = p_crawl and since <= p_since
$$;
comment on function holdfast.crawl_page_made is 'Records that the page of a crawl shows its state at that time.';
