-- Programs that plugins need, looked for by the nodes of each machine under a claim.

create or replace function holdfast.binary_want(p_node uuid, p_wanted jsonb) returns integer language plpgsql as $$
-- [{name, providers, overrides, plugins}]: what is asked for on the machine of a node. May be repeated. Returns how many are new.
declare
  v_machine constant text := (select machine_id from holdfast.process where id = p_node);
  v_count integer;
begin
  insert into holdfast.binary as b (machine_id, name, providers, overrides, plugins)
    select v_machine, w.name, coalesce(w.providers, ''), coalesce(w.overrides, ''), coalesce(w.plugins, '{}')
      from jsonb_to_recordset(p_wanted) as w(name text, providers text, overrides text, plugins text[])
      where w.name <> '' order by w.name
    on conflict (machine_id, name) do nothing;
  get diagnostics v_count = row_count;
  update holdfast.binary b set providers = coalesce(w.providers, ''), overrides = coalesce(w.overrides, ''), plugins = coalesce(w.plugins, '{}')
    from jsonb_to_recordset(p_wanted) as w(name text, providers text, overrides text, plugins text[])
    where b.machine_id = v_machine and b.name = w.name and w.plugins is not null
      and (b.providers, b.overrides, b.plugins) is distinct from (coalesce(w.providers, ''), coalesce(w.overrides, ''), w.plugins);
  return v_count;
end $$;
comment on function holdfast.binary_want(uuid, jsonb) is 'A node says which programs its plugins need.';

create or replace function holdfast.binary_claim(p_node uuid, p_limit integer)
  returns table (name text, id uuid, fence bigint, providers text, overrides text, path text, version text, sha256 text, fingerprint text)
  language plpgsql as $$
-- Programs of the node's machine that are due. They are its own for ten minutes, which is enough to install one, or until it is
-- given up.
#variable_conflict use_column
declare
  v_machine constant text := (select machine_id from holdfast.process where id = p_node and status = 'running');
begin
  return query
    update holdfast.binary b set owner_id = p_node, fence = b.fence + 1, retry_at = clock_timestamp() + interval '10 minutes'
      from (select d.name from holdfast.binary d
              where d.machine_id = v_machine
                and (d.retry_at <= clock_timestamp()
                     or d.owner_id is not null and not exists (select from holdfast.process p where p.id = d.owner_id and p.status = 'running'))
              order by d.retry_at, d.name limit p_limit for update skip locked) due
      where b.machine_id = v_machine and b.name = due.name
      returning b.name, b.id, b.fence, b.providers, b.overrides, b.path, b.version, b.sha256, b.fingerprint;
end $$;
comment on function holdfast.binary_claim(uuid, integer) is 'Takes programs that are to be looked for on a node''s machine.';

create or replace function holdfast.binary_set(p_node uuid, p_name text, p_fence bigint, p_found jsonb) returns void language plpgsql as $$
-- What was found: {path, version, sha256, fingerprint, provider}, or {error}. May be repeated. Looked at again after half an hour;
-- what was not found after five minutes.
declare
  v_row holdfast.binary;
begin
  select b.* into v_row from holdfast.binary b join holdfast.process p on p.machine_id = b.machine_id
    where p.id = p_node and b.name = p_name for update of b;
  if v_row.fence = p_fence and v_row.owner_id is null then return; end if; -- the answer was lost
  if v_row.fence is distinct from p_fence or v_row.owner_id is distinct from p_node then
    raise exception 'program % is no longer held with fence %', p_name, p_fence using errcode = 'HF003';
  end if;
  if v_row.status = 'installed' and (v_row.path, v_row.sha256) is distinct from (p_found ->> 'path', p_found ->> 'sha256') then
    perform set_config('holdfast.event', 'recheck', true);
    update holdfast.binary b set status = 'queued' where b.machine_id = v_row.machine_id and b.name = p_name;
  end if;
  if p_found ->> 'path' is not null then
    perform set_config('holdfast.event', 'install', true);
    update holdfast.binary b set status = 'installed', path = p_found ->> 'path', version = p_found ->> 'version', sha256 = p_found ->> 'sha256',
        fingerprint = p_found ->> 'fingerprint', provider = coalesce(p_found ->> 'provider', 'env'), failures = 0, error = null,
        checked_at = clock_timestamp(), owner_id = null, retry_at = clock_timestamp() + interval '30 minutes'
      where b.machine_id = v_row.machine_id and b.name = p_name;
  else
    update holdfast.binary b set path = null, version = null, sha256 = null, fingerprint = null, provider = '', failures = b.failures + 1,
        error = coalesce(nullif(p_found ->> 'error', ''), 'not found'), checked_at = clock_timestamp(), owner_id = null,
        retry_at = clock_timestamp() + interval '5 minutes'
      where b.machine_id = v_row.machine_id and b.name = p_name;
  end if;
end $$;
comment on function holdfast.binary_set(uuid, text, bigint, jsonb) is 'Writes down what was found of a program.';

create or replace function holdfast.binary_known(p_node uuid) returns table (name text, path text, status text, error text) language sql stable as $$
  select b.name, b.path, b.status, b.error from holdfast.binary b join holdfast.process p on p.machine_id = b.machine_id where p.id = p_node
$$;
comment on function holdfast.binary_known(uuid) is 'What is known of the programs of a node''s machine.';

create or replace function holdfast.binary_recheck(p_name text, p_host text) returns bigint language plpgsql as $$
-- For people who have installed something: look now. NULL: all names, all hosts.
declare
  v_count bigint;
begin
  update holdfast.binary b set retry_at = clock_timestamp()
    from holdfast.machine m
    where m.id = b.machine_id and b.owner_id is null and (p_name is null or b.name = p_name) and (p_host is null or m.hostname = p_host);
  get diagnostics v_count = row_count;
  return v_count;
end $$;
comment on function holdfast.binary_recheck(text, text) is 'Has programs looked at again soon.';

create or replace function holdfast.machine_set_options(p_node uuid, p_options jsonb) returns void language sql as $$
  update holdfast.machine m set options = m.options || p_options
    from holdfast.process p where p.id = p_node and m.id = p.machine_id and m.options || p_options <> m.options
$$;
comment on function holdfast.machine_set_options(uuid, jsonb) is 'Options that hold on a node''s machine, added to those that do.';

create or replace function holdfast.machine_options(p_node uuid) returns jsonb language sql stable as $$
  select m.options from holdfast.machine m join holdfast.process p on p.machine_id = m.id where p.id = p_node
$$;
comment on function holdfast.machine_options(uuid) is 'Options that hold on a node''s machine.';

create or replace function holdfast.crawl_options(p_crawl uuid) returns table (plugins text[], options jsonb, persona text) language sql stable as $$
  select c.plugins, c.options, c.persona from holdfast.crawl c where c.id = p_crawl
$$;
comment on function holdfast.crawl_options(uuid) is 'What a crawl was told to run, frozen when it was added.';

create or replace view holdfast.v_binary as
  select b.name, m.hostname, b.status, b.path, b.version, b.provider, b.error, b.plugins, b.failures, b.checked_at, b.retry_at, b.sha256,
         p.label as looked_for_by, b.providers, b.machine_id, b.id
    from holdfast.binary b
    join holdfast.machine m on m.id = b.machine_id
    left join holdfast.process p on p.id = b.owner_id;
comment on view holdfast.v_binary is 'Programs that plugins need, on each machine: found or not, where, and when they are looked at again.';
comment on column holdfast.v_binary.looked_for_by is 'The node that looks for it, or installs it, just now.';

create or replace function holdfast.list_binaries(p_status text, p_url text, p_limit bigint) returns setof holdfast.v_binary language sql stable as $$
  select * from holdfast.v_binary
    where (p_status is null or status = p_status) and (p_url is null or position(lower(p_url) in lower(name)) > 0)
    order by hostname, name limit p_limit
$$;
comment on function holdfast.list_binaries(text, text, bigint) is 'Programs, filtered: holdfast binary list.';

create or replace view holdfast.v_session_log as
  select s.crawl_id, s.id as session_id, h.plugin, h.hook_name, h.status, h.error, h.log, h.ended_at, p.label as node
    from holdfast.crawl_session_hook h
    join holdfast.crawl_session s on s.id = h.session_id
    join holdfast.process p on p.id = s.process_id
    where h.log <> '';
comment on view holdfast.v_session_log is 'What crawl hooks that failed have printed.';
