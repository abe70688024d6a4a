-- Watches: schedules with a condition. The worker compares each capture with the one before it; the seal of
-- the crawl judges the condition and writes the notices, in its own transaction.

create or replace function holdfast.watch_terms(p_when text)
  returns jsonb language plpgsql immutable as $$
-- Reads a condition, the one grammar of watches. Returns its terms, any of which may hold: {what, by, unit,
-- word, in}.
declare
  c_quoted constant text := '(?:''([^'']+)''|"([^"]+)")';
  v_rest text := btrim(p_when);
  v_terms jsonb := '[]';
  m text[];
begin
  loop
    m := regexp_match(v_rest,
      '^(anything|text|links|look|title)\s+changes(?:\s+by\s+(\d{1,9}(?:\.\d{1,4})?)\s*(%|words?|links?))?(.*)$', 'i');
    if m is not null then
      m[1] := lower(m[1]);
      m[3] := rtrim(lower(m[3]), 's');
      if m[3] is not null and not (case m[1] when 'text' then m[3] in ('%', 'word') when 'look' then m[3] = '%'
                                            when 'links' then m[3] in ('%', 'link') else false end) then
        raise exception '"% changes by % %" cannot be measured', m[1], m[2], m[3] using errcode = 'HF004',
          hint = 'text changes by 1% or by 20 words; look changes by 5%; links change by 3 links.';
      end if;
      v_terms := v_terms || jsonb_strip_nulls(jsonb_build_object('what', m[1], 'by', m[2]::numeric, 'unit', m[3]));
      v_rest := m[4];
    elsif v_rest ~* '^word' then
      m := regexp_match(v_rest, '^words?\s+' || c_quoted || '\s+(appears?|goe?s?)(.*)$', 'i');
      exit when m is null;
      v_terms := v_terms || jsonb_build_object('what', case when lower(m[3]) like 'a%' then 'appears' else 'goes' end,
                                               'word', coalesce(m[1], m[2]));
      v_rest := m[4];
    elsif v_rest ~* '^number' then
      m := regexp_match(v_rest, '^number(?:\s+in\s+' || c_quoted
        || ')?\s+(changes|(?:below|above)\s+(-?\d{1,15}(?:\.\d{1,6})?))(.*)$', 'i');
      exit when m is null;
      v_terms := v_terms || jsonb_strip_nulls(jsonb_build_object(
        'what', split_part(lower(m[3]), ' ', 1), 'in', coalesce(m[1], m[2]), 'by', m[4]::numeric,
        'number', true));
      v_rest := m[5];
    elsif v_rest ~* '^page\s' then
      m := regexp_match(v_rest, '^page\s+(?:is\s+)?(gone or back|gone|back)(.*)$', 'i');
      exit when m is null;
      v_terms := v_terms || case when lower(m[1]) <> 'back' then '[{"what": "gone"}]'::jsonb else '[]' end
        || case when lower(m[1]) <> 'gone' then '[{"what": "back"}]'::jsonb else '[]' end;
      v_rest := m[2];
    else
      exit;
    end if;
    if btrim(v_rest) = '' then return v_terms; end if;
    m := regexp_match(v_rest, '^\s*(?:,\s*(?:or\s)?|\sor\s)\s*(\S.*)$', 'i');
    exit when m is null;
    v_rest := m[1];
  end loop;
  raise exception 'condition "%": cannot read "%"', left(p_when, 200), left(btrim(v_rest), 100) using errcode = 'HF004',
    hint = 'anything changes; text changes by 1%; look changes by 5%; links changes; title changes; word ''sold out'' '
           'appears (or goes); number in ''#price'' below 100 (or above, or changes); page is gone (or back); '
           'several with "or".';
end $$;
comment on function holdfast.watch_terms is 'Returns the terms of a condition of a watch.';

create or replace function holdfast.watch_set(p_id uuid, p_watch jsonb, p_by text)
  returns void language plpgsql as $$
-- Makes a schedule a watch, or changes one. p_watch: {when, select, ignore, notify}; what is not there stays.
-- The plugins receive what counts as options of the crawls. Of a page, nothing is followed; of a feed, its
-- new entries are, unless the crawls have a depth of their own.
declare
  v_schedule constant holdfast.schedule := holdfast.schedule_lock(p_id);
  v_watch jsonb := coalesce(v_schedule.watch, '{"when": "anything changes", "ignore": [], "notify": []}')
                   || jsonb_strip_nulls(p_watch);
  v_terms constant jsonb := holdfast.watch_terms(v_watch ->> 'when');
  v_select constant text := coalesce(v_watch ->> 'select', '');
  v_in constant text[] := array(select distinct t ->> 'in' from jsonb_array_elements(v_terms) t where t ? 'in');
  v_options jsonb;
  v_name text;
begin
  if cardinality(v_schedule.urls) > 1 then
    raise exception 'a watch is for one URL' using errcode = 'HF004', hint = 'Add a watch for each URL.';
  elsif cardinality(v_in) > 1 or v_select <> '' and v_select <> any (v_in) then
    raise exception 'a watch can look at one selector, not at %',
      array_to_string(array(select x from unnest(v_in || v_select) x where x <> ''), ' and ')
      using errcode = 'HF004', hint = 'Add a watch for each selector.';
  elsif v_select = '' and v_in = '{}' and v_terms @> '[{"number": true}]' then
    raise exception 'the condition needs a selector for its number' using errcode = 'HF004',
      hint = 'number in ''#price'' below 100; or give --select.';
  elsif v_terms @> '[{"what": "look"}]' and (v_select <> '' or v_watch -> 'ignore' <> '[]') then
    raise exception 'the look is compared for the whole page only' using errcode = 'HF004',
      hint = 'Leave out --select and --ignore, or the condition on the look.';
  end if;
  for v_name in select jsonb_array_elements_text(v_watch -> 'notify') loop
    if v_name ~ '@|^apprise:' and not exists (select from holdfast.webhook w where w.name = v_name) then
      perform holdfast.webhook_set(v_name, case when v_name ~ '^apprise:' then '' else 'mailto:' end || v_name, '{}',
                                   p_by);
    end if;
    perform holdfast.webhook_find(v_name);
  end loop;
  v_watch := v_watch || jsonb_build_object('terms', v_terms, 'select', coalesce(nullif(v_select, ''), v_in[1], ''));
  v_options := coalesce(v_schedule.crawl -> 'options', '{}') - '{TEXT_SELECT,TEXT_IGNORE,TEXT_FIND}'::text[]
    || jsonb_strip_nulls(jsonb_build_object(
      'TEXT_SELECT', nullif(v_watch ->> 'select', ''),
      'TEXT_IGNORE', nullif(v_watch -> 'ignore', '[]')::text,
      'TEXT_FIND', (select jsonb_agg(t -> 'word') from jsonb_array_elements(v_terms) t where t ? 'word')::text));
  update holdfast.schedule s
    set watch = v_watch,
        state = case when v_watch - 'notify' = s.watch - 'notify' then s.state else '{}' end,
        pace = case when s.every like '%..%' then (holdfast.schedule_bounds(s.every))[1] end,
        crawl = s.crawl || jsonb_build_object('only_new', true, 'revisit', true)
          || case when coalesce((s.crawl ->> 'max_depth')::integer, 0) = 0
               then jsonb_build_object('max_depth', 1, 'max_urls',
                                       coalesce(nullif((s.crawl ->> 'max_urls')::bigint, 0), 1001))
               else '{}' end
          || jsonb_build_object('options', v_options || case
               when coalesce((s.crawl ->> 'max_depth')::integer, 0) = 0 then '{"OUTLINKS_ONLY": "entries"}'::jsonb
               else '{}' end)
    where s.id = p_id;
end $$;
comment on function holdfast.watch_set is 'Makes a schedule a watch, or changes one.';

create or replace function holdfast.watch_change(p_id uuid, p_every text, p_when text, p_select text,
    p_ignore text[], p_notify text[], p_by text)
  returns boolean language plpgsql as $$
-- Lists that are empty stay as they are; "-" empties one.
declare
  v_old constant holdfast.schedule := holdfast.schedule_lock(p_id);
begin
  if p_every is not null then
    update holdfast.schedule s
      set every = p_every, next_run_at = holdfast.schedule_next(p_every, s.time_zone, clock_timestamp())
      where s.id = p_id;
  end if;
  perform holdfast.watch_set(p_id, jsonb_build_object(
    'when', p_when, 'select', case p_select when '-' then '' else p_select end,
    'ignore', case p_ignore when '{}' then null when '{-}' then '[]' else to_jsonb(p_ignore) end,
    'notify', case p_notify when '{}' then null when '{-}' then '[]' else to_jsonb(p_notify) end), p_by);
  return v_old <> (select s from holdfast.schedule s where s.id = p_id);
end $$;
comment on function holdfast.watch_change is 'Changes a watch, or makes a schedule one.';

create or replace function holdfast.watch_relearn(p_id uuid)
  returns boolean language plpgsql as $$
-- Forgets what is noise on the page of a watch. The watch begins again: its next capture is a first one, and
-- the second follows at once. Returns false if nothing was known of the page.
declare
  v_schedule constant holdfast.schedule := holdfast.schedule_lock(p_id);
begin
  delete from holdfast.fingerprint f
    where f.url_hash = any (array(select sha256(convert_to(u, 'UTF8')) from unnest(v_schedule.urls) u));
  if not found then return false; end if;
  update holdfast.schedule s set state = '{}' where s.id = p_id and s.watch is not null;
  return true;
end $$;
comment on function holdfast.watch_relearn is
  'Forgets what is noise on the page of a watch, so that its next two captures learn it again.';

create or replace function holdfast.watch_judge(p_watch jsonb, p_old jsonb, p_facts jsonb, p_title text,
    p_entries bigint, out said text[], out state jsonb)
  language plpgsql immutable as $$
-- p_old: state at the capture before, {} before the first one. p_entries: entries of a feed that are new. A
-- word, a number or a page is told when it passes to the other side, a change each time.
declare
  c_select constant text := nullif(p_watch ->> 'select', '');
  v_first constant boolean := p_old = '{}';
  v_status constant bigint := holdfast.fact_integer(p_facts, 'http_status');
  v_gone constant boolean := coalesce(v_status in (404, 410), false);
  v_change constant text := case when p_facts ->> 'change' <> 'first' then p_facts ->> 'change' end;
  v_added constant bigint := coalesce((p_facts ->> 'words_added')::bigint, 0);
  v_removed constant bigint := coalesce((p_facts ->> 'words_removed')::bigint, 0);
  v_words constant bigint := greatest(v_added, v_removed) + coalesce((p_facts ->> 'words_moved')::bigint, 0);
  v_links constant bigint := coalesce((p_facts ->> 'links_added')::bigint, 0)
                             + coalesce((p_facts ->> 'links_removed')::bigint, 0);
  v_look constant numeric := coalesce((p_facts ->> 'look_share')::numeric, 0);
  v_share constant numeric := (p_facts ->> 'change_share')::numeric;
  v_number constant numeric := trim_scale((p_facts ->> 'number')::numeric);
  v_before constant numeric := trim_scale((p_old ->> 'number')::numeric);
  v_lost constant boolean := c_select is not null and coalesce(p_facts ->> 'selected', '') = '';
  v_texts constant jsonb := jsonb_build_object(
    'text', case when v_words > 0 then format('text: %s added, %s removed', holdfast.people_count(v_added, 'word'),
                                              v_removed) end,
    'links', case when v_links > 0 then format('links: %s added, %s removed', coalesce(p_facts ->> 'links_added', '0'),
                                               coalesce(p_facts ->> 'links_removed', '0')) end,
    'look', case when v_look > 0 then format('look: %s %% of the page', round(100 * v_look, 1)) end,
    'title', case when regexp_replace(p_title, '\d', '', 'g') <> regexp_replace(p_old ->> 'title', '\d', '', 'g')
                    then format('title: "%s" became "%s"', p_old ->> 'title', p_title) end,
    'status', case when v_change = 'status' then format('the server answers with HTTP %s', v_status) end);
  t jsonb;
  v_is boolean;
  v_was boolean;
begin
  said := '{}';
  state := p_old || jsonb_build_object('gone', v_gone);
  if v_gone <> (p_old -> 'gone')::boolean and (p_watch -> 'terms') @> jsonb_build_array(jsonb_build_object(
       'what', case when v_gone then 'gone' else 'back' end))
     or v_change in ('gone', 'back') and p_watch -> 'terms' @> '[{"what": "anything"}]' then
    said := said || case when v_gone then format('the page is gone (HTTP %s)', v_status) else 'the page is back' end;
  end if;
  -- No page to judge, its end, or a capture that ran no hooks because the files were unchanged.
  if p_facts ->> 'change' is null or v_status >= 400 or p_facts ? 'files_from' then
    if v_texts ? 'status' and p_watch -> 'terms' @> '[{"what": "anything"}]' then
      said := array_remove(said || (v_texts ->> 'status'), null);
    end if;
    return;
  end if;
  state := jsonb_strip_nulls(state - '{number,found,entries}'::text[] || jsonb_build_object(
    'title', p_title, 'selected', p_facts -> 'selected', 'number', v_number, 'found', p_facts -> 'found',
    'lost', v_lost, 'entries', p_facts -> 'entries'));
  if p_old ? 'entries' and not p_facts ? 'entries' then
    said := said || 'the feed cannot be read any more'::text;
  end if;
  if v_lost then
    if not coalesce((p_old -> 'lost')::boolean, false) then
      said := said || format('"%s" finds nothing on the page', c_select);
    end if;
    return;
  end if;
  if (p_old -> 'lost')::boolean then said := said || format('"%s" is found again', c_select); end if;
  for t in select jsonb_array_elements(p_watch -> 'terms') loop
    case
      when t ->> 'what' = 'anything' then
        if p_facts ? 'entries' or p_old ? 'entries' then
          continue when p_entries = 0 or v_first;
          said := said || (p_entries || case p_entries when 1 then ' new entry' else ' new entries' end);
        elsif v_change <> 'same' then
          said := said || array(select x.value from jsonb_each_text(v_texts) x where x.value is not null);
        end if;
      when t ->> 'what' in ('appears', 'goes') then
        v_is := p_facts -> 'found' @> jsonb_build_array(t -> 'word') = (t ->> 'what' = 'appears');
        v_was := p_old -> 'found' @> jsonb_build_array(t -> 'word') = (t ->> 'what' = 'appears');
        if v_is and not v_was then
          said := said || format('"%s" %s', t ->> 'word',
                                 case t ->> 'what' when 'goes' then 'is gone' else 'appeared' end);
        end if;
      when t ? 'number' then
        v_is := case t ->> 'what' when 'below' then v_number < (t ->> 'by')::numeric
                                  when 'above' then v_number > (t ->> 'by')::numeric else v_number <> v_before end;
        v_was := case t ->> 'what' when 'below' then v_before < (t ->> 'by')::numeric
                                   when 'above' then v_before > (t ->> 'by')::numeric else false end;
        if v_number is null and v_before is not null then
          said := said || format('no number is in "%s" any more', c_select);
        elsif v_is and not v_was then
          said := said || case t ->> 'what' when 'changes' then format('%s, before %s', v_number, v_before)
                            else format('%s is %s %s, before %s', v_number, t ->> 'what', t ->> 'by', v_before) end;
        end if;
      when t ->> 'what' in ('text', 'links', 'look', 'title') then
        v_is := case t ->> 'unit'
                  when 'word' then v_words >= (t ->> 'by')::numeric
                  when 'link' then v_links >= (t ->> 'by')::numeric
                  when '%' then case t ->> 'what' when 'look' then v_look else
                                  case when v_change = t ->> 'what' then v_share end end >= (t ->> 'by')::numeric / 100
                  else true end;
        if v_is and not v_first then said := said || (v_texts ->> (t ->> 'what')); end if;
      else null;
    end case;
  end loop;
  said := array(select distinct x from unnest(said) x where x is not null);
end $$;

create or replace function holdfast.watch_crawl_sealed()
  returns trigger language plpgsql as $$
-- Judges the crawl of a watch, in the transaction of its last page. Facts that a plugin wrote otherwise than
-- expected must not keep the page from its seal.
declare
  v_watch holdfast.schedule;
  v_page record;
  v_judged record;
  v_new bigint;
  v_bounds interval[];
  v_notify text[];
begin
  select * into v_watch
    from holdfast.schedule s
    where s.last_crawl_id = new.id and s.watch is not null
    for update;
  if not found then return null; end if;
  select s.id, s.url, coalesce(nullif(e.title, ''), s.title) as title, e.facts, e.sealed_at, e.directory
    into v_page
    from holdfast.snapshot s
    join holdfast.snapshot_sealed e on e.snapshot_id = s.id and e.crawl_id = s.crawl_id
    where s.crawl_id = new.id and e.outcome in ('succeeded', 'partial', 'failed')
    order by s.id
    limit 1;
  if not found then return null; end if;
  v_new := greatest(new.snapshots_succeeded + new.snapshots_partial - 1, 0);
  select * into v_judged
    from holdfast.watch_judge(v_watch.watch, v_watch.state, v_page.facts, v_page.title, v_new);
  if v_watch.pace is not null and v_page.facts ? 'change' then
    v_bounds := holdfast.schedule_bounds(v_watch.every);
    v_watch.pace := case
      when case when v_page.facts ? 'entries' then v_new > 0 else v_page.facts ->> 'change' not in ('first', 'same') end
        then greatest(v_bounds[1], v_watch.pace / 2)
      when v_page.facts ->> 'change' <> 'first' then least(v_bounds[2], v_watch.pace * 1.5)
      else v_watch.pace end;
  end if;
  update holdfast.schedule s
    set state = v_judged.state || case when v_page.facts ? 'entries'
          then jsonb_build_object('more', new.snapshots_total = new.max_urls) else '{}' end,
        pace = v_watch.pace,
        next_run_at = case
          when not s.enabled then s.next_run_at
          -- A second load at once shows what is noise on the page.
          when v_watch.state = '{}' and v_page.facts ->> 'change' = 'first' and not v_page.facts ? 'entries'
            then least(s.next_run_at, clock_timestamp() + interval '30 seconds')
          when s.pace is null then s.next_run_at
          else s.last_run_at + v_watch.pace end
    where s.id = v_watch.id;
  if cardinality(v_judged.said) = 0 then return null; end if;
  insert into holdfast.notice (schedule_id, crawl_id, snapshot_id, said)
    values (v_watch.id, new.id, v_page.id, v_judged.said);
  v_notify := array(select jsonb_array_elements_text(v_watch.watch -> 'notify'));
  perform holdfast.webhook_tell('watch.matched', v_page.id, jsonb_build_object(
    'watch', v_watch.id, 'label', nullif(v_watch.label, ''), 'when', v_watch.watch ->> 'when', 'url', v_page.url,
    'title', v_page.title, 'said', v_judged.said, 'id', v_page.id, 'crawl_id', new.id,
    'change', v_page.facts ->> 'change', 'change_from', v_page.facts ->> 'change_from',
    'sealed_at', v_page.sealed_at, 'directory', v_page.directory,
    'directory_before', (select e.directory from holdfast.snapshot_sealed e
                           where e.snapshot_id = (v_page.facts ->> 'change_from')::uuid limit 1),
    'selected_before', v_watch.state -> 'selected', 'selected', v_page.facts -> 'selected',
    'entries', (select jsonb_agg(jsonb_build_object('url', n.url, 'title', n.title))
                  from (select s.url, s.title from holdfast.snapshot s
                          where s.crawl_id = new.id and s.id <> v_page.id and v_page.facts ? 'entries'
                          order by s.id limit 20) n)),
    nullif(v_notify, '{}'));
  return null;
exception when data_exception or sqlstate 'HF004' then
  update holdfast.schedule set note = 'could not be judged: ' || sqlerrm where last_crawl_id = new.id;
  return null;
end $$;
create or replace trigger watch_crawl_sealed after update of status on holdfast.crawl
  for each row when (new.status = 'sealed' and old.status <> 'sealed')
  execute function holdfast.watch_crawl_sealed();

create or replace function holdfast.why_schedule(p_text text)
  returns table (id uuid, reason text, facts jsonb) language sql stable as $$
  -- Returns when a schedule runs next, and why then; no row: there is none of this name.
  select s.id,
         case when not s.enabled then 'It is paused'
              when c.status <> 'sealed' then format('Its crawl %s is still open; it runs next at %s', c.id,
                                                    holdfast.people_time(s.next_run_at))
              else format('It runs next at %s', holdfast.people_time(s.next_run_at)) end
         || case when not s.enabled then ''
                 when s.pace is null then format(' (%s, %s)', s.every, s.time_zone)
                 else format(': every %s, between %s; the interval halves when the page changes and grows by half '
                             || 'when it does not',
                             holdfast.people_duration(s.pace), replace(s.every, '..', ' and ')) end
         || coalesce('; last: ' || s.note, '') || '.'
         || case when s.enabled and not exists (
                    select from holdfast.process p
                      where p.worker_type = 'worker_runner' and p.status = 'running'
                        and p.lease_until > clock_timestamp())
                   then ' No runner leads, so it does not run: holdfast run --daemon.' else '' end,
         jsonb_strip_nulls(jsonb_build_object('label', s.label, 'every', s.every, 'pace', s.pace, 'watch', s.watch,
           'state', s.state, 'next_run_at', s.next_run_at, 'last_run_at', s.last_run_at))
    from holdfast.schedule s
    left join holdfast.crawl c on c.id = s.last_crawl_id
    where s.id in (select holdfast.schedule_find(p_text)) and p_text <> ''
    order by s.created_at desc
    limit 1
$$;
comment on function holdfast.why_schedule is 'Returns when a schedule or watch runs next, and why then.';

create or replace view holdfast.v_watch as
  select s.id, s.label, s.urls[1] as url, s.every, s.time_zone, s.watch ->> 'when' as "when",
         s.watch ->> 'select' as "select", s.watch -> 'ignore' as ignore, s.watch -> 'notify' as notify,
         case when s.enabled then 'on' else 'paused' end as state, s.pace,
         s.next_run_at, to_char(s.next_run_at at time zone s.time_zone, 'YYYY-MM-DD HH24:MI') as next_run,
         s.last_run_at, s.last_crawl_id, s.state as last, n.at as matched_at, n.said, s.note, s.created_at
    from holdfast.schedule s
    left join lateral (select o.at, o.said from holdfast.notice o
                         where o.schedule_id = s.id order by o.id desc limit 1) n on true
    where s.watch is not null;
comment on view holdfast.v_watch is 'Watches: schedules with a condition, and their last notice.';
comment on column holdfast.v_watch.id is 'The watch, which is a schedule.';
comment on column holdfast.v_watch.url is 'The page or feed.';
comment on column holdfast.v_watch."when" is 'The condition of a notice.';
comment on column holdfast.v_watch."select" is 'Selector of the part that counts; empty: the whole page.';
comment on column holdfast.v_watch.ignore is 'Selectors and regular expressions of what does not count.';
comment on column holdfast.v_watch.notify is
  'Names of webhooks, addresses and tags of Apprise that get its notices; empty: all webhooks of the event.';
comment on column holdfast.v_watch.state is 'on or paused.';
comment on column holdfast.v_watch.pace is 'The interval now, if it adapts between two bounds; NULL: it does not.';
comment on column holdfast.v_watch.last is 'Title, selected text, number and words of the last capture.';
comment on column holdfast.v_watch.matched_at is 'Time of the last notice; NULL: none.';
comment on column holdfast.v_watch.said is 'The last notice.';
comment on column holdfast.v_watch.next_run is 'next_run_at in the time zone of the watch.';

create or replace view holdfast.v_notice as
  select n.id, n.at, n.schedule_id, s.label, s.urls[1] as url, n.said, n.snapshot_id, n.crawl_id
    from holdfast.notice n
    join holdfast.schedule s on s.id = n.schedule_id;
comment on view holdfast.v_notice is 'Notices of watches.';
comment on column holdfast.v_notice.id is 'Order of recording.';
comment on column holdfast.v_notice.url is 'The page or feed.';
comment on column holdfast.v_notice.said is 'Sentences for people.';
comment on column holdfast.v_notice.schedule_id is 'The watch.';
comment on column holdfast.v_notice.snapshot_id is 'The capture that differs.';
