-- Crawls: adding, waking, ending. 31_expand.sql turns their seeds into snapshots.

create or replace function holdfast.option_of_workers(p_name text)
  returns boolean language sql immutable parallel safe as $$
  -- Options of programs, their arguments, paths and sandboxes. hooks::is_workers_own() is the same rule.
  select p_name ~ '_(BINARY|ARGS|ARGS_EXTRA|DIR|FILE|PATH|SANDBOX)$'
$$;

create or replace function holdfast.options_check(p_options jsonb)
  returns void language plpgsql immutable as $$
-- Fails early for options that no worker takes from a crawl, or with which a hook would send other headers.
-- Workers pass on what their plugins declare, and nothing else: hooks::crawl_may_set().
declare
  v_wrong text;
begin
  if p_options is null or jsonb_typeof(p_options) <> 'object' then return; end if; -- a constraint refuses others
  select o into v_wrong
    from jsonb_object_keys(p_options) o
    where o !~ '^[A-Z0-9_]+$' or holdfast.option_of_workers(o)
    limit 1;
  if found then
    raise exception 'a crawl cannot set the option "%"', left(v_wrong, 200)
      using errcode = 'HF004', hint = 'Programs, their arguments, paths and sandboxes belong into the '
        'settings of the workers.';
  end if;
  select o into v_wrong
    from jsonb_object_keys(p_options) o
    where o ~ 'USER_AGENT$' and p_options ->> o ~ '[\u0001-\u001f\u007f-\u009f]' -- would be further headers
    limit 1;
  if found then
    raise exception 'option "%" has a control character', v_wrong using errcode = 'HF004';
  end if;
end $$;

create or replace function holdfast.crawl_option_names(p_retry boolean default false)
  returns text[] language sql immutable parallel safe as $$
  -- The columns of holdfast.crawl that are given when it is added, and keep, how long it is kept. p_retry:
  -- only those that a retry takes over.
  select '{label, tags, persona, plugins, options, max_depth, max_urls, priority, created_by, max_bytes,
      max_time, max_parallel, scope, host_delay, host_parallel, retry_of, max_snapshot_bytes, robots,
      full, keep}'::text[]
    || case when not p_retry
              then '{notes, only_new, max_age, only_complete, revisit, wanted, overwrite}'::text[] end
$$;

create or replace function holdfast.plugin_names(p_plugins text[])
  returns text[] language sql immutable as $$
  -- The plugins that a crawl names, each once, sorted. An element may be a list: "wget,title" or
  -- ["wget", "title"].
  select coalesce(array_agg(distinct n.name), '{}')
    from unnest(p_plugins) l(list)
    cross join lateral regexp_split_to_table(l.list, '[][",[:space:]]+') n(name)
    where n.name <> ''
$$;

create or replace function holdfast.crawl_insert(p_id uuid, p_crawl jsonb)
  returns boolean language plpgsql as $$
-- Adds an empty crawl; its seeds follow in the same transaction (crawl_add_seeds). Returns false if the id
-- exists already, so adding may be repeated. Keys of p_crawl: crawl_option_names().
declare
  v_names constant text[] := holdfast.crawl_option_names();
  v_wrong text;
  v_crawl constant jsonb := jsonb_strip_nulls(p_crawl);
  v_columns text;
  v_added boolean;
begin
  select k into v_wrong from jsonb_object_keys(p_crawl) k where not k = any (v_names) limit 1;
  if found then
    raise exception 'a crawl has no "%"', v_wrong
      using errcode = 'HF004', hint = 'It has ' || array_to_string(v_names, ', ') || '.';
  end if;
  perform holdfast.scope_check(coalesce(p_crawl -> 'scope', '{}'));
  perform holdfast.options_check(p_crawl -> 'options');
  perform holdfast.persona_check(v_crawl ->> 'persona');
  select string_agg(format(', %I', k), '') into v_columns from jsonb_object_keys(v_crawl - 'keep') k;
  begin
    execute format('insert into holdfast.crawl (id, keep_until%1$s)
                      select $1, clock_timestamp() + ($2 ->> ''keep'')::interval%1$s
                        from jsonb_populate_record(null::holdfast.crawl, $2)
                      on conflict (id) do nothing
                      returning true', v_columns)
      into v_added using p_id, v_crawl || jsonb_build_object(
        'tags', holdfast.tags_of(array(select jsonb_array_elements_text(v_crawl -> 'tags')), null),
        'plugins', holdfast.plugin_names(array(select jsonb_array_elements_text(v_crawl -> 'plugins'))));
    if v_added is null then return false; end if;
  exception when data_exception or integrity_constraint_violation then
    raise exception 'crawl: %', sqlerrm using errcode = 'HF004';
  end;
  insert into holdfast.event (lifecycle, object_id, crawl_id, event, to_state, detail)
    values ('crawl', p_id, p_id, 'add', 'queued', coalesce(v_crawl ->> 'created_by', ''));
  perform holdfast.notify_workers();
  return true;
end $$;

create or replace function holdfast.crawl_by_caller(p_crawl jsonb)
  returns jsonb language plpgsql stable as $$
-- Returns options of a crawl with the name of the login, unless it may name its users.
begin
  return p_crawl || jsonb_build_object('created_by', holdfast.who(p_crawl ->> 'created_by'));
end $$;

create or replace function holdfast.crawl_add(p_id uuid, p_crawl jsonb)
  returns boolean language sql as $$
  select holdfast.crawl_insert(p_id, holdfast.crawl_by_caller(p_crawl))
$$;
comment on function holdfast.crawl_add is 'Adds a crawl, queued and due at once.';

create or replace function holdfast.crawl_add_seeds(
    p_crawl uuid, p_urls text[], p_titles text[], p_tags jsonb, p_bookmarked timestamptz[] default '{}',
    p_notes text[] default '{}')
  returns bigint language plpgsql as $$
-- Appends seeds to a queued crawl, in the order given. All but p_urls may be empty; p_tags: an
-- array of tags for each seed, or NULL. Returns how many seeds the crawl has now.
declare
  v_seeds bigint;
  v_wrong text;
begin
  select seeds_total
    into v_seeds
    from holdfast.crawl
    where id = p_crawl and status = 'queued'
    for no key update;
  if not found then
    raise exception 'crawl % takes no more seeds', p_crawl
      using errcode = 'HF004', hint = 'Only a queued crawl does.';
  end if;
  select u into v_wrong from unnest(p_urls) u where u is null or holdfast.host_of(u) is null limit 1;
  if found then
    raise exception 'not a URL that can be archived: %', coalesce(left(v_wrong, 200), 'NULL')
      using errcode = 'HF004', hint = 'https://host/path or http://host/path';
  end if;
  insert into holdfast.crawl_seed (crawl_id, position, url, title, tags, bookmarked_at, notes)
    select p_crawl, v_seeds + u.n, u.url, coalesce(u.title, ''),
           case when p_tags is null then '{}'
                else holdfast.tags_of(array(select jsonb_array_elements_text(p_tags -> (u.n - 1)::integer)),
                                      null) end,
           u.bookmarked_at, coalesce(u.notes, '')
      from unnest(p_urls, p_titles, p_bookmarked, p_notes) with ordinality
             u(url, title, bookmarked_at, notes, n)
      where u.n <= cardinality(p_urls);
  update holdfast.crawl
    set seeds_total = seeds_total + cardinality(p_urls),
        seeds_left = seeds_left + cardinality(p_urls),
        first_url = case first_url when '' then coalesce(p_urls[1], '') else first_url end,
        persona = case persona when '' then holdfast.persona_of(p_urls) else persona end
    where id = p_crawl
    returning seeds_total into v_seeds;
  return v_seeds;
end $$;
comment on function holdfast.crawl_add_seeds is 'Appends seeds to a queued crawl.';

create or replace function holdfast.tags_of(p_tags text[], p_more text[], p_less text[] default null)
  returns text[] language plpgsql immutable parallel safe as $$
-- Both sets of tags but those of the third, sorted, each tag once, without blanks around them and with one
-- between words. Invisible characters are blanks.
begin
  return array(select distinct b.tag
                 from unnest(p_tags || p_more) t
                 cross join lateral (
                   select btrim(regexp_replace(t, '[\s\u00A0\u200B\u3000\uFEFF]+', ' ', 'g')) as tag) b
                 where b.tag <> '' and (b.tag = any (p_less)) is not true
                 order by b.tag);
end $$;

create or replace function holdfast.crawl_enqueue()
  returns trigger language plpgsql as $$
-- Claims see a crawl by its row in crawl_queue. It has one while it is started and is neither being stopped
-- nor having a changed scope applied.
begin
  if new.status = 'started' and new.stopping_at is null and new.judged_to is null then
    insert into holdfast.crawl_queue as q
        (crawl_id, ready_at, priority, max_parallel, stop_at, plugins, persona)
      values (new.id, case when new.snapshots_open > 0 then clock_timestamp() end, new.priority,
              new.max_parallel, new.deadline_at, new.plugins, new.persona)
      on conflict (crawl_id) do update
        set priority = excluded.priority, max_parallel = excluded.max_parallel, stop_at = excluded.stop_at;
  else
    delete from holdfast.crawl_queue where crawl_id = new.id;
  end if;
  return null;
end $$;
create or replace trigger crawl_enqueue
  after update of status, stopping_at, judged_to, priority, max_parallel, deadline_at on holdfast.crawl
  for each row when (
    (old.status, old.stopping_at, old.judged_to, old.priority, old.max_parallel, old.deadline_at)
    is distinct from
    (new.status, new.stopping_at, new.judged_to, new.priority, new.max_parallel, new.deadline_at))
  execute function holdfast.crawl_enqueue();

create or replace function holdfast.crawl_wake(p_crawl uuid, p_at timestamptz, p_notify boolean default true)
  returns void language plpgsql as $$
-- Work of this crawl is due at p_at. Always counts in "wakes", so that a claim which has just looked in vain
-- does not park the crawl; rings only when the crawl was not ready before.
declare
  v_was timestamptz;
begin
  select ready_at into v_was from holdfast.crawl_queue where crawl_id = p_crawl for no key update;
  if not found then return; end if;
  update holdfast.crawl_queue
    set ready_at = least(coalesce(ready_at, p_at), p_at), wakes = wakes + 1
    where crawl_id = p_crawl;
  if p_notify and p_at <= clock_timestamp() and (v_was is null or v_was > clock_timestamp()) then
    perform holdfast.notify_workers();
  end if;
end $$;

create or replace function holdfast.crawl_settle(p_crawl uuid)
  returns boolean language plpgsql as $$
-- Seals the crawl if nothing of it is open. The caller holds the crawl's row lock: without it two last
-- snapshots sealing at once would each see the other open, and the crawl would never end.
begin
  update holdfast.crawl c
    set status = 'sealed',
        event = case when c.stop_reason = 'cancelled' then 'cancel' else 'seal' end,
        retry_at = null, reason = null, owner_id = null, judged_to = null, paused_at = null,
        sealed_at = clock_timestamp(),
        outcome = case
          when c.snapshots_total = 0 then 'empty'
          when c.stop_reason = 'cancelled' then 'cancelled'
          when c.snapshots_succeeded = 0 and c.snapshots_partial = 0
            then case when c.stopping_at is not null and c.snapshots_failed = 0 then 'cancelled'
                      else 'failed' end
          when c.snapshots_partial = 0 and c.snapshots_failed = 0
               and (c.stopping_at is not null or c.snapshots_cancelled = 0)
            then 'succeeded'
          else 'partial'
        end
    where c.id = p_crawl
      and c.snapshots_open = 0
      and c.seeds_left = 0
      and (c.status in ('queued', 'started') or (c.status = 'paused' and c.stopping_at is not null));
  if found then
    delete from holdfast.crawl_lane where crawl_id = p_crawl;
    perform holdfast.crawl_page_changes(p_crawl);
    perform pg_notify('holdfast', 'crawl_sealed ' || p_crawl);
    return true;
  end if;
  -- Only snapshots outside its scope are left: a worker closes them, batch by batch.
  update holdfast.crawl
    set stopping_at = clock_timestamp(), retry_at = clock_timestamp()
    where id = p_crawl
      and status = 'started'
      and seeds_left = 0
      and snapshots_open = snapshots_excluded
      and stopping_at is null
      and judged_to is null
      and snapshots_excluded > 0;
  return false;
end $$;
