-- Sessions that keep the program waiting inside the database. Reads only catalogs, so that it never waits
-- itself.

create or replace function holdfast.blockers(p_age interval default '30 seconds')
  returns table (pid integer, since timestamptz, blocked bigint, says text) language sql stable as $$
  -- Returns sessions for which others wait and that do not wait themselves, and sessions that have kept locks
  -- for p_age, except for the program's own at work. PostgreSQL shows more of other users' sessions to a
  -- member of pg_read_all_stats.
  with waiting as materialized (
    select distinct l.pid
      from pg_catalog.pg_locks l
      join pg_catalog.pg_stat_activity a on a.pid = l.pid and a.datname = current_database()
      where not l.granted
  ), root as (
    select b.pid, count(*) as blocked
      from waiting w
      cross join lateral unnest(pg_catalog.pg_blocking_pids(w.pid)) b(pid)
      where b.pid not in (select o.pid from waiting o)
      group by b.pid
  ), long as (
    select distinct a.pid
      from pg_catalog.pg_stat_activity a
      join pg_catalog.pg_locks l
        on l.pid = a.pid and l.granted and l.mode not in ('AccessShareLock', 'ShareUpdateExclusiveLock')
      join pg_catalog.pg_class c on c.oid = l.relation and c.relnamespace = 'holdfast'::regnamespace
      where a.datname = current_database()
        and (a.state like 'idle in transaction%' or a.application_name not like 'holdfast%')
        and a.xact_start < clock_timestamp() - p_age
  )
  select a.pid, a.xact_start, coalesce(r.blocked, 0),
         concat('pid ', a.pid,
                ' (', concat_ws(', ', nullif(a.application_name, ''), a.usename, a.client_addr), ') keeps locks',
                case when a.state like 'idle%' then ' and does nothing' end,
                ' since ' || holdfast.people_time(a.xact_start),
                case when r.blocked > 0 then ', and ' || r.blocked || ' wait for it' end,
                ': ' || left(regexp_replace(a.query, '\s+', ' ', 'g'), 120))
    from pg_catalog.pg_stat_activity a
    left join root r on r.pid = a.pid
    where r.pid is not null or a.pid in (select g.pid from long g)
    order by 3 desc, 2
$$;
comment on function holdfast.blockers is
  'Sessions of the database that keep others waiting for a lock, or have kept locks for so long.';
