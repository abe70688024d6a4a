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
