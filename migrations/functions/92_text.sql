-- Full-text search: the text of sealed pages, and the search in it.

create or replace function holdfast.text_language_of(p_code text)
  returns text language sql immutable as $$
  -- The text search configuration for a language tag ("de", "pt-BR"); "simple" if there is none. An
  -- expression, because PL/pgSQL evaluates that without planning a query in each call.
  select case lower(split_part(translate(p_code, '_', '-'), '-', 1))
           when 'ar' then 'arabic' when 'ca' then 'catalan' when 'da' then 'danish' when 'de' then 'german'
           when 'el' then 'greek' when 'en' then 'english' when 'es' then 'spanish' when 'eu' then 'basque'
           when 'fi' then 'finnish' when 'fr' then 'french' when 'ga' then 'irish' when 'hi' then 'hindi'
           when 'hu' then 'hungarian' when 'hy' then 'armenian' when 'id' then 'indonesian'
           when 'it' then 'italian' when 'lt' then 'lithuanian' when 'nb' then 'norwegian'
           when 'ne' then 'nepali' when 'nl' then 'dutch' when 'nn' then 'norwegian'
           when 'no' then 'norwegian' when 'pt' then 'portuguese' when 'ro' then 'romanian'
           when 'ru' then 'russian' when 'sr' then 'serbian' when 'sv' then 'swedish' when 'ta' then 'tamil'
           when 'tr' then 'turkish' when 'yi' then 'yiddish'
           else 'simple' end
$$;

create or replace function holdfast.text_language_in(p_text text)
  returns text language sql stable as $$
  -- The language whose stop words are most frequent at the beginning of a text; "simple" if none are.
  with word as (
    select lower(w[1]) as word, count(*) as count
      from regexp_matches(left(p_text, 4000), '[[:alpha:]]+', 'g') w group by 1),
  found as (
    select l.language, sum(w.count) as count
      from unnest('{danish,dutch,english,finnish,french,german,hungarian,italian,norwegian,portuguese,russian,'
                  'spanish,swedish,turkish}'::text[]) l(language)
      join word w on ts_lexize((l.language || '_stem')::regdictionary, w.word) = '{}'
      group by l.language)
  select coalesce((select f.language
                     from found f
                     where f.count >= 4 and f.count >= 0.2 * (select sum(w.count) from word w)
                     order by f.count desc, f.language limit 1),
                  'simple')
$$;

create or replace function holdfast.search_fold(p_text text)
  returns text language plpgsql immutable parallel safe as $$
-- Without accents, widths, ligatures and invisible characters: "Straße" is "Strasse", in any normal form.
-- Marks of scripts in which they are letters stay. The parser takes an emoji for a blank; as a letter of
-- Tangut, which no living text has, it is a word.
declare
  v_text text;
  v_emoji text;
begin
  if octet_length(p_text) = char_length(p_text) then return p_text; end if; -- ASCII
  v_text := regexp_replace(
    normalize(p_text, NFKD),
    '[\u00AD\u0300-\u036F\u0483-\u0487\u0591-\u05C7\u0610-\u061A\u064B-\u065F\u0670\u200B-\u200F\u2060'
    '\uFE00-\uFE0F\uFEFF]+| (?=[\u3099\u309A])', -- a blank that NFKD sets before a voice mark by itself
    '', 'g');
  -- A test first is cheaper than translating and composing. Marks of other scripts are left to compose.
  if v_text ~ '[ØøĐđŁłıÐðŦŧĦħςʻʼʽʾʿ\u2010]' then -- letters, apostrophes that are letters, a hyphen
    v_text := translate(v_text, E'ØøĐđŁłıÐðŦŧĦħςʻʼʽʾʿ\u2010', 'OoDdLliDdTtHhσ''''''''''-');
  end if;
  if v_text ~ '[\u0700-\u1FFF\u2C00-\U0010FFFF]' then v_text := normalize(v_text, NFC); end if;
  for v_emoji in
    select distinct m[1] from regexp_matches(v_text, '([\u2600-\u27BF\U0001F000-\U0001FAFF])', 'g') m
  loop
    v_text := replace(v_text, v_emoji,
                      chr(ascii(v_emoji) + case when ascii(v_emoji) < 65536 then 88576 else -32768 end));
  end loop;
  if v_text ~ '[ßẞæÆœŒþÞ]' then
    v_text := replace(replace(replace(replace(replace(replace(replace(replace(
      v_text, 'ß', 'ss'), 'ẞ', 'SS'), 'æ', 'ae'), 'Æ', 'AE'), 'œ', 'oe'), 'Œ', 'OE'), 'þ', 'th'), 'Þ', 'TH');
  end if;
  return v_text;
end $$;
comment on function holdfast.search_fold is 'Returns a text as search() compares it, except for case.';

create or replace function holdfast.search_joined(p_folded text)
  returns text language sql immutable parallel safe as $$
  -- Joins words that some write with a mark in them: a single first letter ("e-mail"), and "don't".
  select regexp_replace(regexp_replace(p_folded, '\m([[:alpha:]])-(?=[[:alpha:]])', '\1', 'g'),
                        '[''’](?=(t|re|ve|m)\M)', '', 'g')
$$;

create or replace function holdfast.search_parted(p_text text)
  returns text language sql immutable parallel safe as $$
  -- The words of URLs, mail addresses, versions, numbers and names of files, which PostgreSQL's parser takes
  -- for one word each: "example.org/a" is "example org a".
  -- translate() takes twenty times as long.
  select replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
           -- "RFC-9110": not "rfc" and minus 9110. "v1.2.3" is also 1.2.3.
           case when p_text ~ '-|\m[vV][0-9]'
             then regexp_replace(p_text, '([[:alnum:]])-(?=[0-9])|\m([vV])(?=[0-9])', '\1\2 ', 'g')
             else p_text end,
           '.', ' '), '/', ' '), '@', ' '), ':', ' '), '_', ' '), '~', ' '), '%', ' '), '=', ' '), '?', ' '),
           '#', ' '), '+', ' ')
$$;

create or replace function holdfast.search_phrases(p_query text)
  returns text language sql immutable parallel safe as $$
  -- Returns a query in the words of search_parted(): several words that stood together are a phrase.
  select string_agg(
           case when m[1] ~ '^-?"' or m[1] !~ '[[:alnum:]]([./@:_~%=?#+]+[[:alnum:]]|-[0-9])|\m[vV][0-9]'
                then holdfast.search_parted(m[1])
                else regexp_replace(m[1], '[^-].*$', '') || '"'
                     || holdfast.search_parted(regexp_replace(m[1], '^-+', '')) || '"' end, ' ' order by n)
    from regexp_matches(p_query, '(-?"[^"]*"?|[^\s"]+)', 'g') with ordinality x(m, n)
$$;

create or replace function holdfast.search_runs()
  returns text language sql immutable parallel safe as $$
  -- The characters of scripts that have no blanks between words, or particles behind them: Thai, Lao,
  -- Burmese, Khmer, Tai, Chinese with Bopomofo, Japanese, Yi, Korean; emoji as search_fold() writes them.
  -- For the inside of a bracket expression.
  select '\u0E00-\u0EFF\u1000-\u109F\u1780-\u17FF\u1950-\u19DF\u1A20-\u1AAF\u3005\u3040-\u312F\u31A0-\u31BF'
         || '\u31F0-\u31FF\u3400-\u9FFF\uA000-\uA4CF\uAC00-\uD7A3\uF900-\uFAFF\U00017000-\U000187FF'
         || '\U00020000-\U0003FFFF'
$$;

create or replace function holdfast.search_text(p_text text)
  returns text language plpgsql immutable parallel safe as $$
-- Returns the indexed words of a text: folded and joined, and of search_runs() each two neighbours as a word.
-- Pairs that begin at an odd character stand in place, those that begin at an even one behind the text, as
-- does the "mail" of "e-mail". The last character of a run is a word of its own.
declare
  c_run constant text := holdfast.search_runs();
  v_folded constant text := holdfast.search_parted(holdfast.search_fold(p_text));
  v_text constant text := concat_ws(
    ' ', holdfast.search_joined(v_folded),
    (select string_agg(m[1], ' ') from regexp_matches(v_folded, '\m[[:alpha:]]-([[:alpha:]]+)', 'g') m));
begin
  if octet_length(v_text) = char_length(v_text) or v_text !~ ('[' || c_run || ']') then
    return v_text;
  end if;
  return regexp_replace(v_text, '([' || c_run || ']{1,2})', ' \1 ', 'g') || ' '
         || regexp_replace(regexp_replace(' ' || regexp_replace(v_text, '[^' || c_run || ']+', ' ', 'g'),
                                          ' [' || c_run || ']', ' ', 'g'),
                           '([' || c_run || ']{1,2})', ' \1 ', 'g');
end $$;
comment on function holdfast.search_text is 'The words that the index has of a text.';

create or replace function holdfast.search_pairs(p_text text)
  returns text language plpgsql immutable parallel safe as $$
-- Returns a query in the words of search_text(): all pairs of a run; a character by itself begins a pair. The
-- index does not store the order of the pairs of a phrase.
declare
  c_run constant text := '[' || holdfast.search_runs() || ']';
  c_not constant text := '[^' || holdfast.search_runs() || ']';
  v_text text := holdfast.search_joined(holdfast.search_fold(p_text));
begin
  if v_text !~ c_run then return v_text; end if;
  v_text := regexp_replace(v_text, '"([^"]*' || c_run || '[^"]*)"', ' \1 ', 'g');
  v_text := regexp_replace(v_text, '(' || c_run || '+)', ' \1 ', 'g');
  v_text := regexp_replace(v_text, '(^|\s)- (?=' || c_run || ')', '\1-', 'g');
  v_text := regexp_replace(v_text, '(^|[\s-])(' || c_run || ')(?=\s)', '\1\2* ', 'g');
  return regexp_replace(
    regexp_replace(v_text, '(' || c_run || '{2})', '\1 ', 'g') || ' '
    || regexp_replace(
         regexp_replace(' ' || regexp_replace(v_text, c_run || '\*|' || c_not || '+', ' ', 'g'), ' ' || c_run, ' ',
                        'g'),
         '(' || c_run || '{2})', '\1 ', 'g'),
    '\s' || c_run || '(?=\s|$)', ' ', 'g');
end $$;

create or replace function holdfast.search_stop_pairs(p_language text, p_text text, p_any boolean)
  returns text[] language plpgsql stable parallel safe as $$
-- Neighbours that are both stop words of the language, which are not in the index by themselves: names such
-- as "The Who" and "AT&T", the second in capitals; with p_any all. All of a text would let the index grow by
-- a third.
declare
  c_first constant text[] := case when p_any then '{"[[:alpha:]]"}' else '{"[[:upper:]]","[[:lower:]]"}' end;
  c_second constant text := case when p_any then '[[:alpha:]]' else '[[:upper:]]' end;
  v_dictionary regdictionary;
begin
  if p_language = 'simple' then return '{}'; end if;
  v_dictionary := (p_language || '_stem')::regdictionary;
  return (
    select coalesce(array_agg(distinct lower(m[1]) || ' ' || lower(m[2])), '{}')
      from unnest(c_first) f(first)
      cross join generate_series(0, case when p_any then 1 else 0 end) n -- pairs overlap
      cross join lateral regexp_matches(
        case n when 0 then p_text else regexp_replace(p_text, '[[:alpha:]]+', '') end,
        '(?:^|[^[:alpha:]])(' || f.first || '[[:alpha:]]{0,11})[\s&]+(' || c_second
        || '[[:alpha:]]{0,11})(?![[:alpha:]])',
        'g') m
      where ts_lexize(v_dictionary, lower(m[1])) = '{}' and ts_lexize(v_dictionary, lower(m[2])) = '{}');
end $$;

create or replace function holdfast.search_stop_runs(p_language text, p_text text)
  returns text[] language plpgsql stable parallel safe as $$
-- Neighbours in runs of four or more stop words, by which "to be or not to be" is found.
declare
  v_dictionary regdictionary;
begin
  if p_language = 'simple' then return '{}'; end if;
  v_dictionary := (p_language || '_stem')::regdictionary;
  return (
    with word as (
      select r.n as run, w.n as at, lower(w.word) as word
        from regexp_matches(left(p_text, 65536), '(?:\m[[:alpha:]]{1,7}[\s,]+){3,}[[:alpha:]]{1,7}\M', 'g')
               with ordinality r(run, n)
        cross join lateral regexp_split_to_table(r.run[1], '[\s,]+') with ordinality w(word, n)),
    stop as (
      select d.word
        from (select distinct word.word from word) d
        where ts_lexize(v_dictionary, d.word) = '{}'),
    four as (
      select array_agg(w.word) over four as words, count(s.word) over four as stops
        from word w
        left join stop s on s.word = w.word
        window four as (partition by w.run order by w.at rows between current row and 3 following))
    select coalesce(array_agg(distinct f.words[i] || ' ' || f.words[i + 1]), '{}')
      from four f
      cross join generate_series(1, 3) i
      where f.stops = 4);
end $$;

create or replace function holdfast.text_keep(
    p_snapshot uuid, p_crawl uuid, p_fence bigint, p_text text)
  returns boolean language plpgsql as $$
-- Workers keep the text of pages that they sealed, and an operator's any; of the pages of others they add one
-- that was lost, and change none. The language is what a hook reported in its output_json, else it is
-- detected. The commit does
-- not wait for the disk: a text that a crash of the server loses is made again by `holdfast search --rebuild`.
declare
  v_language text;
  v_config regconfig;
  v_may constant boolean :=
    coalesce(pg_has_role(session_user, to_regrole('holdfast_operator')::oid, 'member'), true)
    or exists (select
                 from holdfast.snapshot_sealed e
                 join holdfast.process p on p.id = e.owner_id and p.login = session_user
                 where e.snapshot_id = p_snapshot and e.crawl_id = p_crawl);
begin
  perform set_config('synchronous_commit', 'off', true);
  select r.output_json ->> 'language'
    into v_language
    from holdfast.archive_result r
    where r.snapshot_id = p_snapshot and r.crawl_id = p_crawl and r.fence = p_fence
      and jsonb_typeof(r.output_json) = 'object' and r.output_json ? 'language'
    limit 1;
  v_language := case when v_language is null then holdfast.text_language_in(p_text)
                     else holdfast.text_language_of(v_language) end;
  v_config := v_language::regconfig;
  insert into holdfast.page_text (snapshot_id, crawl_id, language, text, words)
    select s.id, s.crawl_id, v_language, p_text,
           setweight(to_tsvector(v_config, t.title) || to_tsvector('simple', t.title), 'A') -- stop words, too
           || setweight(to_tsvector('simple', regexp_replace(s.url, '[^[:alnum:]]+', ' ', 'g')), 'B')
           || setweight(to_tsvector('simple', holdfast.search_text(array_to_string(s.tags, ' '))), 'B')
           || setweight(to_tsvector(v_config, holdfast.search_text(s.notes)), 'C')
           || to_tsvector(v_config, holdfast.search_text(p_text))
           || array_to_tsvector(holdfast.search_stop_pairs(v_language, p_text, false)
                                || holdfast.search_stop_runs(v_language, p_text) || ('host:' || s.host))
      from holdfast.snapshot s
      join holdfast.snapshot_sealed e on e.snapshot_id = s.id and e.crawl_id = s.crawl_id
      cross join lateral (
        select holdfast.search_text(coalesce(s.given_title, nullif(e.title, ''), s.title)) as title) t
      where s.id = p_snapshot and s.crawl_id = p_crawl
        and e.fence = p_fence and e.directory is not null
        and (v_may or e.sealed_at < clock_timestamp() - interval '1 minute')
    on conflict (snapshot_id, crawl_id) do update
      set language = excluded.language, text = excluded.text, words = excluded.words
      where v_may;
  if not found then return false; end if;
  if v_language <> 'simple'
     and not exists (select from holdfast.text_language l where l.language = v_language) then
    insert into holdfast.text_language values (v_language) on conflict do nothing;
  end if;
  return true;
end $$;
comment on function holdfast.text_keep is
  'Stores the text of a sealed page. Returns false if the page was not sealed with this fence.';

create or replace function holdfast.snapshot_text(p_snapshot uuid)
  returns text language sql stable as $$
  select t.text from holdfast.page_text t where t.snapshot_id = p_snapshot
$$;
comment on function holdfast.snapshot_text is
  'Returns the readable text of an archived page, as the search has it; NULL: it has none.';

create or replace function holdfast.text_again(p_crawl uuid, p_snapshots uuid[])
  returns void language plpgsql as $$
-- After their title, tags or notes have changed.
begin
  perform holdfast.text_keep(t.snapshot_id, t.crawl_id, e.fence, t.text)
    from holdfast.page_text t
    join holdfast.snapshot_sealed e on e.snapshot_id = t.snapshot_id and e.crawl_id = t.crawl_id
    where t.snapshot_id = any (p_snapshots) and t.crawl_id = p_crawl;
end $$;

create or replace function holdfast.texts_missing(p_after uuid, p_limit bigint)
  returns table (snapshot_id uuid, crawl_id uuid, fence bigint, directory text)
  language sql stable as $$
  select e.snapshot_id, e.crawl_id, e.fence, e.directory
    from holdfast.snapshot_sealed e
    where e.directory is not null
      and (p_after is null or e.snapshot_id > p_after)
      and not exists (select
                        from holdfast.page_text t
                        where t.snapshot_id = e.snapshot_id and t.crawl_id = e.crawl_id)
    order by e.snapshot_id limit p_limit
$$;
comment on function holdfast.texts_missing is
  'Returns sealed snapshots with files whose text is not indexed, by id after p_after.';

create or replace function holdfast.texts_lost(p_after uuid, p_rows bigint, p_age interval)
  returns table (snapshot_id uuid, crawl_id uuid, fence bigint, directory text, last uuid)
  language sql stable as $$
  -- Returns, of the p_rows sealed snapshots behind p_after, those without a text, which were sealed p_age
  -- ago. Each row has the last of the p_rows; if none lacks its text, it is alone. No row: there are no more.
  with looked as materialized (
    select e.snapshot_id, e.crawl_id, e.fence, e.directory, e.sealed_at
      from holdfast.snapshot_sealed e
      where p_after is null or e.snapshot_id > p_after
      order by e.snapshot_id limit p_rows
  ), lost as (
    select l.*
      from looked l
      where l.directory is not null and l.sealed_at < clock_timestamp() - p_age
        and not exists (select
                          from holdfast.page_text t
                          where t.snapshot_id = l.snapshot_id and t.crawl_id = l.crawl_id)
  )
  select o.snapshot_id, o.crawl_id, o.fence, o.directory, x.last
    from (select l.snapshot_id as last from looked l order by l.snapshot_id desc limit 1) x
    left join lost o on true
$$;
comment on function holdfast.texts_lost is
  'Returns sealed snapshots whose text was lost between their seal and text_keep(). Workers call it and store the '
  'text.';

create or replace function holdfast.texts_drop()
  returns void language plpgsql as $$
begin
  truncate holdfast.page_text;
  delete from holdfast.text_language where language <> 'simple';
end $$;
comment on function holdfast.texts_drop is
  'Deletes the text of all pages; `holdfast search --rebuild` reads it again.';

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
