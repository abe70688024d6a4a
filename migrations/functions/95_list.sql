-- Lists that are more than a view with a condition for each filter (lib/catalog/list.cpp has them all).
-- Each query is composed of the filters that were given, so that the planner sees no others, and their
-- values. A value enters as a quoted literal only. A filter of NULL was not given: a string joined to NULL is
-- NULL, and concat_ws() leaves it out. Each list answers quickly in a collection of millions: an index finds
-- the rows, or they are met soon in the order of the list. These functions read tables and run as the owner
-- (99_roles.sql).

create or replace function holdfast.has_part(p_text text, p_part text)
  returns boolean language sql immutable as $$
  select lower(p_text) like '%' || regexp_replace(lower(p_part), '([\\%_])', '\\\1', 'g') || '%'
$$;
comment on function holdfast.has_part is 'Returns true if a text contains another, in any case.';

create or replace function holdfast.index_urls()
  returns text language plpgsql as $$
-- Makes the trigram index that finds parts of URLs. The extension comes with PostgreSQL's contrib package; a
-- user who may create in the database may install it. Without it, a search for a part reads all URLs.
-- Returns why it could not be made; NULL: it is there.
declare
  v_schema text;
begin
  if to_regclass('holdfast.snapshot_by_url_part') is not null then return null; end if;
  create extension if not exists pg_trgm schema public;
  select extnamespace::regnamespace into v_schema from pg_catalog.pg_extension where extname = 'pg_trgm';
  execute format(
    'create index snapshot_by_url_part on holdfast.snapshot using gin (lower(url) %s.gin_trgm_ops)',
    v_schema);
  comment on index holdfast.snapshot_by_url_part is
    'Parts of URLs, for users (--url). Costs 50 bytes and 25 microseconds for each new snapshot.';
  return null;
exception
  when insufficient_privilege or feature_not_supported or undefined_file or invalid_schema_name
       or undefined_object then
    return sqlerrm;
end $$;
do $$ begin perform holdfast.index_urls(); end $$;

create or replace function holdfast.has_words(
    p_url text, p_host text, p_tag text default null, p_exact_url text default null)
  returns text language sql immutable as $$
  -- Returns the condition on url, host and tags of snapshots; NULL: none. A host is a part of its URLs, which
  -- an index finds.
  select nullif(concat_ws(
    ' and ', 'holdfast.has_part(url, ' || quote_literal(p_url) || ')',
    'holdfast.has_part(url, ' || quote_literal(p_host) || ')', 'host = ' || quote_literal(p_host),
    'tags <> ''{}'' and tags @> array[' || quote_literal(p_tag) || ']',
    'url = ' || quote_literal(p_exact_url)), '')
$$;
comment on function holdfast.has_words is 'Returns the condition of a list on words of a URL, a host and a tag.';

create or replace function holdfast.snapshot_ids(p_crawl uuid,
    p_status text, p_outcome text, p_url text, p_tag text, p_host text, p_since timestamptz, p_before uuid,
    p_limit bigint, p_offset bigint default 0, p_exact_url text default null)
  returns uuid[] language plpgsql stable as $$
-- Returns the newest snapshots that pass all filters.
declare
  c_range constant text := concat_ws(
    ' and ', 'true', 'crawl_id = ' || quote_literal(p_crawl), 'id < ' || quote_literal(p_before),
    'id >= ' || quote_literal(holdfast.first_id(p_since)));
  c_words constant text := concat_ws(
    ' and ', 'url_hash = ' || quote_literal(sha256(convert_to(p_exact_url, 'UTF8'))),
    holdfast.has_words(p_url, p_host, p_tag, p_exact_url));
  c_page constant text := format('order by id desc limit %L offset %L', p_limit, p_offset);
  c_queue constant text := 'select snapshot_id as id, crawl_id from holdfast.snapshot_queue where ';
  c_paused constant text :=
    'array(select c.id from holdfast.crawl c where c.status = ''paused'' and c.status <> ''sealed'')';
  c_state constant text := case
    when p_status = 'started' then c_queue || 'owner_id is not null'
    when p_status = 'queued' then c_queue || 'status = ''queued'' and crawl_id <> all (' || c_paused || ')'
    when p_status = 'paused' then
      c_queue || 'status = ''paused'' and retry_at = holdfast.retry_at_max() union all '
      || c_queue || 'status = ''queued'' and owner_id is null and crawl_id = any (' || c_paused || ')'
    when num_nonnulls(p_status, p_outcome) > 0 then
      'select snapshot_id as id, crawl_id from holdfast.snapshot_sealed'
      || coalesce(' where outcome = ' || quote_literal(p_outcome), '') end;
  v_ids uuid[];
begin
  if c_words = '' then
    execute format('select array(select id from (%s) s where %s %s)',
                   coalesce(c_state, 'select * from holdfast.snapshot'), c_range, c_page) into v_ids;
    return v_ids;
  end if;
  -- A frequent word is found among the newest snapshots, a rare one by an index. The second query orders its
  -- finds: snapshots with one word are neighbours, so a walk in the order of ids can be long.
  if c_state is null and p_exact_url is null then
    execute format('select array(select id from (select * from holdfast.snapshot where %s order by id desc'
                   ' limit 2000) s where %s %s)', c_range, c_words, c_page) into v_ids;
    if cardinality(v_ids) = p_limit then return v_ids; end if;
  end if;
  execute format('with found as materialized (select id from holdfast.snapshot %s where %s and %s)'
                 ' select array(select id from found %s)',
                 'join (' || c_state || ') x using (id, crawl_id)', c_range, c_words, c_page) into v_ids;
  return v_ids;
end $$;

create or replace function holdfast.list_snapshots(p_crawl uuid,
    p_snapshot uuid, p_status text, p_url text, p_tag text, p_limit bigint, p_outcome text default null,
    p_host text default null, p_since timestamptz default null, p_before uuid default null,
    p_exact_url text default null, p_until timestamptz default null, p_at timestamptz default null)
  returns setof holdfast.v_snapshot language plpgsql stable as $$
-- p_at: of one URL, the capture that memento_at() chooses.
declare
  c_before constant uuid := least(p_before, holdfast.first_id(p_until));
  c_ids constant uuid[] := case
    when p_snapshot is not null then array[p_snapshot]
    when p_at is not null then array[holdfast.memento_at(coalesce(p_exact_url, p_url), p_at)]
    else holdfast.snapshot_ids(p_crawl, p_status, p_outcome, p_url, p_tag, p_host, p_since, c_before, p_limit,
                               0, p_exact_url) end;
begin
  if p_at is not null and num_nonnulls(p_url, p_exact_url) = 0 then
    raise exception 'at needs a URL' using errcode = 'HF004',
      hint = 'holdfast list snapshots --url https://example.org/ --at 2026-03-01';
  end if;
  return query execute format(
    'select * from holdfast.v_snapshot where %s order by id desc limit %L', concat_ws(
      ' and ', 'id = any ($1)', 'crawl_id = ' || quote_literal(p_crawl), 'status = ' || quote_literal(p_status),
      'outcome = ' || quote_literal(p_outcome), holdfast.has_words(p_url, p_host, p_tag, p_exact_url),
      'id < ' || quote_literal(c_before), 'id >= ' || quote_literal(holdfast.first_id(p_since))), p_limit)
    using c_ids;
end $$;
comment on function holdfast.list_snapshots is 'Snapshots: list snapshots.';

create or replace function holdfast.snapshot_number(
    p_number bigint, p_status text, p_url text, p_tag text, p_since timestamptz,
    p_exact_url text default null)
  returns uuid language sql stable as $$
  select (holdfast.snapshot_ids(null, p_status, null, p_url, p_tag, null, p_since, null, 1, p_number - 1,
                                p_exact_url))[1]
$$;
comment on function holdfast.snapshot_number is
  'Returns the id of the p_number-th newest snapshot of a list, at which the rest of the list begins. NULL: the list '
  'is shorter. Reads ids only, so the rest of a list costs no more than its beginning.';

create or replace function holdfast.rows_by_snapshot(p_view regclass,
    p_crawl uuid, p_url text, p_host text, p_conditions text, p_order text, p_limit bigint)
  returns text language sql stable as $$
  -- Returns the query for rows of a view whose snapshots an index finds: those of a crawl, or with a part in
  -- their URL. "offset 0" looks up the rows of one snapshot after the other: a join would read the rows of
  -- all crawls.
  select format(
    'with found as %smaterialized (select id, crawl_id from holdfast.snapshot where %s) select v.*'
    ' from (select * from found order by id desc) s cross join lateral (select * from %s v'
    ' where v.snapshot_id = s.id and v.crawl_id = s.crawl_id and %s offset 0) v order by %s limit %L',
    case when num_nonnulls(p_url, p_host) = 0 then 'not ' end,
    concat_ws(' and ', 'crawl_id = ' || quote_literal(p_crawl), holdfast.has_words(p_url, p_host)),
    p_view, p_conditions, p_order, p_limit)
$$;

create or replace function holdfast.list_results(p_crawl uuid,
    p_snapshot uuid, p_status text, p_url text, p_limit bigint)
  returns setof holdfast.v_result language plpgsql stable as $$
-- Indexes have the results of a snapshot, and those with an unusual status.
declare
  c_conditions constant text := concat_ws(
    ' and ', 'true', 'snapshot_id = ' || quote_literal(p_snapshot), 'status = ' || quote_literal(p_status));
begin
  return query execute case
    when p_snapshot is null and p_status is distinct from 'started'
         and (p_url is not null or p_crawl is not null and coalesce(p_status, 'succeeded') = 'succeeded')
      then holdfast.rows_by_snapshot('holdfast.v_result', p_crawl, p_url, null, c_conditions,
                                     's.id desc, v.started_at desc', p_limit)
    else format('select * from holdfast.v_result where %s order by snapshot_id desc, started_at desc limit %L',
                concat_ws(' and ', c_conditions, 'crawl_id = ' || quote_literal(p_crawl),
                          holdfast.has_words(p_url, null)), p_limit) end;
end $$;
comment on function holdfast.list_results is 'Results: holdfast list results.';

create or replace function holdfast.list_queue(p_crawl uuid,
    p_snapshot uuid, p_status text, p_url text, p_limit bigint)
  returns setof holdfast.v_queue language plpgsql stable as $$
begin
  return query execute format(
    'select * from holdfast.v_queue where %s order by retry_at limit %L', concat_ws(
      ' and ', 'true', 'crawl_id = ' || quote_literal(p_crawl), 'id = ' || quote_literal(p_snapshot),
      'status = ' || quote_literal(p_status), case when p_status = 'started' then 'owner_id is not null' end,
      holdfast.has_words(p_url, null)), p_limit);
end $$;
comment on function holdfast.list_queue is 'The queue: holdfast list queue.';

create or replace function holdfast.list_failures(p_crawl uuid,
    p_snapshot uuid, p_url text, p_limit bigint, p_plugin text default null, p_host text default null,
    p_since timestamptz default null, p_until timestamptz default null)
  returns setof holdfast.v_failure language plpgsql stable as $$
-- A frequent part of a URL is found among the newest failures, a rare one by the index of snapshots.
declare
  c_words constant text := holdfast.has_words(p_url, p_host);
  c_conditions constant text := concat_ws(
    ' and ', 'true', 'snapshot_id = ' || quote_literal(p_snapshot), 'plugin = ' || quote_literal(p_plugin),
    'ended_at >= ' || quote_literal(p_since), 'ended_at < ' || quote_literal(p_until));
  c_newest constant text := format(
    'select * from holdfast.v_failure where %s order by ended_at desc',
    concat_ws(' and ', c_conditions, 'crawl_id = ' || quote_literal(p_crawl)));
  v_met bigint := p_limit;
begin
  if c_words is not null then
    execute format('select count(*) from (select from (%s limit 2000) f where %s limit %L) x',
                   c_newest, c_words, p_limit) into v_met;
  end if;
  return query execute case when v_met = p_limit
    then format('select * from (%s) f where %s limit %L', c_newest, coalesce(c_words, 'true'), p_limit)
    else holdfast.rows_by_snapshot('holdfast.v_failure', p_crawl, p_url, p_host, c_conditions,
                                   'v.ended_at desc', p_limit) end;
end $$;
comment on function holdfast.list_failures is 'Failures: holdfast list failures.';

create or replace function holdfast.snapshot_events(p_snapshot uuid)
  returns setof holdfast.v_event language sql stable as $$
  -- Its starts and its seal are recorded together with those of others, where its id cannot be found. Its own
  -- rows have them as well; id is NULL for these.
  select e.at, e.lifecycle, e.object_id, e.crawl_id, e.from_state, e.event, e.to_state, p.label, e.detail,
         e.id
    from holdfast.event e
    left join holdfast.process p on p.id = e.process_id
    where e.object_id = p_snapshot
  union all
  select s.at, 'snapshot', p_snapshot, a.crawl_id, s.from_state, s.event, s.to_state, p.label, s.detail, null
    from (select crawl_id, process_id, claimed_at,
                 case when ending = 'sealed' then ended_at end as sealed_at, reason
            from holdfast.v_attempt
            where snapshot_id = p_snapshot
          union all
          select crawl_id, owner_id, claimed_at, null, null
            from holdfast.snapshot_queue
            where snapshot_id = p_snapshot) a
    cross join lateral (values
      (a.claimed_at, 'queued', 'start', 'started', null),
      (a.sealed_at, 'started', 'seal', 'sealed', a.reason)) s(at, from_state, event, to_state, detail)
    left join holdfast.process p on p.id = a.process_id
    -- A refusal has an event of its own.
    where s.at is not null and (s.event = 'start' or s.detail not like 'refused%')
$$;

create or replace function holdfast.list_events(p_crawl uuid, p_snapshot uuid, p_limit bigint)
  returns setof holdfast.v_event language plpgsql stable as $$
begin
  return query execute format(
    'select * from %s v where %s order by %s id desc limit %L',
    coalesce('holdfast.snapshot_events(' || quote_literal(p_snapshot) || ')', 'holdfast.v_event'),
    coalesce('crawl_id = ' || quote_literal(p_crawl), 'true'), case when p_snapshot is not null then 'at desc,' end,
    p_limit);
end $$;
comment on function holdfast.list_events is 'Events: holdfast list events.';

create or replace function holdfast.list_events_after(p_id bigint, p_limit bigint, p_crawl uuid)
  returns setof holdfast.v_event language plpgsql stable as $$
-- The limit counts ids: one id may be the event of many snapshots, and its rows stay together.
declare
  c_condition constant text := format(
    concat_ws(' and ', 'id > %L', 'crawl_id = ' || quote_literal(p_crawl)), p_id);
begin
  return query execute format(
    'select * from holdfast.v_event where %s and id <= (select max(id) from (select id from holdfast.event where %1$s'
    ' order by id limit %L) n) order by id', c_condition, p_limit);
end $$;
comment on function holdfast.list_events_after is
  'Events in their order, of so many ids after one: holdfast events --follow.';

create or replace function holdfast.feed_entries(p_watch text, p_tag text, p_shelf text)
  returns table (name text, title text, entry_id text, entry_title text, at text, snapshot_id uuid, url text,
                 said text)
  language sql stable as $$
  -- The newest 50 notices of a watch, changes of pages with a tag, or pages on a shelf, or, all empty,
  -- notices of all watches. The first row has the feed's name also if there are none; no row: there is no
  -- such watch or shelf.
  with subject as (
    (select 'watch:' || s.id as name, coalesce(nullif(s.label, ''), s.urls[1]) as title, s.id, s.created_at
       from holdfast.schedule s
       where p_watch <> '' and s.watch is not null and s.id in (select holdfast.schedule_find(p_watch))
       order by s.created_at desc
       limit 1)
    union all
    select case p_tag when '' then 'watches' else 'tag:' || p_tag end,
           case p_tag when '' then 'Watches' else 'Changes: ' || p_tag end, null, '2026-01-01'
      where p_watch = '' and p_shelf = ''
    union all
    (select 'shelf:' || s.id, s.name, s.id, s.created_at
       from holdfast.shelf s
       where p_shelf <> '' and (s.name = btrim(p_shelf) or s.id::text = lower(p_shelf))
       order by s.name = btrim(p_shelf) desc
       limit 1)
  ), entry as (
    (select 'notice:' || n.id as id, coalesce(nullif(s.label, ''), s.urls[1]) as title, n.at, n.snapshot_id,
            s.urls[1] as url, array_to_string(n.said, '; ') as said
       from subject b
       join holdfast.notice n on n.schedule_id = b.id or b.id is null
       join holdfast.schedule s on s.id = n.schedule_id
       where p_tag = ''
       order by n.id desc
       limit 50)
    union all
    (select 'change:' || c.id, coalesce(nullif(c.title, ''), c.url), c.sealed_at, c.id, c.url,
            case c.change
              when 'text' then format('text: %s words added, %s removed', coalesce(c.words_added, 0),
                                      coalesce(c.words_removed, 0))
              when 'links' then format('links: %s added, %s removed', coalesce(c.links_added, 0),
                                       coalesce(c.links_removed, 0))
              when 'look' then format('look: %s %% of the page', round(100 * c.look_share, 1))
              else c.change end
       from holdfast.v_change c
       where p_tag <> '' and c.tags @> array[p_tag]
       order by c.sealed_at desc
       limit 50)
    union all
    select 'shelved:' || v.id, coalesce(nullif(v.title, ''), v.url), coalesce(p.added_at, v.sealed_at), v.id, v.url,
           format('on the shelf "%s"', b.title)
      from subject b
      cross join lateral (
        (select h.snapshot_id as id, h.crawl_id, h.added_at
           from holdfast.shelf_page h
           where h.shelf_id = b.id
           order by h.added_at desc
           limit 50)
        union all
        select h.id, h.crawl_id, null
          from holdfast.shelf s
          cross join lateral holdfast.shelf_pages(s.id, 'time', null, 50) h
          where s.id = b.id and s.rule is not null) p
      join holdfast.v_snapshot v on v.id = p.id and v.crawl_id = p.crawl_id
      where p_shelf <> ''
  )
  select b.name, b.title, e.id, e.title || ': ' || e.said,
         to_char(coalesce(e.at, b.created_at) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), e.snapshot_id,
         e.url, e.said
    from subject b
    left join entry e on true
    order by e.at desc nulls last
$$;
comment on function holdfast.feed_entries is 'Returns the entries of the Atom feed of a watch, a tag or a shelf.';
