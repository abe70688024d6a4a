-- Shelves. One that is filled by hand has rows in shelf_page, and each change of them is small: two
-- people who edit one shelf lose nothing. One with a rule has the newest capture of each URL that passes
-- its filters now.

create or replace function holdfast.shelf_find(p_name text)
  returns uuid language plpgsql stable as $$
declare
  v_id uuid;
begin
  select s.id into v_id from holdfast.shelf s where s.name = btrim(p_name) or s.id::text = lower(p_name)
    order by s.name = btrim(p_name) desc limit 1;
  if not found then
    raise exception 'there is no shelf "%"', left(p_name, 200) using errcode = 'HF004', hint = 'holdfast shelf list';
  end if;
  return v_id;
end $$;
comment on function holdfast.shelf_find is 'Returns the id of a shelf, by its id or name.';

create or replace function holdfast.shelf_lock(p_id uuid)
  returns holdfast.shelf language plpgsql as $$
declare
  v_shelf holdfast.shelf;
begin
  select * into v_shelf from holdfast.shelf where id = p_id for no key update;
  if not found then
    raise exception 'there is no shelf %', p_id using errcode = 'HF004', hint = 'holdfast shelf list';
  end if;
  return v_shelf;
end $$;

create or replace function holdfast.shelf_pages_of_rule(p_rule jsonb, p_condition text)
  returns text language plpgsql stable as $$
-- Returns the query of the archived pages that pass a rule and a condition. The newest capture of each
-- URL that passes, unless the rule has captures "all". Its columns have the same names at both depths: the
-- innermost count.
declare
  c_pages constant text := '(select s.id, s.crawl_id, s.url, s.url_hash, s.host, s.tags, e.outcome, e.sealed_at'
    ' from holdfast.snapshot s'
    ' join holdfast.snapshot_sealed e on e.snapshot_id = s.id and e.crawl_id = s.crawl_id where e.directory is not null and e.outcome <> ''cancelled'')';
  c_rule constant text := concat_ws(
    ' and ', 'true',
    case when p_rule ? 'q' then
      'id in (select t.snapshot_id from holdfast.page_text t where t.words @@ '
      || quote_literal(holdfast.search_query(p_rule ->> 'q')) || '::tsquery)' end,
    holdfast.has_words(p_rule ->> 'url', lower(p_rule ->> 'host'), p_rule ->> 'tag'),
    'outcome = ' || quote_literal(p_rule ->> 'outcome'),
    'crawl_id = ' || quote_literal((p_rule ->> 'crawl')::uuid),
    'sealed_at >= ' || quote_literal((p_rule ->> 'since')::timestamptz),
    'sealed_at < ' || quote_literal((p_rule ->> 'until')::timestamptz));
begin
  return format('select id, crawl_id from %s p where %s', c_pages, concat_ws(
    ' and ', c_rule, p_condition,
    case when p_rule ->> 'captures' is distinct from 'all' then
      format('not exists (select from %s n where n.url_hash = p.url_hash and n.id > p.id and %s)', c_pages,
             c_rule)
    end));
end $$;

create or replace function holdfast.shelf_pages(p_shelf uuid, p_order text, p_after text, p_limit bigint)
  returns table (id uuid, crawl_id uuid, cursor text) language plpgsql stable as $$
-- p_order: shelf (as it was arranged; of a rule: the latest first), or time: the latest first. p_after:
-- cursor of the row before. A cursor stays valid when its page is taken from the shelf.
#variable_conflict use_column
declare
  v_shelf holdfast.shelf;
begin
  select * into v_shelf from holdfast.shelf s where s.id = p_shelf;
  if v_shelf.rule is not null then
    return query execute format(
      'select p.id, p.crawl_id, p.id::text from (%s) p order by p.id desc limit %L',
      holdfast.shelf_pages_of_rule(v_shelf.rule, 'id < ' || quote_literal(p_after::uuid)), p_limit);
  elsif p_order = 'time' then
    return query
      select p.snapshot_id, p.crawl_id, p.snapshot_id::text
        from holdfast.shelf_page p
        where p.shelf_id = p_shelf and (p_after is null or p.snapshot_id < p_after::uuid)
        order by p.snapshot_id desc limit p_limit;
  else
    return query
      select p.snapshot_id, p.crawl_id, p.position::text
        from holdfast.shelf_page p
        where p.shelf_id = p_shelf and (p_after is null or p.position > p_after::numeric)
        order by p.position limit p_limit;
  end if;
end $$;
comment on function holdfast.shelf_pages is
  'Pages of a shelf by its order (shelf) or the latest first (time), behind a cursor.';

create or replace function holdfast.shelf_has(p_shelf uuid, p_snapshot uuid)
  returns boolean language plpgsql stable as $$
declare
  c_rule constant jsonb := (select s.rule from holdfast.shelf s where s.id = p_shelf);
  v_has boolean;
begin
  if c_rule is null then
    return exists (
      select from holdfast.shelf_page p where p.shelf_id = p_shelf and p.snapshot_id = p_snapshot);
  end if;
  execute format('select exists (%s)',
                 holdfast.shelf_pages_of_rule(c_rule, 'id = ' || quote_literal(p_snapshot))) into v_has;
  return v_has;
end $$;
comment on function holdfast.shelf_has is 'Returns true if a snapshot is on a shelf now.';

create or replace function holdfast.shelf_entries(p_shelf uuid, p_order text, p_after text, p_limit bigint)
  returns table (id uuid, url text, title text, status text, outcome text, created_at timestamptz,
                 sealed_at timestamptz, directory text, thumbnail text, cursor text, "json" jsonb)
  language sql stable as $$
  select v.id, v.url, v.title, v.status, v.outcome, v.created_at, v.sealed_at, v.directory,
         holdfast.thumbnail(v.id, v.crawl_id, v.fence), p.cursor, to_jsonb(v)
    from holdfast.shelf_pages(p_shelf, p_order, p_after, p_limit) with ordinality p(id, crawl_id, cursor, n)
    join holdfast.v_snapshot v on v.id = p.id and v.crawl_id = p.crawl_id
    order by p.n
$$;
comment on function holdfast.shelf_entries is 'Pages of a shelf as shelf_pages() has them, with their snapshots.';

create or replace function holdfast.shelf_refuse(p_state text, p_name text)
  returns boolean language plpgsql stable as $$
-- Raises the refusal for a violated constraint of a shelf.
begin
  if p_state = '23505' then
    raise exception 'there is already a shelf "%"', left(p_name, 200)
      using errcode = 'HF004', hint = 'Choose another name.';
  end if;
  raise exception 'invalid name or description of a shelf' using errcode = 'HF004',
    hint = 'A name has 1 to 200 characters in one line, a description up to 10,000.';
end $$;

create or replace function holdfast.shelf_add(
    p_id uuid, p_name text, p_description text, p_rule jsonb, p_by text)
  returns void language plpgsql as $$
-- May be repeated with the same id. p_rule: NULL: filled by hand.
begin
  perform holdfast.shelf_rule_check(p_rule);
  insert into holdfast.shelf (id, name, description, rule, created_by, changed_by)
    select p_id, btrim(p_name), coalesce(p_description, ''), nullif(p_rule, '{}'), w.who, w.who
      from holdfast.who(p_by) w(who)
    on conflict (id) do nothing;
exception
  when unique_violation or check_violation then
    perform holdfast.shelf_refuse(sqlstate, p_name);
end $$;
comment on function holdfast.shelf_add is 'Makes a shelf.';

create or replace function holdfast.shelf_rule_check(p_rule jsonb)
  returns void language plpgsql stable as $$
-- Plans the query of the rule, which reads its values.
begin
  if p_rule is null or p_rule = '{}' then return; end if;
  if p_rule ? 'q' and numnode(holdfast.search_query(p_rule ->> 'q')) = 0 then
    raise exception 'no word to search for in "%"', left(p_rule ->> 'q', 200) using errcode = 'HF004';
  end if;
  perform holdfast.shelf_pages_of_rule(p_rule, null);
exception when data_exception then
  raise exception 'invalid rule of a shelf: %', sqlerrm using errcode = 'HF004',
    hint = 'Times are like 2026-11-22 or 2026-11-22T14:00:00Z; a crawl is an id.';
end $$;

create or replace function holdfast.shelf_change(p_id uuid, p_version bigint, p_name text, p_description text,
    p_cover text, p_rule jsonb, p_by text)
  returns boolean language plpgsql as $$
-- NULL: stays. p_version: that of the shelf as the caller has seen it; NULL: any. p_cover: a snapshot on
-- the shelf; empty: the first page. p_rule: fields to set; null removes one, and without any the shelf
-- is filled by hand.
declare
  v_old constant holdfast.shelf := holdfast.shelf_lock(p_id);
  v_rule constant jsonb := nullif(
    jsonb_strip_nulls(coalesce(v_old.rule, '{}') || coalesce(p_rule, '{}')), '{}');
  v_cover uuid := v_old.cover;
begin
  if p_version <> v_old.version then
    raise exception 'shelf "%" was changed by % at %', v_old.name, v_old.changed_by,
      holdfast.people_time(v_old.changed_at)
      using errcode = 'HF004', hint = 'Nothing was saved. Look at the shelf again, then repeat the change.';
  end if;
  if p_cover is not null then v_cover := nullif(p_cover, '')::uuid; end if;
  perform holdfast.shelf_rule_check(v_rule);
  if v_rule is not null and v_old.rule is null
     and exists (select from holdfast.shelf_page p where p.shelf_id = p_id) then
    raise exception 'shelf "%" has pages that were put there by hand', v_old.name
      using errcode = 'HF004', hint = 'Make another shelf for the rule.';
  end if;
  update holdfast.shelf s
    set name = coalesce(btrim(p_name), s.name), description = coalesce(p_description, s.description),
        cover = v_cover, rule = v_rule, version = s.version + 1, changed_at = clock_timestamp(),
        changed_by = holdfast.who(p_by)
    where s.id = p_id
      and (s.name, s.description, s.cover, s.rule) is distinct from
          (coalesce(btrim(p_name), s.name), coalesce(p_description, s.description), v_cover, v_rule);
  if not found then return false; end if;
  if v_cover <> coalesce(v_old.cover, p_id) and not holdfast.shelf_has(p_id, v_cover) then
    raise exception 'snapshot % is not on shelf "%"', v_cover, v_old.name using errcode = 'HF004',
      hint = 'Put it there first.';
  end if;
  return true;
exception
  when unique_violation or check_violation then
    return holdfast.shelf_refuse(sqlstate, p_name);
  when invalid_text_representation then
    raise exception 'not a snapshot: "%"', left(p_cover, 100) using errcode = 'HF004', hint = 'Give its whole id.';
end $$;
comment on function holdfast.shelf_change is 'Changes name, description, cover or rule of a shelf.';

create or replace function holdfast.shelf_remove(p_id uuid)
  returns boolean language plpgsql as $$
begin
  delete from holdfast.shelf where id = p_id;
  return found;
end $$;
comment on function holdfast.shelf_remove is 'Deletes a shelf with its links. Its pages stay in the archive.';

create or replace function holdfast.shelf_by_hand(p_id uuid, p_who text)
  returns void language plpgsql as $$
-- Locks a shelf whose pages are about to change.
declare
  v_shelf constant holdfast.shelf := holdfast.shelf_lock(p_id);
begin
  if v_shelf.rule is not null then
    raise exception 'shelf "%" is filled by a rule', v_shelf.name using errcode = 'HF004',
      hint = 'Change its rule, or put the page on another shelf.';
  end if;
  update holdfast.shelf set changed_at = clock_timestamp(), changed_by = p_who where id = p_id;
end $$;

create or replace function holdfast.shelve(p_new uuid, p_ids uuid[], p_shelf text, p_place text, p_by text)
  returns table (shelf uuid, changed bigint) language plpgsql as $$
-- p_ids: snapshots, and crawls for all of their snapshots. p_shelf: an id or a name; a shelf of a new
-- name is made, with the id p_new. p_place: first, last, "before ID" or "after ID", of a page on the
-- shelf; then pages that are on it move there. NULL: new pages at the end, others stay where they are.
-- Positions are the shortest fractions that fit.
#variable_conflict use_column
declare
  v_id uuid := (select s.id from holdfast.shelf s where s.name = btrim(p_shelf) or s.id::text = lower(p_shelf)
                  order by s.name = btrim(p_shelf) desc limit 1);
  m constant text[] := regexp_match(p_place, '^(before|after)\s+([0-9a-f-]{36})$');
  v_pages uuid[];
  v_since jsonb; -- pages that are on it, and since when
  v_beside numeric;
  v_from numeric;
  v_to numeric;
  v_digits integer := 0;
begin
  if p_place is not null and p_place not in ('first', 'last') and m is null then
    raise exception 'not a place on a shelf: "%"', left(p_place, 100)
      using errcode = 'HF004', hint = 'first, last, before ID or after ID, where the id is that of a page on it.';
  end if;
  if v_id is null then
    perform holdfast.shelf_add(p_new, p_shelf, '', null, p_by);
    v_id := p_new;
  end if;
  perform holdfast.shelf_by_hand(v_id, holdfast.who(p_by));
  v_pages := array(
    select x.id
      from (select s.id, min(g.n) as n
              from unnest(p_ids) with ordinality g(id, n)
              join holdfast.snapshot s on s.id = g.id or s.crawl_id = g.id
              group by s.id) x
      where p_place is not null
            or not exists (select from holdfast.shelf_page h where h.shelf_id = v_id and h.snapshot_id = x.id)
      order by x.n, x.id);
  if m is not null then
    v_beside := (select h.position from holdfast.shelf_page h
                   where h.shelf_id = v_id and h.snapshot_id = m[2]::uuid);
    if v_beside is null or m[2]::uuid = any (v_pages) then
      raise exception 'page % is not on the shelf, or is moved itself', m[2]
        using errcode = 'HF004', hint = 'Look at the shelf again.';
    end if;
  end if;
  v_since := (select jsonb_object_agg(h.snapshot_id, h.added_at)
                from holdfast.shelf_page h
                where p_place is not null and h.shelf_id = v_id and h.snapshot_id = any (v_pages));
  delete from holdfast.shelf_page h where h.shelf_id = v_id and h.snapshot_id = any (v_pages);
  v_from := (select max(h.position) from holdfast.shelf_page h
               where h.shelf_id = v_id
                 and case m[1] when 'before' then h.position < v_beside
                               when 'after' then h.position <= v_beside else p_place is distinct from 'first' end);
  v_to := (select min(h.position) from holdfast.shelf_page h
             where h.shelf_id = v_id
               and case m[1] when 'before' then h.position >= v_beside
                             when 'after' then h.position > v_beside else p_place = 'first' end);
  v_from := coalesce(v_from, floor(v_to) - cardinality(v_pages) - 1, 0);
  while cardinality(v_pages) * ('1e-' || v_digits)::numeric >= v_to - v_from loop
    v_digits := v_digits + 1;
  end loop;
  v_from := floor(v_from * ('1e' || v_digits)::numeric) * ('1e-' || v_digits)::numeric;
  insert into holdfast.shelf_page (shelf_id, snapshot_id, crawl_id, position, added_at, added_by)
    select v_id, s.id, s.crawl_id, v_from + g.n * ('1e-' || v_digits)::numeric,
           coalesce((v_since ->> s.id::text)::timestamptz, clock_timestamp()), holdfast.who(p_by)
      from unnest(v_pages) with ordinality g(id, n)
      join holdfast.snapshot s on s.id = g.id;
  shelf := v_id;
  get diagnostics changed = row_count;
  return next;
end $$;
comment on function holdfast.shelve is 'Puts pages on a shelf, or moves them there; makes the shelf if there is none.';

create or replace function holdfast.unshelve(p_ids uuid[], p_shelf text, p_by text)
  returns bigint language plpgsql as $$
declare
  v_id constant uuid := holdfast.shelf_find(p_shelf);
  v_count bigint;
begin
  perform holdfast.shelf_by_hand(v_id, holdfast.who(p_by));
  delete from holdfast.shelf_page h
    where h.shelf_id = v_id and (h.snapshot_id = any (p_ids) or h.crawl_id = any (p_ids));
  get diagnostics v_count = row_count;
  return v_count;
end $$;
comment on function holdfast.unshelve is 'Takes pages, or those of crawls, off a shelf; they stay in the archive.';

create or replace view holdfast.v_shelf as
  select s.id, s.name, s.description, s.cover, s.rule, n.pages, s.version, s.created_at, s.created_by,
         s.changed_at, s.changed_by
    from holdfast.shelf s
    left join lateral (select count(*) as pages from holdfast.shelf_page p where p.shelf_id = s.id) n
      on s.rule is null;
comment on view holdfast.v_shelf is 'Shelves: named sets of pages of any crawls.';
comment on column holdfast.v_shelf.pages is 'Number of pages; NULL: filled by a rule, whose pages are not counted.';

create or replace function holdfast.shelves_of(p_crawl uuid, p_snapshot uuid)
  returns table (id uuid, name text) language sql stable as $$
  select s.id, s.name
    from holdfast.shelf_page p
    join holdfast.shelf s on s.id = p.shelf_id
    where p.crawl_id = p_crawl and p.snapshot_id = p_snapshot
    order by lower(s.name), s.id limit 20
$$;
comment on function holdfast.shelves_of is 'Shelves on which a snapshot was put by hand.';

create or replace function holdfast.shelves(p_limit bigint)
  returns table (id uuid, name text, description text, by_rule boolean, pages bigint, changed_at timestamptz,
                 directory text, thumbnail text) language sql stable as $$
  -- Shelves by name, each with the picture of its cover or, without one, of its first page.
  select v.id, v.name, v.description, v.rule is not null, v.pages, v.changed_at, e.directory,
         holdfast.thumbnail(e.snapshot_id, e.crawl_id, e.fence)
    from (select * from holdfast.v_shelf order by lower(name), id limit p_limit) v
    left join lateral (
      select coalesce(v.cover, (select p.id from holdfast.shelf_pages(v.id, 'shelf', null, 1) p)) as id) c on true
    left join holdfast.snapshot_sealed e on e.snapshot_id = c.id
    order by lower(v.name), v.id
$$;
comment on function holdfast.shelves is 'Shelves by name, each with the picture of its cover.';
