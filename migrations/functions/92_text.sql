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
