-- Small helpers that every other file uses. new_uuid, retry_at_max, host_of and is_attempt_directory are in
-- 0001_basics.sql.

create or replace function holdfast.notify_workers()
  returns void language sql as $$
  -- Sends a notification. Workers also poll. A commit that notifies takes one lock of the whole server, so
  -- functions notify only when work becomes due where none was.
  select pg_notify('holdfast', 'work')
$$;

create or replace function holdfast.fence_floor()
  returns bigint language plpgsql stable as $$
-- Fences of this timeline are greater. An asynchronous standby may lack the last claims of the old primary.
-- Once promoted, it would give their fences again, and one directory a<fence> would belong to two attempts.
-- But a promoted standby begins a new timeline, and each timeline has 10^9 fences of its own. 0: the server
-- does not report its timeline.
begin
  return (('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::bigint - 1) * 1000000000;
exception
  when insufficient_privilege or undefined_function or feature_not_supported then
    return 0;
end $$;

create or replace function holdfast.seal_event(p_outcome text)
  returns text language sql immutable parallel safe as $$
  -- The transition by which a snapshot is sealed with an outcome.
  select case p_outcome
           when 'refused' then 'refuse'
           when 'quarantined' then 'quarantine'
           when 'cancelled' then 'cancel'
           else 'seal'
         end
$$;

create or replace function holdfast.people_time(p_at timestamptz)
  returns text language sql stable as $$
  select to_char(p_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS') || ' UTC'
$$;
comment on function holdfast.people_time is 'Returns a time as sentences have it, in UTC.';

create or replace function holdfast.people_duration(p_span interval)
  returns text language sql immutable as $$
  select case when s < 1 then round(s * 1000) || ' ms'
              when s < 120 then floor(s) || ' s'
              when s < 7200 then floor(s / 60) || ' min'
              when s < 172800 then floor(s / 3600) || ' h'
              else floor(s / 86400) || ' days' end
    from (select greatest(extract(epoch from p_span), 0) as s) x
$$;

create or replace function holdfast.people_count(p_count bigint, p_what text)
  returns text language sql immutable as $$
  select p_count || ' ' || p_what || case when p_count = 1 then '' else 's' end
$$;
comment on function holdfast.people_count is 'Returns a number with its noun: 1 page, 2 pages.';
