-- The schema's revision, and the programs that work on it.

create or replace function holdfast.schema_minimum()
  returns integer language sql stable as $$
  select coalesce(max(m.number), 0)
    from holdfast.schema_migration m
    where m.breaking
$$;
comment on function holdfast.schema_minimum is 'Returns the lowest schema revision that a program must know to join.';

create or replace function holdfast.shut_out_older_programs(p_revision integer, p_force boolean)
  returns void language plpgsql as $$
-- Called by the migrator before it applies a file that begins with "-- Breaking:". The lock makes every
-- process_join wait until the migration commits; it then finds the new schema_minimum(). Processes that
-- joined before are listed.
declare
  v_older text[];
begin
  lock table holdfast.process in share row exclusive mode;
  v_older := array(select p.label || ' (' || p.version || ')'
                     from holdfast.process p
                     where p.status = 'running'
                       and p.lease_until > clock_timestamp()
                       and coalesce(p.revision, 0) < p_revision
                     order by p.label);
  if v_older = '{}' or p_force then return; end if;
  raise exception 'this migration needs programs of revision % or later, but % older ones are running: %',
      p_revision, cardinality(v_older),
      array_to_string(v_older[:5] || case when v_older[6] is not null then array['...'] end, ', ')
    using errcode = 'HF004',
      hint = 'install the new release on their machines, then run "holdfast drain WORKER"; '
        'holdfast migrate --force applies it all the same';
end $$;
