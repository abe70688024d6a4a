-- Small helpers that every other file uses. new_uuid, retry_at_max, host_of and is_attempt_directory are in
-- 0001_basics.sql.

create or replace function holdfast.ring()
  returns void language sql as $$
  -- A doorbell, not a queue: workers also poll. A commit that notifies takes one lock of the whole server, so
  -- the doorbell rings only when work becomes due where none was.
  select pg_notify('holdfast', 'work')
$$;

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
