-- The full-text search in page_text.

create or replace function holdfast.search_query(p_text text)
  returns tsquery language plpgsql stable set client_min_messages = warning as $$
-- Parses a query like websearch_to_tsquery ("a phrase", or, -not), and word* for every word that begins so.
-- Parsed in every language that a page has, because each stems words in its own way. PostgreSQL's notices on
-- stop words are suppressed: users would see them.
declare
  c_word constant text := '[:alnum:]' || holdfast.search_runs();
  c_prefix constant text := '(?:^|\s)([' || c_word || '][' || c_word || '_-]*)\*(?=\s|$)';
  -- Each minus before a word negates, and PostgreSQL fails at 32 of them. Two or more, as in
  -- --option, are taken for blanks.
  c_skipped constant text := '[\s!&|()<>:*]';
  v_text constant text := coalesce(holdfast.search_phrases(holdfast.search_pairs(regexp_replace(p_text,
    '(^|"|' || c_skipped || ')-(?:' || c_skipped || '*-)+', '\1 ', 'g'))), '');
  v_prefixes constant text[] := array(
    select m[1] from regexp_matches(regexp_replace(v_text, '"[^"]*"', ' ', 'g'), c_prefix, 'g') m);
  v_rest constant text := regexp_replace(v_text, c_prefix, ' ', 'g');
  v_language text;
  v_prefix text;
  v_one tsquery;
  v_part tsquery;
  v_known text[] := '{}';
  v_all tsquery := '';
begin
  for v_language in select l.language from holdfast.text_language l order by l.language
  loop
    v_one := websearch_to_tsquery(v_language::regconfig, v_rest);
    if numnode(v_one) = 0 then -- only stop words
      v_one := coalesce((select string_agg(quote_literal(p.pair), ' & ')
                           from unnest(holdfast.search_stop_pairs(v_language, v_rest, true)) p(pair)),
                        '')::tsquery;
    end if;
    foreach v_prefix in array v_prefixes
    loop
      v_part := to_tsquery(v_language::regconfig, quote_literal(v_prefix) || ':*');
      v_one := case when numnode(v_one) = 0 then v_part else v_one && v_part end;
    end loop;
    if numnode(v_one) > 0 and v_one::text <> all (v_known) then
      v_known := v_known || v_one::text;
      v_all := case when numnode(v_all) = 0 then v_one else v_all || v_one end;
    end if;
  end loop;
  return v_all;
end $$;
comment on function holdfast.search_query is 'The tsquery of a search: words, "a phrase", or, -not, begin*.';

create or replace function holdfast.search_excerpt(
    p_text text, p_language text, p_query tsquery, p_marks text[])
  returns text language plpgsql stable as $$
-- Passes only the surroundings of the first hit to ts_headline, which reads its whole input.
declare
  c_around constant integer := 150;
  c_length constant integer := 1500;
  c_nodes constant integer := 100; -- of a query that ts_headline reads; its time grows with their square
  v_words constant text[] := array( -- of a long query, some
    select distinct m[1] from regexp_matches(p_query::text, '''((?:[^'']|'''')+)''', 'g') m limit 64);
  v_lower constant text := lower(holdfast.search_fold(p_text));
  v_at integer;
  v_length integer;
  v_from integer;
  v_found text;
begin
  select x.at, length(w.word)
    into v_at, v_length
    from unnest(v_words) w(word)
    cross join lateral (select nullif(position(w.word in v_lower), 0) as at) x
    where x.at is not null
    order by x.at limit 1;
  if v_at is null then -- search_joined() has taken a mark out of the word
    select nullif(regexp_instr(v_lower, x.pattern), 0), length(regexp_substr(v_lower, x.pattern))
      into v_at, v_length
      from regexp_matches(p_query::text, '''([[:alpha:]]{3,})''', 'g') m
      cross join lateral (
        select '\m' || regexp_replace(regexp_replace(m[1], '(t|re|ve|m)$', '[''’]?\1'), '^.', '\&-?')
                 as pattern) x
      where v_lower ~ x.pattern
      limit 1;
  end if;
  v_from := greatest(1, coalesce(v_at, 1) - c_around);
  v_found := ts_headline(p_language::regconfig, substr(p_text, v_from, c_length),
                case when numnode(p_query) <= c_nodes then p_query
                  else ('''' || array_to_string(v_words, ''' | ''') || '''')::tsquery end,
                format('MaxWords=36, MinWords=18, ShortWord=2, MaxFragments=2, FragmentDelimiter=" … ", '
                       'StartSel="%s", StopSel="%s"', p_marks[1], p_marks[2]));
  -- ts_headline matches words as they are written; a word that is found in its folded form is marked here.
  if v_at is not null and position(p_marks[1] in v_found) = 0 then
    v_found := substr(p_text, v_from, v_at - v_from) || p_marks[1] || substr(p_text, v_at, v_length)
               || p_marks[2] || substr(p_text, v_at + v_length, c_around);
  end if;
  return regexp_replace(v_found, '\s+', ' ', 'g');
end $$;

create or replace function holdfast.url_hashes(p_text text)
  returns bytea[] language sql immutable parallel safe as $$
  -- The hashes of the URLs that a text may be, whole or without scheme, "www." or the slash at its end.
  select coalesce(array_agg(sha256(convert_to(u.scheme || u.host || u.path || u.slash, 'UTF8'))), '{}')
    from (select s.scheme, w.www || lower(m[1]) as host, coalesce(m[2], '') as path, e.slash
            from regexp_matches(
              btrim(p_text),
              '^(?:https?://)?([^-\s/?#"*][^\s/?#"*]*\.[^\s/?#"*]+|localhost(?::\d+)?)([/?][^\s#*]*)?(?:#\S*)?$', 'i') m
            cross join (values ('http://'), ('https://')) s(scheme)
            cross join (values (''), ('www.')) w(www)
            cross join (values (''), ('/')) e(slash)) u
    where u.path <> '' or u.slash = '/'
$$;

create or replace function holdfast.search_passes(
    p_snapshot uuid, p_crawl uuid, p_tag text, p_outcome text, p_since timestamptz, p_until timestamptz)
  returns boolean language sql stable as $$
  -- The filters of search() that are not words.
  select exists (
    select
      from holdfast.snapshot s
      join holdfast.snapshot_sealed e on e.snapshot_id = s.id and e.crawl_id = s.crawl_id
      where s.id = p_snapshot and s.crawl_id = p_crawl
        and (p_tag is null or p_tag = any (s.tags))
        and (p_outcome is null or e.outcome = p_outcome)
        and (p_since is null or e.sealed_at >= p_since)
        and (p_until is null or e.sealed_at < p_until))
$$;

create or replace function holdfast.search(
    p_query text, p_host text default null, p_tag text default null, p_crawl uuid default null,
    p_outcome text default null, p_since timestamptz default null, p_until timestamptz default null,
    p_all boolean default false, p_cursor text default null, p_limit integer default 20,
    p_marks text[] default '{«,»}')
  returns table (id uuid, crawl_id uuid, url text, title text, excerpt text, rank real, outcome text,
                 sealed_at timestamptz, tags text[], directory text, thumbnail text,
                 cursor text)
  language plpgsql stable as $$
-- All pages of a word are ranked, if they are not more than 500. Of a more frequent word, the newest 500
-- and those that have it in their titles are ranked and listed, then the next 500, so that a word of half of
-- all pages need not be ranked in all of them. The page of a URL is before all others. A cursor is
-- "<bound> <rank> <id>" of its row: the batch that it stands in begins below the bound.
-- An index of words does not know which pages are new: each page with the words would be read to find the
-- newest. So a batch is first looked for in a window of the newest pages. If there are too few, the number
-- found there tells how large a window is needed, or that all pages with the words are few. Then they are
-- ordered as texts, lest the planner, which takes unknown words for frequent, read the pages by their ids.
-- Whether words follow each other is only known from the page's row. Pages that have all words of a phrase
-- are found first, and then looked at one by one until there are enough.
#variable_conflict use_column
declare
  c_batch constant integer := 500;
  c_window constant integer := 20000;
  c_widest constant integer := 200000; -- to find where a wider window ends costs more than it saves
  c_first constant uuid := 'ffffffff-ffff-ffff-ffff-ffffffffffff';
  c_filtered constant boolean := num_nonnulls(p_tag, p_outcome, p_since, p_until) > 0;
  v_hashes constant bytea[] := holdfast.url_hashes(p_query);
  v_query tsquery := holdfast.search_query( -- of a URL, what its other spellings have, too, as a phrase
    case when v_hashes = '{}' then p_query
      else '"' || regexp_replace(regexp_replace(btrim(p_query), '^(https?://)?(www\.)?|#.*$', '', 'gi'),
                                 '[^[:alnum:]]+', ' ', 'g') || '"' end);
  v_titles tsquery := v_query;
  v_first uuid[]; -- pages of the URL, and with the words in their titles: of the first batch at any age
  v_words tsquery; -- the same, with any order of the words of a phrase
  v_phrase boolean;
  v_bound uuid := c_first;
  v_rank real := 'infinity';
  v_id uuid := c_first;
  v_left integer := least(greatest(p_limit, 1), 200);
  v_batch uuid[];
  v_window integer; -- NULL: all pages
  v_oldest uuid;
  v_next uuid; -- bound of the next batch; NULL: this is the last
  v_count integer;
begin
  if numnode(v_query) = 0 then return; end if;
  if p_host is not null then v_query := v_query && quote_literal('host:' || lower(p_host))::tsquery; end if;
  v_phrase := v_query::text ~ '<(-|[0-9]+)>' and v_query::text !~ '!'; -- what a phrase excludes has an order
  v_words := case when v_phrase then regexp_replace(v_query::text, '<(-|[0-9]+)>', '&', 'g')::tsquery
               else v_query end;
  v_first := array( -- words of more titles tell nothing
    select t.snapshot_id from holdfast.page_text t where ts_filter(t.words, '{a}') @@ v_titles limit c_batch + 1);
  v_first := array(
    select t.snapshot_id
      from holdfast.page_text t
      where t.snapshot_id = any (
              case when cardinality(v_first) <= c_batch then v_first end
              || array(select s.id
                         from holdfast.snapshot s
                         where s.url_hash = any (v_hashes)
                         order by s.id desc limit c_batch))
        and t.words @@ v_query
        and (p_crawl is null or t.crawl_id = p_crawl)
        and (not c_filtered
             or holdfast.search_passes(t.snapshot_id, t.crawl_id, p_tag, p_outcome, p_since, p_until)));
  if p_cursor is not null then
    if p_cursor !~ '^[0-9a-f-]{36} [0-9.]+(e-[0-9]+)? [0-9a-f-]{36}$' then
      raise exception 'not a cursor of search(): %', p_cursor using errcode = 'HF004';
    end if;
    v_bound := split_part(p_cursor, ' ', 1);
    v_rank := split_part(p_cursor, ' ', 2);
    v_id := split_part(p_cursor, ' ', 3);
  end if;
  loop
    v_window := c_window;
    loop
      v_oldest := case when v_window is not null then
        (select t.snapshot_id
           from holdfast.page_text t
           where t.snapshot_id < v_bound
           order by t.snapshot_id desc offset v_window limit 1) end;
      v_batch := array(
        select c.snapshot_id
          from (select t.snapshot_id, t.words
                  from holdfast.page_text t
                  where t.words @@ v_words
                    and t.snapshot_id < v_bound
                    and (v_oldest is null or t.snapshot_id >= v_oldest)
                    and (p_crawl is null or t.crawl_id = p_crawl)
                    and (not c_filtered
                         or holdfast.search_passes(t.snapshot_id, t.crawl_id, p_tag, p_outcome, p_since,
                                                   p_until))
                  order by case when v_oldest is null then t.snapshot_id::text end desc, t.snapshot_id desc
                  limit case when not v_phrase then c_batch end) c
          where not v_phrase or c.words @@ v_query
          order by c.snapshot_id desc limit c_batch);
      v_count := cardinality(v_batch);
      v_next := v_batch[c_batch];
      exit when v_oldest is null or v_count = c_batch;
      v_window := case when v_window = c_window and v_count * c_widest >= 2 * c_batch * c_window
                    then 2 * c_batch * c_window / v_count end;
    end loop;
    v_batch := array(
      select b.id from unnest(v_batch) b(id) where v_bound <> c_first and b.id <> all (v_first)
      union
      select b.id from unnest(v_batch || v_first) b(id) where v_bound = c_first);
    return query
      with found as (
        select t.snapshot_id, t.crawl_id, s.url, s.url_hash, s.title, s.tags, t.text, t.language, r.rank
          from unnest(v_batch) b(id)
          join holdfast.page_text t on t.snapshot_id = b.id
          join holdfast.snapshot s on s.id = t.snapshot_id and s.crawl_id = t.crawl_id
          cross join lateral (
            select (ts_rank('{0.1, 0.2, 0.5, 1.0}', t.words, v_query, 1)
                    + case when s.url_hash = any (v_hashes) then 100 else 0 end)::real as rank) r
          where (r.rank, t.snapshot_id) < (v_rank, v_id)
          order by r.rank desc, t.snapshot_id desc offset 0),
      hit as materialized (
        select f.*
          from found f
          where p_all or not exists ( -- a newer capture
            select
              from holdfast.snapshot n
              join holdfast.page_text o on o.snapshot_id = n.id and o.crawl_id = n.crawl_id
              where n.url_hash = f.url_hash and n.id > f.snapshot_id
                and o.words @@ v_query
                and (p_crawl is null or n.crawl_id = p_crawl)
                and (not c_filtered
                     or holdfast.search_passes(n.id, n.crawl_id, p_tag, p_outcome, p_since, p_until)))
          limit v_left)
      select h.snapshot_id, h.crawl_id, h.url, coalesce(nullif(e.title, ''), h.title),
             holdfast.search_excerpt(h.text, h.language, v_query, p_marks), h.rank,
             e.outcome, e.sealed_at, h.tags, e.directory,
             holdfast.thumbnail(h.snapshot_id, h.crawl_id, e.fence),
             v_bound || ' ' || h.rank || ' ' || h.snapshot_id
        from hit h
        join holdfast.snapshot_sealed e on e.snapshot_id = h.snapshot_id and e.crawl_id = h.crawl_id
        order by h.rank desc, h.snapshot_id desc;
    get diagnostics v_count = row_count;
    v_left := v_left - v_count;
    exit when v_left <= 0 or v_next is null;
    v_bound := v_next;
    v_rank := 'infinity';
    v_id := c_first;
  end loop;
end $$;
comment on function holdfast.search is
  'Pages whose title, URL or text has these words: words, "a phrase", or, -not, begin*. The newest capture '
  'of each URL (p_all: every capture), best first; of more than 500 pages, the newest 500 and those with the '
  'words in their titles come before the others. p_cursor: '
  'the cursor of the last row before.';
