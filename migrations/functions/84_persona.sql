-- Personas (lib/persona). The state is sealed by the programs: the database never sees what is in it.

create or replace function holdfast.persona_check(p_name text)
  returns text language plpgsql as $$
-- Keeps the persona from being removed until the transaction ends. Returns the name. NULL, '' and none: no
-- persona.
begin
  if coalesce(p_name, '') in ('', 'none') then return coalesce(p_name, ''); end if;
  perform from holdfast.persona p where p.name = p_name for key share;
  if not found then
    raise exception 'there is no persona "%"', p_name
      using errcode = 'HF004',
            hint = 'holdfast persona list; holdfast persona set ' || p_name || ' makes one';
  end if;
  return p_name;
end $$;

create or replace function holdfast.persona_of(p_urls text[])
  returns text language plpgsql as $$
-- The persona whose hosts these URLs are on; '': there is none.
declare
  v_names text[];
begin
  v_names := array(
    select p.name
      from holdfast.persona p
      where p.hosts <> '{}'
        and exists (select
                      from unnest(p_urls) u(url)
                      cross join lateral (select holdfast.host_of(u.url) as host offset 0) o
                      cross join unnest(p.hosts) h(host)
                      where o.host = h.host or right(o.host, length(h.host) + 1) = '.' || h.host)
      order by p.name);
  if cardinality(v_names) > 1 then
    raise exception 'these pages belong to the personas %', array_to_string(v_names, ', ')
      using errcode = 'HF004',
            hint = 'A crawl has one: add them apart, or name one with --persona (none: without).';
  end if;
  return holdfast.persona_check(v_names[1]);
end $$;

create or replace function holdfast.persona_check_every(p_name text, p_every text)
  returns void language plpgsql as $$
-- A schedule captures the pages that the checks name, signed in; '': none any more. While the persona is
-- signed out its crawl waits, so that the next ones are skipped.
declare
  v_label constant text := 'checks of persona ' || p_name;
  v_urls text[];
begin
  delete from holdfast.schedule s
    where s.label = v_label;
  if p_every = '' then return; end if;
  v_urls := array(select distinct c ->> 'url'
                    from holdfast.persona p
                    cross join jsonb_array_elements(p.checks) c
                    where p.name = p_name and c ->> 'url' <> '');
  if v_urls = '{}' then
    raise exception 'no check of persona "%" names a page that could be tried', p_name
      using errcode = 'HF004', hint = 'For example --check "text=Log out @https://press.example.com/account".';
  end if;
  perform holdfast.schedule_add(holdfast.new_uuid(), v_label, p_every, 'UTC', v_urls,
    jsonb_build_object('label', v_label, 'persona', p_name, 'plugins', array['browser'], 'keep', '1 day'));
end $$;

create or replace function holdfast.persona_set(p_name text, p_change jsonb, p_by text)
  returns void language plpgsql as $$
-- p_change: options (one that is null is removed), hosts, worker_label ('': any), checks, check_every,
-- notes.
declare
  v_wrong text;
begin
  perform holdfast.options_check(p_change -> 'options');
  -- hooks::is_secret_key() is the same rule.
  select o into v_wrong
    from jsonb_object_keys(p_change -> 'options') o
    where o ~ 'TOKEN|SECRET|API_?KEY|PASSWORD|COOKIE_STRING' and p_change -> 'options' ->> o is not null
    limit 1;
  if found then
    raise exception 'a persona cannot set the option "%", which is secret', left(v_wrong, 200)
      using errcode = 'HF004',
            hint = 'Put it into the settings of the workers; holdfast persona import for logins.';
  end if;
  select h into v_wrong
    from jsonb_array_elements_text(p_change -> 'hosts') h
    where holdfast.host_of('http://' || h || '/') is distinct from h
    limit 1;
  if found then
    raise exception '"%" is not a host name', left(v_wrong, 200)
      using errcode = 'HF004', hint = 'For example press.example.com, in lower case.';
  end if;
  insert into holdfast.persona (name) values (p_name) on conflict (name) do nothing;
  update holdfast.persona p
    set options = jsonb_strip_nulls(p.options || coalesce(p_change -> 'options', '{}')),
        hosts = case when p_change ? 'hosts'
                  then array(select jsonb_array_elements_text(p_change -> 'hosts')) else p.hosts end,
        worker_label = nullif(coalesce(p_change ->> 'worker_label', p.worker_label), ''),
        checks = coalesce(p_change -> 'checks', p.checks), notes = coalesce(p_change ->> 'notes', p.notes),
        changed_at = clock_timestamp(), changed_by = holdfast.who(p_by)
    where p.name = p_name;
  if p_change ? 'check_every' then
    perform holdfast.persona_check_every(p_name, p_change ->> 'check_every');
  end if;
  perform holdfast.notify_workers(); -- a worker may take now what none could
exception
  when check_violation then
    raise exception '"%" cannot be the name of a persona', left(p_name, 200)
      using errcode = 'HF004',
            hint = 'Letters, digits, dots, underscores and hyphens, at most 64; not "none".';
end $$;
comment on function holdfast.persona_set is
  'Makes a persona, or changes those of options, hosts, worker_label, checks, check_every and notes that are '
  'named.';

create or replace function holdfast.persona_save(
    p_name text, p_version bigint, p_state bytea, p_key_id text, p_by text, p_signed_in boolean default true)
  returns bigint language plpgsql as $$
-- p_version: the version that this state was made from; 0: there was none, and the persona is made if it is
-- missing. Returns the new version, or NULL if another was faster: load it again. A persona that was
-- removed stays removed. p_signed_in: the state is of a new session, and what waits for one goes on.
declare
  v_version bigint;
begin
  if p_version = 0 and not exists (select from holdfast.persona where name = p_name) then
    perform holdfast.persona_set(p_name, '{}', holdfast.who(p_by));
  end if;
  update holdfast.persona
    set version = version + 1, state = p_state, key_id = p_key_id,
        changed_at = clock_timestamp(), changed_by = holdfast.who(p_by),
        signed_out_at = case when not p_signed_in then signed_out_at end,
        signed_out_reason = case when not p_signed_in then signed_out_reason end
    where name = p_name and version = p_version
    returning version into v_version;
  if found then perform holdfast.notify_workers(); end if;
  return v_version;
end $$;
comment on function holdfast.persona_save is
  'Replaces the encrypted state of a persona if its version is still this one. Returns the new version, or NULL.';

create or replace function holdfast.persona_held(
    p_worker uuid, p_id uuid, p_fence bigint, out held text, out crawl uuid, out person text)
  language plpgsql stable as $$
-- The persona of a page or of a sign-in that the worker has: it may change no other. A sign-in has no fence.
begin
  perform holdfast.mine(p_worker);
  select c.persona, c.id, 'worker ' || p_worker
    into held, crawl, person
    from holdfast.snapshot_queue q
    join holdfast.crawl c on c.id = q.crawl_id
    where q.snapshot_id = p_id and q.owner_id = p_worker and q.fence = p_fence and c.persona <> ''
  union all
  select s.persona, null, s.asked_by
    from holdfast.persona_sign_in s
    where s.id = p_id and s.process_id = p_worker;
  if held is null then
    raise exception 'the persona of % is no longer held by worker %', p_id, p_worker
      using errcode = 'HF003';
  end if;
end $$;

create or replace function holdfast.persona_remember(p_name text, p_sign_in uuid)
  returns void language sql as $$
  -- Pages of the host where a user has signed in get the persona, unless the host is another one's already.
  update holdfast.persona p
    set hosts = p.hosts || h.host
    from (select regexp_replace(holdfast.host_of(s.url), '^www\.', '') as host
            from holdfast.persona_sign_in s
            where s.id = p_sign_in) h
    where p.name = p_name
      and not exists (select
                        from holdfast.persona o
                        cross join unnest(o.hosts) u(host)
                        where h.host = u.host or right(h.host, length(u.host) + 1) = '.' || u.host)
$$;

create or replace function holdfast.persona_keep(
    p_worker uuid, p_id uuid, p_fence bigint, p_version bigint, p_state bytea, p_key_id text)
  returns bigint language plpgsql as $$
declare
  v_own constant record := holdfast.persona_held(p_worker, p_id, p_fence);
begin
  if v_own.crawl is null then perform holdfast.persona_remember(v_own.held, p_id); end if;
  return holdfast.persona_save(v_own.held, p_version, p_state, p_key_id, v_own.person, v_own.crawl is null);
end $$;
comment on function holdfast.persona_keep is
  'Stores what a page has changed of its persona, or the state of a sign-in, as persona_save does.';

create or replace function holdfast.persona_signed_out(
    p_worker uuid, p_snapshot uuid, p_fence bigint, p_version bigint, p_reason text)
  returns boolean language plpgsql as $$
-- Called for a page that was given this version and captured signed out. Its crawls wait (persona_lacks)
-- until a new session is stored. Returns false if that has happened meanwhile, or it is known already.
-- Reported once: by an event and to webhooks.
declare
  v_own constant record := holdfast.persona_held(p_worker, p_snapshot, p_fence);
begin
  update holdfast.persona
    set signed_out_at = clock_timestamp(), signed_out_reason = left(p_reason, 500)
    where name = v_own.held and version = p_version and signed_out_at is null;
  if not found then return false; end if;
  insert into holdfast.event (lifecycle, object_id, crawl_id, event, to_state, process_id, detail)
    values ('persona', v_own.crawl, v_own.crawl, 'sign_out', 'signed out', p_worker,
            format('persona "%s" is signed out: %s', v_own.held, left(p_reason, 500)));
  perform holdfast.webhook_tell('persona.signed_out', null, jsonb_build_object(
    'name', v_own.held, 'reason', left(p_reason, 500), 'crawl_id', v_own.crawl));
  return true;
end $$;
comment on function holdfast.persona_signed_out is
  'Records that a persona is signed out: its crawls wait until a new session is stored. Returns true if that is new.';

create or replace function holdfast.persona_load(p_name text)
  returns setof holdfast.persona language sql stable rows 1 as $$
  select p.* from holdfast.persona p where p.name = p_name
$$;
comment on function holdfast.persona_load is 'Returns a persona with its encrypted state. No row: there is none.';

create or replace function holdfast.persona_remove(p_name text)
  returns void language plpgsql as $$
-- A crawl that is being added holds the row (persona_check), so none comes to need it meanwhile.
declare
  v_crawls bigint;
  v_schedules bigint;
begin
  perform from holdfast.persona p where p.name = p_name for update;
  perform holdfast.persona_check(p_name);
  perform holdfast.persona_check_every(p_name, '');
  select count(*) into v_crawls from holdfast.crawl c where c.status <> 'sealed' and c.persona = p_name;
  select count(*) into v_schedules from holdfast.schedule s where s.crawl ->> 'persona' = p_name;
  if v_crawls + v_schedules > 0 then
    raise exception 'persona "%" is used by %', p_name,
        concat_ws(' and ', holdfast.people_count(nullif(v_crawls, 0), 'open crawl'),
                  holdfast.people_count(nullif(v_schedules, 0), 'schedule'))
      using errcode = 'HF004', hint = 'Cancel them, or wait for their end; holdfast list crawls';
  end if;
  -- Ends its browser.
  perform holdfast.sign_in_cancel(s.id) from holdfast.persona_sign_in s where s.persona = p_name;
  delete from holdfast.persona where name = p_name;
end $$;
comment on function holdfast.persona_remove is
  'Removes a persona and its state. Refused while a crawl or schedule uses it.';

create or replace function holdfast.persona_lacks(p_name text, p_capabilities jsonb,
                                                  p_to_sign_in boolean default false)
  returns text language plpgsql stable as $$
-- Why a worker with these capabilities cannot take pages of this persona; NULL: it can. '' and none: no
-- persona.
declare
  v_can constant jsonb := coalesce(p_capabilities -> 'persona', '{}');
  v_persona record;
begin
  if p_name in ('', 'none') then return null; end if;
  select p.name, p.key_id, p.worker_label, p.signed_out_at
    into v_persona
    from holdfast.persona p
    where p.name = p_name;
  return case
    when v_persona.name is null then 'there is no persona "' || p_name || '"'
    when v_persona.signed_out_at is not null and not p_to_sign_in then
      'persona "' || p_name || '" is signed out since ' || holdfast.people_time(v_persona.signed_out_at)
    when not coalesce(coalesce(v_can -> 'labels', '[]') ? v_persona.worker_label, true) then
      'persona "' || p_name || '" is tied to workers with the label "' || v_persona.worker_label || '"'
    when not coalesce(coalesce(v_can -> 'keys', '[]') ? v_persona.key_id, true) then
      'no key ' || v_persona.key_id || ' of persona "' || p_name || '"'
      || coalesce(' (' || (v_can ->> 'lacks') || ')', '')
    -- The first state needs a key, too.
    when p_to_sign_in and coalesce(v_can -> 'keys', '[]') = '[]' then
      coalesce(v_can ->> 'lacks', 'no key of personas')
    when p_to_sign_in and not coalesce(p_capabilities -> 'plugins' ? 'browser', false) then
      'no plugin browser' end;
end $$;
comment on function holdfast.persona_lacks is
  'Returns why a worker with these capabilities cannot take pages of this persona, or the browser to sign in to it; '
  'NULL: it can.';

create or replace view holdfast.v_persona as
  select p.name, p.version, p.key_id, p.options, p.hosts, p.worker_label, p.checks,
         p.signed_out_at, p.signed_out_reason, p.notes, p.created_at, p.changed_at, p.changed_by,
         s.id as sign_in, coalesce(s.viewer, s.asked_by) as sign_in_by, s.deadline as sign_in_until,
         case
           when s.problem is not null then 'failed: ' || s.problem
           when s.port is not null then 'ready on ' || w.label
           when w.id is not null then 'starting on ' || w.label
           when s.id is not null then 'waiting for a worker'
         end as sign_in_state
    from holdfast.persona p
    left join (holdfast.persona_sign_in s
               left join holdfast.process w on w.id = s.process_id)
      on s.persona = p.name and s.deadline > clock_timestamp() and (w.id is null or w.status = 'running')
    order by p.name;
comment on view holdfast.v_persona is 'Personas, without secrets, and sign-ins by hand.';
comment on column holdfast.v_persona.version is 'Number of states so far. 0: not signed in yet.';
comment on column holdfast.v_persona.sign_in is 'Sign-in under way, whose page is /persona/ID. NULL: none.';
comment on column holdfast.v_persona.sign_in_by is 'User who signs in.';
comment on column holdfast.v_persona.sign_in_until is 'Time at which the browser of the sign-in ends in any case.';
comment on column holdfast.v_persona.sign_in_state is
  'Waiting for a worker, starting (its browser), ready (the view can be opened) or failed, and why.';
