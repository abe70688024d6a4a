-- Binaries that plugins need. The workers of each machine look for them, each under a claim.

create or replace function holdfast.binary_want(p_worker uuid, p_wanted jsonb)
  returns integer language sql as $$
  -- [{name, providers, overrides, plugins}]; without plugins an entry that exists stays as it is. May be
  -- repeated. Returns how many are new.
  with wanted as materialized (
    select p.machine_id, w.name, coalesce(w.providers, '') as providers,
           coalesce(w.overrides, '') as overrides, w.plugins
      from jsonb_to_recordset(p_wanted) as w(name text, providers text, overrides text, plugins text[])
      join holdfast.process p on p.id = holdfast.mine(p_worker)
      where w.name <> ''
  ), added as (
    insert into holdfast.binary (machine_id, name, providers, overrides, plugins)
      select machine_id, name, providers, overrides, coalesce(plugins, '{}') from wanted order by name
      on conflict do nothing returning 1
  ), changed as (
    update holdfast.binary b
      set providers = w.providers, overrides = w.overrides, plugins = w.plugins
      from wanted w
      where b.machine_id = w.machine_id and b.name = w.name
        and (b.providers, b.overrides, b.plugins) is distinct from (w.providers, w.overrides, w.plugins)
        and w.plugins is not null
  )
  select count(*)::integer from added
$$;
comment on function holdfast.binary_want is 'Records the binaries that the plugins of a worker require.';

create or replace function holdfast.binary_claim(p_worker uuid, p_limit integer)
  returns table (name text, id uuid, fence bigint, providers text, overrides text,
                 path text, version text, sha256 text, fingerprint text)
  language sql as $$
  -- Due ones are the worker's own for ten minutes (enough to install one), or until the worker has ended.
  update holdfast.binary b
    set owner_id = p_worker, fence = greatest(b.fence, holdfast.fence_floor()) + 1,
        retry_at = clock_timestamp() + interval '10 minutes'
    from (select d.machine_id, d.name
            from holdfast.binary d
            join holdfast.process p
              on p.id = holdfast.mine(p_worker) and p.status = 'running' and p.machine_id = d.machine_id
            left join holdfast.process o on o.id = d.owner_id
            where d.retry_at <= clock_timestamp() or o.status <> 'running'
            order by d.retry_at, d.name limit p_limit for update of d skip locked) due
    where b.machine_id = due.machine_id and b.name = due.name
    returning b.name, b.id, b.fence, b.providers, b.overrides, b.path, b.version, b.sha256, b.fingerprint
$$;
comment on function holdfast.binary_claim is 'Takes binaries to be looked for on a worker''s machine.';

create or replace function holdfast.binary_set(p_worker uuid, p_name text, p_fence bigint, p_found jsonb)
  returns void language plpgsql as $$
-- p_found: {path, version, sha256, fingerprint, provider}, or {error}. May be repeated. Looked at again after
-- half an hour, or after five minutes if it was not found.
declare
  v_row holdfast.binary;
  v_there constant boolean := p_found ->> 'path' is not null;
begin
  perform holdfast.mine(p_worker);
  select b.* into v_row
    from holdfast.binary b
    join holdfast.process p on p.machine_id = b.machine_id
    where p.id = p_worker and b.name = p_name for update of b;
  if v_row.fence = p_fence and v_row.owner_id is null then return; end if; -- a repeat: the answer was lost
  if v_row.fence is distinct from p_fence or v_row.owner_id is distinct from p_worker then
    raise exception 'binary % is no longer held with fence %', p_name, p_fence using errcode = 'HF003';
  end if;
  update holdfast.binary b
    set status = case when v_there then 'installed' else 'queued' end,
        path = p_found ->> 'path', version = p_found ->> 'version', sha256 = p_found ->> 'sha256',
        fingerprint = p_found ->> 'fingerprint',
        provider = case when v_there then coalesce(p_found ->> 'provider', 'env') else '' end,
        failures = case when v_there then 0 else b.failures + 1 end,
        error = case when not v_there then coalesce(nullif(p_found ->> 'error', ''), 'not found') end,
        checked_at = clock_timestamp(), owner_id = null,
        retry_at = clock_timestamp()
          + case when v_there then interval '30 minutes' else interval '5 minutes' end
    where b.machine_id = v_row.machine_id and b.name = p_name;
end $$;
comment on function holdfast.binary_set is 'Stores the result of a look-up of a binary.';

create or replace function holdfast.binary_known(p_worker uuid)
  returns table (name text, path text, status text, error text) language sql stable as $$
  select b.name, b.path, b.status, b.error
    from holdfast.binary b
    join holdfast.process p on p.machine_id = b.machine_id
    where p.id = p_worker
$$;
comment on function holdfast.binary_known is 'Returns the known binaries of a worker''s machine.';

create or replace function holdfast.binary_recheck(p_name text, p_host text)
  returns bigint language sql as $$
  -- For users who have installed something. Empty: all names, all machines.
  with changed as (
    update holdfast.binary b
      set retry_at = clock_timestamp()
      from holdfast.machine m
      where m.id = b.machine_id and b.owner_id is null
        and p_name in ('', b.name) and p_host in ('', m.hostname)
      returning 1
  )
  select count(*) from changed
$$;
comment on function holdfast.binary_recheck is 'Has binaries looked for again now; returns how many.';

create or replace function holdfast.machine_set_options(p_worker uuid, p_options jsonb)
  returns void language sql as $$
  update holdfast.machine m
    set options = m.options || p_options
    from holdfast.process p
    where p.id = holdfast.mine(p_worker) and m.id = p.machine_id and m.options || p_options <> m.options
$$;
comment on function holdfast.machine_set_options is 'Adds hook options for a worker''s machine.';

create or replace function holdfast.machine_options(p_worker uuid)
  returns jsonb language sql stable as $$
  select m.options
    from holdfast.machine m
    join holdfast.process p on p.machine_id = m.id
    where p.id = p_worker
$$;
comment on function holdfast.machine_options is 'Hook options of a worker''s machine.';

create or replace view holdfast.v_binary as
  select b.name, m.hostname, b.status, b.path, b.version, b.provider, b.error, b.plugins, b.failures,
         b.checked_at, b.retry_at, b.sha256, p.label as looked_for_by, b.providers, b.machine_id, b.id
    from holdfast.binary b
    join holdfast.machine m on m.id = b.machine_id
    left join holdfast.process p on p.id = b.owner_id;
comment on view holdfast.v_binary is
  'Binaries that plugins need, on each machine: found or not, where, checked when.';
comment on column holdfast.v_binary.id is 'Name for on_Binary hooks.';
comment on column holdfast.v_binary.looked_for_by is 'Worker that looks for the binary or installs it.';
