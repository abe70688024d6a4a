-- Waits of the program at its database, each a sentence with the way out. Errors of the server have theirs in
-- lib/pg/sqlstate.cpp; workers report them with their heartbeats (failing_calls).

create or replace function holdfast.database_waits(p_age interval default '10 seconds')
  returns table (kind text, since timestamptz, blocked bigint, says text, way_out text)
  language sql stable as $$
  -- Reads only catalogs, so that it never waits for a lock itself. The program's own sessions are named
  -- holdfast...; at work, they are no reason. PostgreSQL shows sessions of other logins to members of
  -- pg_read_all_stats only.
  with session as materialized (
    select a.*, a.application_name like 'holdfast%' as ours, a.query = '<insufficient privilege>' as hidden,
           concat_ws(', ', nullif(a.application_name, ''), a.usename, a.client_addr) as who
      from pg_catalog.pg_stat_activity a
      where a.datname = current_database()
  ), waiting as materialized (
    select distinct l.pid
      from pg_catalog.pg_locks l
      join session s on s.pid = l.pid
      where not l.granted
  ), root as (
    select b.pid, count(*) as blocked
      from waiting w
      cross join lateral unnest(pg_catalog.pg_blocking_pids(w.pid)) b(pid)
      where b.pid not in (select o.pid from waiting o)
      group by b.pid
  ), holder as (
    -- Rows that they have locked are passed over by claims, which do not wait.
    select distinct s.pid
      from session s
      join pg_catalog.pg_locks l
        on l.pid = s.pid and l.granted and l.mode not in ('AccessShareLock', 'ShareUpdateExclusiveLock')
      join pg_catalog.pg_class c on c.oid = l.relation and c.relnamespace = 'holdfast'::regnamespace
      where not s.ours and (s.hidden or s.xact_start < clock_timestamp() - p_age)
         or s.ours and s.state like 'idle in transaction%' and s.xact_start < clock_timestamp() - p_age
  )
  select 'lock', s.xact_start, coalesce(r.blocked, 0),
         concat('pid ', s.pid, ' (', s.who, ') keeps locks',
                case when s.state like 'idle%' then ' and does nothing' end,
                ' since ' || holdfast.people_time(s.xact_start),
                case when r.blocked > 0 then ', and ' || r.blocked || ' wait for it' end,
                case when s.hidden then '; PostgreSQL shows no more of it to ' || current_user
                     else ': ' || left(regexp_replace(s.query, '\s+', ' ', 'g'), 120) end),
         'End that transaction, or select pg_terminate_backend(' || s.pid || ')'
         || case when s.hidden then '; grant pg_read_all_stats to ' || current_user || ' shows what it does' else '' end
    from session s
    left join root r on r.pid = s.pid
    where (r.pid is not null and (not s.ours or s.state like 'idle in transaction%'))
       or s.pid in (select h.pid from holder h)
  union all
  select 'lock', p.prepared,
         (select count(*) from waiting w where 0 = any (pg_catalog.pg_blocking_pids(w.pid))),
         'the prepared transaction ' || quote_literal(p.gid) || ' of ' || p.owner || ' keeps locks since '
         || holdfast.people_time(p.prepared),
         'commit prepared ' || quote_literal(p.gid) || ', or rollback prepared ' || quote_literal(p.gid)
    from pg_catalog.pg_prepared_xacts p
    where p.database = current_database() and p.prepared < clock_timestamp() - p_age
      and exists (
        select
          -- The lock on its number has the virtual number of the session that began it.
          from pg_catalog.pg_locks own
          join pg_catalog.pg_locks l on l.virtualtransaction = own.virtualtransaction and l.pid is null
          join pg_catalog.pg_class c on c.oid = l.relation and c.relnamespace = 'holdfast'::regnamespace
          where own.transactionid = p.transaction and own.pid is null
            and l.mode not in ('AccessShareLock', 'ShareUpdateExclusiveLock'))
  union all
  select 'standby', min(s.xact_start), count(*),
         holdfast.people_count(count(*), 'commit') || ' of Holdfast must wait for a synchronous standby '
         || '(synchronous_standby_names: '
         || current_setting('synchronous_standby_names') || ')',
         'Start the standby, or take it out of synchronous_standby_names and select pg_reload_conf(). Do not end the '
         'sessions that wait: their commits would be without the standby'
    from session s
    where s.ours and s.wait_event = 'SyncRep' and s.xact_start < clock_timestamp() - least(p_age, '2 seconds')
    having count(*) > 0
  union all
  select 'notifications', o.xact_start, 0,
         'the queue of notifications of the server is ' || round(u.used * 100) || ' % full'
         || coalesce(', and the oldest transaction is that of pid ' || o.pid || ' (' || o.who || ') since '
                     || holdfast.people_time(o.xact_start), ''),
         'End the transaction of the session that listens, then select pg_notification_queue_usage()'
    from (select pg_catalog.pg_notification_queue_usage() as used) u
    left join lateral (
      select a.pid, a.xact_start,
             concat_ws(', ', nullif(a.application_name, ''), a.usename, 'database ' || a.datname) as who
        from pg_catalog.pg_stat_activity a
        where a.xact_start < clock_timestamp() - p_age and a.pid <> pg_catalog.pg_backend_pid()
        order by a.xact_start limit 1) o on true
    where u.used >= 0.5
  union all
  select 'read-only', null, 0, 'the server is a standby, which takes no writes',
         'Name the primary in database.url, or all servers'
    where pg_catalog.pg_is_in_recovery()
  union all
  select 'read-only', null, 0, 'default_transaction_read_only is on for ' || current_user,
         'Reset it for the role, the database or the server'
    from pg_catalog.pg_settings g
    where g.name = 'default_transaction_read_only' and g.reset_val = 'on' and not pg_catalog.pg_is_in_recovery()
  union all
  select 'connections', null, 0, 'all ' || n.most || ' connections of the server are in use',
         'End some of them, or raise max_connections'
    from (select sum(d.numbackends) as used,
                 current_setting('max_connections')::integer
                 - current_setting('superuser_reserved_connections')::integer as most
            from pg_catalog.pg_stat_database d) n
    where n.used >= n.most
$$;
comment on function holdfast.database_waits is
  'Returns what keeps the program waiting inside the database server, for at least so long, and the way out: locks of '
  'other sessions and of prepared transactions, synchronous standbys, a full queue of notifications, a read-only '
  'server, too many connections.';

create or replace function holdfast.failing_calls()
  returns table (kind text, since timestamptz, blocked bigint, says text, way_out text)
  language sql stable as $$
  -- A call that fails in many workers is one row.
  select 'call', min(t.since), count(*),
         min(t.label) || case when count(*) > 1 then ' and ' || count(*) - 1 || ' more' else '' end
         || ' cannot make the call ' || t.call || ' since ' || holdfast.people_time(min(t.since)) || ': '
         || min(t.text),
         coalesce(min(t.way_out), 'See the log of the database server')
    from (select p.label, p.stats -> 'failing_call' ->> 'call' as call, p.stats -> 'failing_call' ->> 'text' as text,
                 nullif(p.stats -> 'failing_call' ->> 'way_out', '') as way_out,
                 p.heartbeat_at - make_interval(secs => (p.stats -> 'failing_call' ->> 'seconds')::float8) as since
            from holdfast.process p
            where p.status = 'running' and p.lease_until > statement_timestamp() and p.stats ? 'failing_call') t
    group by t.call
  union all
  select 'restored', null, 0,
         'the collection is on another server than before, and restored() was not called: workers of before may still '
         'run, and fences of the lost time may be given out again',
         'Stop all workers, then select holdfast.restored(''your name'')'
    from holdfast.collection c
    cross join pg_catalog.pg_control_system() s
    where s.system_identifier <> c.system_identifier
$$;
comment on function holdfast.failing_calls is
  'Returns calls of the database that fail in workers and are repeated, with the error and the way out; and whether '
  'restored() was not called.';
