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
  -- Sessions that wait give up after a while and try again: without a standby, commits also wait if none does
  -- now.
  select 'standby', min(s.xact_start), count(s.pid),
         case count(s.pid) when 0 then 'every commit' else holdfast.people_count(count(s.pid), 'commit') end
         || ' of Holdfast must wait for a synchronous standby (synchronous_standby_names: '
         || current_setting('synchronous_standby_names') || ')'
         || case when bool_or(n.none) then ', and none is connected' else '' end,
         'Start the standby, or take it out of synchronous_standby_names and select pg_reload_conf(). Do not end the '
         'sessions that wait: their commits would be without the standby'
    -- PostgreSQL shows sync_state to members of pg_read_all_stats only.
    from (select current_setting('synchronous_standby_names') <> ''
                 and current_setting('synchronous_commit') not in ('off', 'local')
                 and not exists (select
                                   from pg_catalog.pg_stat_replication r
                                   where r.sync_state in ('sync', 'quorum') or r.sync_state is null) as none) n
    left join session s
      on s.ours and s.wait_event = 'SyncRep' and s.xact_start < clock_timestamp() - least(p_age, '2 seconds')
    having count(s.pid) > 0 or bool_or(n.none)
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

create or replace function holdfast.login_lacks(p_login name, out lacks text, out way_out text)
  language sql stable as $$
  select w.lacks, format(w.way_out, p_login, current_database())
    from (select count(*) as sessions from pg_catalog.pg_stat_activity a where a.usename = p_login) s
    left join pg_catalog.pg_roles r on r.rolname = p_login
    cross join lateral (values
      (1, r.oid is null, 'no longer exists', 'Create role %1$I login; grant holdfast_worker to it, if it had that'),
      (2, not r.rolcanlogin, 'may not log in', 'Alter role %1$I login'),
      (3, r.rolvaliduntil < clock_timestamp(), 'has a password that is no longer valid',
       'Alter role %1$I valid until ''infinity'''),
      (4, not has_database_privilege(r.oid, current_database(), 'connect'), 'may not connect to this database',
       'Grant connect on database %2$I to %1$I'),
      (5, not has_schema_privilege(r.oid, 'holdfast', 'usage'), 'has no role of Holdfast',
       'Grant holdfast_worker to %1$I, if it had that'),
      (6, r.rolconfig @> '{default_transaction_read_only=on}', 'may only read',
       'Alter role %1$I reset default_transaction_read_only'),
      (7, r.rolconnlimit between 0 and s.sessions, 'has all connections that it may have',
       'Alter role %1$I connection limit -1')) w(place, is_so, lacks, way_out)
    where w.is_so
    order by w.place limit 1
$$;
comment on function holdfast.login_lacks is
  'Returns what keeps a login from working here, and the way out; NULL: nothing that the database knows.';

create or replace function holdfast.failing_calls()
  returns table (kind text, since timestamptz, blocked bigint, says text, way_out text)
  language sql stable as $$
  -- A cause is one row, however many calls of however many workers it makes fail.
  select 'call', min(t.since), count(distinct t.id),
         min(t.label) || case when count(distinct t.id) > 1 then ' and ' || count(distinct t.id) - 1 || ' more'
                              else '' end
         || ' cannot make the call ' || string_agg(distinct t.call, ', ') || ' since '
         || holdfast.people_time(min(t.since)) || ': ' || t.cause,
         coalesce(min(t.way_out), 'See the log of the database server')
    from (select p.id, p.label, f ->> 'call' as call, nullif(f ->> 'way_out', '') as way_out,
                 regexp_replace(f ->> 'text', '(SQLSTATE \w+) in: .*\)$', '\1)') as cause,
                 p.heartbeat_at - make_interval(secs => (f ->> 'seconds')::float8) as since
            from holdfast.process p
            cross join lateral jsonb_array_elements(p.stats -> 'failing_calls') f
            where p.status = 'running' and p.lease_until > statement_timestamp()) t
    group by t.cause
  union all
  -- A process that may not log in cannot report it itself. Of those that lapsed, the last day's.
  select 'login', max(t.heartbeat_at), count(*),
         'the login ' || t.login || ' of ' || min(t.label)
         || case when count(*) > 1 then ' and ' || count(*) - 1 || ' more' else '' end || ' ' || l.lacks,
         l.way_out
    from (select p.login, p.label, p.heartbeat_at
            from holdfast.process p
            where p.status = 'running'
                  and p.heartbeat_at + (p.lease_until - p.heartbeat_at) / 2 < statement_timestamp()
               or p.exit_reason = 'lease lapsed' and p.ended_at > statement_timestamp() - interval '1 day'
                  and not exists (select
                                    from holdfast.process n
                                    where n.login = p.login and n.status = 'running'
                                      and n.lease_until > statement_timestamp())) t
    cross join lateral holdfast.login_lacks(t.login) l
    where l.lacks is not null
    group by t.login, l.lacks, l.way_out
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
  'Returns calls of the database that fail in workers and are repeated, with the error and the way out; logins of '
  'silent processes that may not log in; and whether restored() was not called.';
